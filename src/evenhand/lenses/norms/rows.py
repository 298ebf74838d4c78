"""The rows of the norms lens: correlations class by class, and how they rise with the share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.decisions.labels import all_but
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.norms import (
    NormCounts,
    binary_ranks,
    other_ranks,
    own_ranks,
    rank_name,
)
from evenhand.decisions.tallies.sampled_norms import Ranks, held_ranks
from evenhand.decisions.tallies.scores import is_weighted
from evenhand.decisions.tally import Tally
from evenhand.lenses.norms.samples import (
    PLAIN,
    NormSample,
    PartMoves,
    ShareCounts,
    correlation_interval,
)
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.scope import HIDDEN_UNDER, ONE_CLUSTER, Scope, with_stand_in
from evenhand.stats.estimate import Estimate, FloatArray, number
from evenhand.stats.families import benjamini_hochberg, sidak
from evenhand.stats.ranks import (
    CONSTANT,
    FEWEST_ROWS,
    smallest_detectable,
    spearman_from_moments,
)
from evenhand.stats.rates import wilson
from evenhand.stats.sampled_ranks import SampledInterval, SharedError, cluster_freedom
from evenhand.stats.trend import (
    RELIABLE,
    bootstrap_trend,
    corrected,
    latent_mean_size,
    leading_trend,
    mean_size,
    rank_trend,
    reliability,
    slope,
)

# Resamples of the classes, for the interval beside the one by formula.
DRAWS = 2_000
# Within each of several classes score and norm may be unrelated, and over all of them go together.
POOLED = "the rows of all other classes are pooled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCells:
    """Correlations of one population with every norm: arrays (stratum, group, class).

    Strata and groups are the scope's. `classes` are written `not:<class>` where the rows are
    those of another truth. `scored` says which classes have a score at all; `sample` is what
    weights and clusters change, where there are any.
    """

    classes: tuple[str, ...]
    scored: tuple[bool, ...]
    n: FloatArray
    ties: FloatArray
    flat: FloatArray
    r: dict[str, FloatArray]
    sample: NormSample | None = None

    def worth(self, norm: str) -> FloatArray:
        """The independent rows that each correlation is worth."""
        return correlation_interval(self.r[norm], self.n, self.sample, norm=norm, z=1.96).n

    def reason(self, norm: str) -> Column:
        """Why a correlation is undefined, or None where it is not."""
        few = [f"only {n} rows, and {FEWEST_ROWS} are needed" for n in ("0", "1", "2")]
        words = choose(np.isnan(self.r[norm]), "the norm is the same in every row of the cell")
        words = choose(self.flat > 0, "the score is the same in every row of the cell", words)
        words = choose(self.n == 2, few[2], words)
        words = choose(self.n == 1, few[1].replace("rows,", "row,"), words)
        words = choose(self.n == 0, "no cases in the group", words)
        unscored = ~np.asarray(self.scored, dtype=bool)
        return choose(np.broadcast_to(unscored, self.n.shape), "no score of this class", words)


def cells_of(
    decisions: Decisions,
    attribute: Attribute,
    scope: Scope,
    *,
    norms: Mapping[str, str],
    positive: str | None,
    elsewhere: bool,
    counted: NormCounts,
) -> Iterator[NormCells]:
    """The cells of each class's own rows and, where asked, of the rows of all other classes."""
    wide = decisions.roles.scores
    passes = [False, True] if len(scope.strata) > 1 else [False]
    shared = {"norms": norms}
    own = [
        own_ranks(decisions, attribute, stratified=s, norms=norms, counted=counted) for s in passes
    ]
    owned = [ranks for ranks in own if ranks is not None]
    weighted = is_weighted(decisions)
    if owned:
        scored = tuple(not wide or name in wide for name in scope.classes)
        found = [_laid(ranks, scope, key="truth", values=scope.classes) for ranks in owned]
        yield _cells(found, scope.classes, scored, norms, weighted=weighted)
    elif positive is not None:
        both = [
            binary_ranks(decisions, attribute, positive, stratified=s, **shared) for s in passes
        ]
        sides = [_laid(ranks, scope, key="y", values=("1", "0")) for ranks in both]
        for place, name in enumerate((positive, all_but(positive))):
            if place == 0 or elsewhere:
                found = [side.take(place) for side in sides]
                yield _cells(found, (name,), (True,), norms, weighted=weighted)
        return
    if not elsewhere or not wide:
        return
    others = []
    for name in wide:
        ranks = [other_ranks(decisions, attribute, name, stratified=s, **shared) for s in passes]
        others.append([_laid(each, scope, key=None, values=()) for each in ranks])
    names = tuple(all_but(name) for name in wide)
    together = [
        _Laid(
            sums={k: np.concatenate([part.sums[k] for part in parts], axis=-1) for k in first},
            clustered=parts[0].clustered,
        )
        for parts in zip(*others, strict=True)
        for first in (parts[0].sums,)
    ]
    yield _cells(together, names, (True,) * len(names), norms, weighted=weighted)


