"""How many labels would come out otherwise if the bar, or skill, were where it was agreed to be.

A bar that rises by s turns the yes of every signal between it and s above it: Φ(z) − Φ(z − s) of
the cases of either truth, with z the normal quantile of their rate of yes. Weights ask for
s = log(c/agreed)/d′, as log c falls by d′ for every standard deviation of the bar.

Nobody is told the number unless what is beyond is shown to be so, and its interval allows for that.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from evenhand.stats.beyond import lower_limit_beyond
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import normal_density


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Labels of one group: how many of each truth, z of their rates of yes, and its covariance.

    The truth is yes for `positives`, of which a share with quantile `z_hit` was called yes, and no
    for `negatives` with `z_false_alarm`.
    """

    positives: float
    negatives: float
    z_hit: float
    z_false_alarm: float
    variance_hit: float
    variance_false_alarm: float
    covariance: float

    @property
    def separation(self) -> float:
        """d′: how far apart the signals of the two truths lie."""
        return self.z_hit - self.z_false_alarm


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How far a number lies beyond what was agreed on its own scale, and its standard error.

    Weights are on a log scale. `critical` is by how many standard errors the interval reaches, and
    from how many on a number is shown to lie beyond.
    """

    value: float
    error: float
    critical: float


def labels_by_weight(labels: Labels, excess: Excess) -> tuple[float, float, float]:
    """Yes labels too many, with their interval, where a miss weighs more than agreed; signed.

    Examples:
        >>> labels = Labels(positives=300, negatives=700, z_hit=1.0, z_false_alarm=-0.5,
        ...                 variance_hit=0.008, variance_false_alarm=0.003, covariance=0.0)
        >>> found = labels_by_weight(labels, Excess(value=0.7, error=0.15, critical=1.96))
        >>> [round(one) for one in found]
        [141, 87, 193]
    """
    z_h, z_f, d = labels.z_hit, labels.z_false_alarm, labels.separation
    shift = excess.value / d
    slopes = (z_h - shift) / d, (shift - z_f) / d
    # What log c owes to the rates; the rest is the prevalence's, or another group's.
    own = (z_h, -z_f)
    return _moved(labels, shift, excess, slopes=slopes, rest=1 / d, own=own)


def labels_by_bar(labels: Labels, excess: Excess) -> tuple[float, float, float]:
    """Yes labels too many, with their interval, where the bar lies too low; signed."""
    return _moved(labels, -excess.value, excess, slopes=(0.0, 1.0), rest=-1.0, own=(0.0, -1.0))


def labels_by_skill(labels: Labels, excess: Excess) -> tuple[float, float, float]:
    """Yes labels of true cases too many, with their interval, where skill is above; signed.

    The bar stays where it is, so that skill moves only what is said of cases whose truth is yes.
    """
    only = Labels(
        positives=labels.positives,
        negatives=0.0,
        z_hit=labels.z_hit,
        z_false_alarm=labels.z_false_alarm,
        variance_hit=labels.variance_hit,
        variance_false_alarm=labels.variance_false_alarm,
        covariance=labels.covariance,
    )
    return _moved(only, excess.value, excess, slopes=(1.0, -1.0), rest=1.0, own=(1.0, -1.0))


def _moved(
    labels: Labels,
    shift: float,
    excess: Excess,
    *,
    slopes: tuple[float, float],
    rest: float,
    own: tuple[float, float],
) -> tuple[float, float, float]:
    """Labels that a shift turns, by the delta method, and as who is told of it has to see it.

    `slopes` are those of the shift in z of hits and of false alarms, `rest` that in what the
    excess owes to anything else; `own` are the excess's slopes in the two z.
    """
    z = np.array([labels.z_hit, labels.z_false_alarm])
    n = np.array([labels.positives, labels.negatives])

    def turns(by: float) -> float:
        return float(n @ (ndtr(z) - ndtr(z - by)))

    turned = turns(shift)
    at = n * normal_density(z - shift)
    gradient = n * normal_density(z) - at + at.sum() * np.array(slopes)
    covariance = np.array(
        [
            [labels.variance_hit, labels.covariance],
            [labels.covariance, labels.variance_false_alarm],
        ]
    )
    elsewhere = max(excess.error**2 - _form(np.array(own), covariance), 0.0)
    variance = _form(gradient, covariance) + (at.sum() * rest) ** 2 * elsewhere
    error = float(np.sqrt(max(variance, 0.0)))
    half = excess.critical * error
    just_beyond = excess.critical * excess.error
    if abs(excess.value) <= just_beyond:
        return turned, turned - half, turned + half
    nearest = lower_limit_beyond(
        abs(turned),
        error=error,
        line=abs(turns(shift * just_beyond / abs(excess.value))),
        critical=excess.critical,
    )
    furthest = abs(turned) + half
    return (turned, nearest, furthest) if turned > 0 else (turned, -furthest, -nearest)


def _form(slopes: FloatArray, covariance: FloatArray) -> float:
    return float(slopes @ covariance @ slopes)