def rank_tables(
    decisions: Decisions,
    attribute: Attribute,
    *,
    norms: Mapping[str, str],
    positive: str | None,
    elsewhere: bool,
    counted: NormCounts,
) -> dict[str, Tally]:
    """The ranks that `cells_of` asks for, by their names in a tally set."""
    found: dict[str, Tally] = {}

    def keep(ranks: Ranks | None, *kind: str, stratified: bool) -> None:
        if ranks is None:
            return
        ranks = held_ranks(ranks)
        name = rank_name(attribute, *kind, norms=norms, stratified=stratified)
        found[name] = ranks.tally
        if ranks.moves is not None:
            found[f"moves/{name}"] = ranks.moves

    for s in [False, True] if counted.tally.labels.get("stratum") else [False]:
        own = own_ranks(decisions, attribute, stratified=s, norms=norms, counted=counted)
        keep(own, "own", stratified=s)
        if own is None and positive is not None:
            both = binary_ranks(decisions, attribute, positive, stratified=s, norms=norms)
            keep(both, "binary", positive, stratified=s)
        for name in decisions.roles.scores if own is not None and elsewhere else ():
            ranks = other_ranks(decisions, attribute, name, stratified=s, norms=norms)
            keep(ranks, "not", name, stratified=s)
    return found


def share_rows(scope: Scope, counts: ShareCounts) -> Rows:
    """The share of every group in every class, with Wilson intervals."""
    total = np.broadcast_to(counts.rows.sum(axis=1, keepdims=True), counts.rows.shape)
    # The shares of two groups are one number told twice; of more, Šidák's value is safe.
    members = (total > 0).reshape(len(total), -1).sum(axis=1)
    if len(scope.groups) == 2:
        members = members // 2
    levels = [scope.level_within(stratum) for stratum in scope.strata]
    q = np.array([sidak(level, members=int(m)) for level, m in zip(levels, members)])[:, None, None]
    low, high = wilson(*counts.effective(z=scope.z), z=scope.z)
    family_low, family_high = wilson(*counts.effective(z=q), z=q)
    known = np.isfinite(counts.shares)
    return scope.block(
        total.shape,
        measure="group_share",
        **{"class": words(scope.classes)},
        group=words(scope.groups)[:, None],
        stratum=words(scope.strata)[:, None, None],
        value=counts.shares,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=total,
        method=counts.method,
        undefined=choose(~known, "no cases of the class"),
        no_interval=choose(known & np.isnan(low), ONE_CLUSTER),
    )


def correlation_rows(scope: Scope, cells: NormCells, *, end: str) -> Rows:
    """r of every cell with every norm.

    Cells of a class's own rows share no row, so Šidák's value is exact for them; those of the
    rest overlap, where it is on the safe side. The two are families of their own. Where the rest
    are several classes, no limit is held against it.
    """
    names = tuple(cells.r)
    r = np.stack([cells.r[name] for name in names])
    n = np.broadcast_to(cells.n, r.shape)
    p = np.stack([_intervals(cells, name, scope.z).p for name in names])
    q, adjusted = np.full(r.shape[:2], scope.z), np.full(r.shape, np.nan)
    for place in np.ndindex(*r.shape[:2]):
        members = int((np.isfinite(r[place]) & (n[place] > 3)).sum())
        q[place] = sidak(scope.level_within(scope.strata[place[1]]), members=members)
        adjusted[place] = benjamini_hochberg(p[place].ravel()).reshape(p[place].shape)
    found = [_intervals(cells, name, scope.z) for name in names]
    wide = [_intervals(cells, name, q[i][:, None, None]) for i, name in enumerate(names)]
    low, high = (np.stack([getattr(each, end_) for each in found]) for end_ in ("low", "high"))
    return scope.block(
        r.shape,
        measure=f"norm_correlation{end}",
        **{"class": words(cells.classes)},
        group=words(scope.groups)[:, None],
        stratum=words(scope.strata)[:, None, None],
        norm=words(names)[:, None, None, None],
        value=r,
        low=low,
        high=high,
        family_low=np.stack([each.low for each in wide]),
        family_high=np.stack([each.high for each in wide]),
        n=n,
        p=p,
        p_adjusted=adjusted,
        method=np.stack([_methods(cells, each.n) for each in found]),
        undefined=np.stack([cells.reason(name) for name in names]),
        no_interval=choose(np.isfinite(r) & np.isnan(low) & (n > 3), ONE_CLUSTER),
        unjudged=_pooled(scope, cells),
    )


def _pooled(scope: Scope, cells: NormCells) -> Column | None:
    """Why no limit is held against the rows of all other classes; None of a class's own rows."""
    if len(scope.classes) <= 2 or set(cells.classes) <= set(scope.classes):
        return None
    return choose([name not in scope.classes for name in cells.classes], POOLED)


def _intervals(cells: NormCells, norm: str, z: FloatArray | float) -> SampledInterval:
    return correlation_interval(cells.r[norm], cells.n, cells.sample, norm=norm, z=z)


def _methods(cells: NormCells, worth: FloatArray) -> Column:
    """How each correlation was made, and how many of the scores are tied."""
    made = [PLAIN] * worth.size if cells.sample is None else cells.sample.words(cells.n, worth)
    ties = [
        "no ties" if not share > 0 else f"{share:.1%} of scores tied"
        for share in cells.ties.ravel().tolist()
    ]
    return words(map(", ".join, zip(made, ties, strict=True))).reshape(worth.shape)


def trend_rows(
    scope: Scope, cells: NormCells, shares: FloatArray, *, end: str, bootstrap: bool
) -> tuple[list[Rows], list[dict[str, Any]]]:
    """ρ, its correction and the slope where group and norm agree; mean |r| for every pair.

    Beside the rows, what the report draws of each. `bootstrap` adds the interval by resampling.
    """
    parts: list[Rows] = []
    details: list[dict[str, Any]] = []
    for s, stratum in enumerate(scope.strata):
        for g, group in enumerate(scope.groups):
            for norm, r in cells.r.items():
                place = {"group": group, "norm": norm, "stratum": stratum}
                share = shares[s, g]
                shared = None
                if cells.sample is not None:
                    shared = cells.sample.shared_error(norm, s, g)
                line = ClassLine(
                    r=r[s, g], n=cells.worth(norm)[s, g], share=share, shared=shared, end=end
                )
                rows, numbers = _sizes(scope, line, place)
                if group == norm:
                    more, trend = _trend(scope, line, place, bootstrap)
                    rows, numbers = rows + more, numbers | trend
                parts += rows
                details.append(
                    place
                    | {"attribute": scope.attribute, "irrelevant": bool(end)}
                    | _points(scope, cells, norm, s, g, share)
                    | numbers
                )
    return parts, details


@dataclass(frozen=True, slots=True, kw_only=True)
class _Laid:
    """The sums of a tally of ranks as arrays (stratum, group, class), and the moves of clusters.

    Of clusters that stay in Spark there are `products` instead; where classes were joined one by
    one there are neither, and `clustered` says that the sums heed clusters all the same.
    """

    sums: dict[str, FloatArray]
    clustered: bool = False
    moves: Tally | None = None
    products: dict[str, FloatArray] | None = None

    def take(self, place: int) -> "_Laid":
        """The same of one class alone, which has no trend."""
        sums = {name: array[..., [place]] for name, array in self.sums.items()}
        return replace(self, sums=sums)


def _laid(ranks: Ranks, scope: Scope, *, key: str | None, values: Sequence[str]) -> _Laid:
    labels = {"group": scope.groups}
    if "stratum" in ranks.tally.labels:
        strata = tuple(name for name in scope.strata if name is not None)
        labels = {"stratum": strata, **labels}
    if key is not None:
        labels[key] = tuple(values)
    tally, moves = ranks.tally, ranks.moves
    for name, named in labels.items():
        tally = tally.relabel(name, named)
        moves = None if moves is None else moves.relabel(name, named)
    found = {name: tally.dense(list(labels), name) for name in tally.sums}
    if key is None:
        found = {name: array[..., None] for name, array in found.items()}
    if "stratum" not in labels:
        found = {name: array[None] for name, array in found.items()}
    if ranks.distant is None:
        return _Laid(sums=found, clustered=moves is not None, moves=moves)
    norms = tuple(name.removeprefix("xy:") for name in found if name.startswith("xy:"))
    part = PartMoves(labels=labels, key=key, n=found["n"], norms=norms)
    products = ranks.distant.add_up(part)
    products["group_size"] = found["n"].sum(axis=-1)
    many = found["clusters"] = products["clusters"]
    found["freedom"] = cluster_freedom(found["n"], products["size2"], many)
    for k in norms:
        own = products[f"inner:{k}"].diagonal(axis1=-2, axis2=-1)
        varies = (many > 1) & (found["xx"] > 0) & (found[f"yy:{k}"] > 0)
        with np.errstate(all="ignore"):
            found[f"variance:{k}"] = np.where(varies, (many - 1) / many * own, np.nan)
    return _Laid(sums=found, clustered=True, products=products)


def _cells(
    laid: Sequence[_Laid],
    classes: tuple[str, ...],
    scored: tuple[bool, ...],
    norms: Mapping[str, str],
    *,
    weighted: bool,
) -> NormCells:
    """The cells of everybody first, then stratum by stratum, as the scope has them."""
    sums = {name: np.concatenate([each.sums[name] for each in laid]) for name in laid[0].sums}
    n = sums["n"]
    with np.errstate(all="ignore"):
        spread = sums["xx"] - sums["x"] * sums["x"] / n
        ties = np.where(n > 0, sums["tied"] / n, np.nan)
        flat = (n >= FEWEST_ROWS) & ~(spread > CONSTANT * sums["xx"])
    r = {
        name: spearman_from_moments(
            n,
            x=sums["x"],
            xx=sums["xx"],
            y=sums[f"y:{name}"],
            yy=sums[f"yy:{name}"],
            xy=sums[f"xy:{name}"],
        )
        for name in norms
    }
    sample = None
    if "kish" in sums:
        moves = [each.moves for each in laid if each.moves is not None]
        apart = [each.products for each in laid if each.products is not None]
        products = None
        if apart:
            products = {k: np.concatenate([each[k] for each in apart]) for k in apart[0]}
        sample = NormSample(
            weighted=weighted,
            clustered=any(each.clustered for each in laid),
            kish=sums["kish"],
            clusters=sums["clusters"],
            freedom=sums["freedom"],
            variance={name: sums[f"variance:{name}"] for name in norms},
            moves=moves,
            products=products,
        )
    return NormCells(
        classes=classes,
        scored=scored,
        n=n,
        ties=ties,
        flat=flat.astype(np.float64),
        r=r,
        sample=sample,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLine:
    """The classes of one group and norm: correlations, the rows each is worth, and shares."""

    r: FloatArray
    n: FloatArray
    share: FloatArray
    shared: SharedError | None
    end: str

    @property
    def reliability(self) -> float:
        """Share of the variance of the correlations that is not sampling error."""
        return reliability(self.r, self.n, shared=self.shared)

    def stands_in(self) -> str | None:
        """Why the corrected numbers are judged in place of the plain ones; None where not."""
        found = self.reliability
        if found >= RELIABLE:
            return None
        return f"reliability {found:.2f} of the classes is under {RELIABLE}"


def _sizes(
    scope: Scope, line: ClassLine, place: dict[str, Any]
) -> tuple[list[Rows], dict[str, Any]]:
    """Mean |r| over classes, without what noise adds to it, and what noise alone would give."""
    name, end = "norm_correlation_mean", line.end
    size = mean_size(line.r, line.n, level=scope.level, shared=line.shared)
    latent = latent_mean_size(line.share, line.r, line.n, level=scope.level, shared=line.shared)
    floor = size.estimate
    if floor.value is not None:
        floor = Estimate(
            value=size.floor,
            level=scope.level,
            n=floor.n,
            method="expected if every correlation were 0",
        )
    plain, freed = size.estimate, latent
    reason = line.stands_in() if latent.value is not None else None
    if reason is not None:
        plain, freed = _stand_in(plain, freed, f"{name}{end}", f"{name}_corrected{end}", reason)
    judged_as = None if reason is None else f"{name}{end}"
    rows = [
        _one(scope, f"{name}{end}", plain, place),
        _one(scope, f"{name}_corrected{end}", freed, place | {"judged_as": judged_as}),
        _one(scope, f"{name}_null_level{end}", floor, place),
    ]
    return rows, {
        "mean": size.estimate.value,
        "mean_corrected": latent.value,
        "floor": number(size.floor),
        "floor_high": number(size.floor_high),
    }


def _stand_in(
    plain: Estimate, freed: Estimate, measure: str, stand_in: str, reason: str
) -> tuple[Estimate, Estimate]:
    """Both estimates, each saying that the second is judged in place of the first."""
    one, other = with_stand_in(plain.method, freed.method, measure, stand_in, reason)
    return replace(plain, method=one), replace(freed, method=other)


def _trend(
    scope: Scope, line: ClassLine, place: dict[str, Any], bootstrap: bool
) -> tuple[list[Rows], dict[str, Any]]:
    """How r rises with the group's share over classes: by rank, corrected, and as a slope."""
    name, end, trust = "norm_bias", line.end, line.reliability
    rho = rank_trend(line.share, line.r, level=scope.level, seed=scope.seed, shared=line.shared)
    rise = slope(line.share, line.r, line.n, level=scope.level, shared=line.shared)
    freed = corrected(rho, reliability=trust)
    lead, led = leading_trend(rho, reliability=trust)
    plain, reason = rho, line.stands_in() if led else None
    if reason is not None:
        plain, freed = _stand_in(rho, lead, f"{name}{end}", f"{name}_corrected{end}", reason)
    judged_as = None if reason is None else f"{name}{end}"
    rows = [
        _one(scope, f"{name}{end}", plain, place),
        _one(scope, f"{name}_corrected{end}", freed, place | {"judged_as": judged_as}),
        _one(scope, f"norm_slope{end}", rise, place),
    ]
    resampled: list[float | None] = [None, None]
    if bootstrap:
        again = bootstrap_trend(
            line.share, line.r, line.n, level=scope.level, draws=DRAWS, seed=scope.seed
        )
        resampled = [again.low, again.high]
    return rows, {
        "bias": rho.value,
        "bias_interval": [rho.low, rho.high],
        "bias_corrected": freed.value,
        "bias_corrected_interval": [freed.low, freed.high],
        "corrected_leads": led,
        "bootstrap_interval": resampled,
        "reliability": number(trust),
        "slope": rise.value,
    }


def _points(
    scope: Scope, cells: NormCells, norm: str, s: int, g: int, share: FloatArray
) -> dict[str, Any]:
    """The classes of one group and norm as the report draws them."""
    r, n = cells.r[norm][s, g], cells.n[s, g]
    shown = n >= HIDDEN_UNDER
    found = _intervals(cells, norm, scope.z)
    return {
        "classes": list(cells.classes),
        "share": _plain(share),
        "correlation": _plain(np.where(shown, r, np.nan)),
        "low": _plain(np.where(shown, found.low[s, g], np.nan)),
        "high": _plain(np.where(shown, found.high[s, g], np.nan)),
        "n": [int(v) for v in n],
        "ties": _plain(cells.ties[s, g]),
        "detectable": _plain(smallest_detectable(found.n[s, g], level=scope.level)),
    }


def _one(scope: Scope, measure: str, estimate: Estimate, place: dict[str, Any]) -> Rows:
    """An aggregate over classes: a family of one."""
    value, low, high, p = (
        np.nan if v is None else v
        for v in (estimate.value, estimate.low, estimate.high, estimate.p)
    )
    return scope.block(
        (1,),
        measure=measure,
        value=value,
        low=low,
        high=high,
        family_low=low,
        family_high=high,
        n=estimate.n,
        p=p,
        p_adjusted=p,
        method=estimate.method or None,
        undefined=estimate.undefined,
        **place,
    )


def _plain(values: FloatArray) -> list[float | None]:
    """Numbers as JSON holds them."""
    return [number(float(value)) for value in values]
