"""The rows of the norms lens: correlations class by class, and how they rise with the share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.lenses.norm_cells import Cells, Places
from evenhand.lenses.rows import Rows, choose, words
from evenhand.lenses.threshold_details import HIDDEN_UNDER
from evenhand.stats.estimate import Estimate, FloatArray, critical, number
from evenhand.stats.families import benjamini_hochberg, sidak
from evenhand.stats.ranks import bonett_wright, correlation_p, smallest_detectable
from evenhand.stats.rates import wilson
from evenhand.stats.trend import (
    bootstrap_trend,
    corrected,
    mean_size,
    rank_trend,
    reliability,
    slope,
)

LENS = "norms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the rows of one attribute share, and their making."""

    attribute: str
    places: Places
    counts: FloatArray
    level: float
    seed: int
    bootstrap: bool = True

    @property
    def shares(self) -> FloatArray:
        """Share of each group among the people of each class: (stratum, group, class)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    def block(self, shape: tuple[int, ...], **columns: Any) -> Rows:
        """Rows of this lens and attribute."""
        return Rows.block(shape, lens=LENS, attribute=self.attribute, level=self.level, **columns)

    def share_rows(self) -> Rows:
        """The share of every group in every class, with Wilson intervals."""
        total = np.broadcast_to(self.counts.sum(axis=1, keepdims=True), self.counts.shape)
        # The shares of two groups are one number told twice; of more, Šidák's value is safe.
        told = total > 0
        members = told.reshape(len(told), -1).sum(axis=1)
        if len(self.places.groups) == 2:
            members = members // 2
        q = np.array([sidak(self.level, members=int(m)) for m in members])[:, None, None]
        low, high = wilson(self.counts, total, z=critical(self.level))
        family_low, family_high = wilson(self.counts, total, z=q)
        return self.block(
            self.counts.shape,
            measure="group_share",
            **{"class": words(self.places.classes)},
            group=words(self.places.groups)[:, None],
            stratum=words(self.places.strata)[:, None, None],
            value=self.shares,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=total,
            method="wilson",
            undefined=choose(~told, "no cases of the class"),
        )

    def correlation_rows(self, cells: Cells, *, end: str) -> Rows:
        """r of every cell with every norm.

        Cells of a class's own rows share no row, so Šidák's value is exact for them; those of the
        rest overlap, where it is on the safe side. The two are families of their own.
        """
        names = tuple(cells.r)
        r = np.stack([cells.r[name] for name in names])
        n = np.broadcast_to(cells.n, r.shape)
        z = critical(self.level)
        p = correlation_p(r, n)
        q, adjusted = np.full(r.shape[:2], z), np.full(r.shape, np.nan)
        for place in np.ndindex(*r.shape[:2]):
            members = int((np.isfinite(r[place]) & (n[place] > 3)).sum())
            q[place] = sidak(self.level, members=members)
            adjusted[place] = benjamini_hochberg(p[place].ravel()).reshape(p[place].shape)
        low, high = bonett_wright(r, n, z=z)
        family_low, family_high = bonett_wright(r, n, z=q[:, :, None, None])
        shown = [
            "Spearman, Bonett-Wright interval, "
            + ("no ties" if not share > 0 else f"{share:.1%} of scores tied")
            for share in cells.ties.ravel().tolist()
        ]
        return self.block(
            r.shape,
            measure=f"norm_correlation{end}",
            **{"class": words(cells.classes)},
            group=words(self.places.groups)[:, None],
            stratum=words(self.places.strata)[:, None, None],
            norm=words(names)[:, None, None, None],
            value=r,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=n,
            p=p,
            p_adjusted=adjusted,
            method=words(shown).reshape(cells.ties.shape),
            undefined=np.stack([cells.reason(name) for name in names]),
        )

    def trend_rows(self, cells: Cells, *, end: str) -> tuple[list[Rows], list[dict[str, Any]]]:
        """ρ, its correction and the slope where group and norm agree; mean |r| for every pair."""
        parts: list[Rows] = []
        details: list[dict[str, Any]] = []
        for s, stratum in enumerate(self.places.strata):
            for g, group in enumerate(self.places.groups):
                for norm, r in cells.r.items():
                    place = {"group": group, "norm": norm, "stratum": stratum}
                    made, told = self._trend(r[s, g], cells.n[s, g], self.shares[s, g], place, end)
                    parts += made
                    details.append(
                        place
                        | {"attribute": self.attribute, "irrelevant": bool(end)}
                        | self._points(cells, norm, s, g)
                        | told
                    )
        return parts, details

    def _trend(
        self, r: FloatArray, n: FloatArray, share: FloatArray, place: dict[str, Any], end: str
    ) -> tuple[list[Rows], dict[str, Any]]:
        size = mean_size(r, n, level=self.level)
        parts = [
            self._one(f"norm_correlation_mean{end}", size.estimate, place),
            self._one(
                f"norm_correlation_mean_null_level{end}",
                self._floor(size.floor, size.estimate),
                place,
            ),
        ]
        told: dict[str, Any] = {
            "mean": size.estimate.value,
            "floor": number(size.floor),
            "floor_high": number(size.floor_high),
        }
        if place["group"] != place["norm"]:
            return parts, told
        rho = rank_trend(share, r, level=self.level, seed=self.seed)
        trust = reliability(r, n)
        rise = slope(share, r, n, level=self.level)
        parts += [
            self._one(f"norm_bias{end}", rho, place),
            self._one(f"norm_bias_corrected{end}", corrected(rho, reliability=trust), place),
            self._one(f"norm_slope{end}", rise, place),
        ]
        draws = 2_000 if self.bootstrap else 1
        again = bootstrap_trend(share, r, n, level=self.level, draws=draws, seed=self.seed)
        told |= {
            "bias": rho.value,
            "bias_interval": [rho.low, rho.high],
            "bootstrap_interval": [again.low, again.high] if self.bootstrap else [None, None],
            "reliability": number(trust),
            "slope": rise.value,
        }
        return parts, told

    def _floor(self, floor: float, size: Estimate) -> Estimate:
        if size.value is None:
            return size
        return Estimate(
            value=floor, level=self.level, n=size.n, method="expected if every correlation were 0"
        )

    def _points(self, cells: Cells, norm: str, s: int, g: int) -> dict[str, Any]:
        """The classes of one group and norm as the report draws them."""
        r, n = cells.r[norm][s, g], cells.n[s, g]
        r = np.where(n < HIDDEN_UNDER, np.nan, r)
        low, high = bonett_wright(r, n, z=critical(self.level))
        return {
            "classes": list(cells.classes),
            "share": plain(self.shares[s, g]),
            "correlation": plain(r),
            "low": plain(low),
            "high": plain(high),
            "n": [int(v) for v in n],
            "ties": plain(cells.ties[s, g]),
            "detectable": plain(smallest_detectable(n, level=self.level)),
        }

    def _one(self, measure: str, estimate: Estimate, place: dict[str, Any]) -> Rows:
        """An aggregate over classes: a family of one."""
        value, low, high, p = (
            np.nan if v is None else v
            for v in (estimate.value, estimate.low, estimate.high, estimate.p)
        )
        return self.block(
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


def plain(values: FloatArray | Sequence[float]) -> list[float | None]:
    """Numbers as JSON holds them."""
    return [number(float(value)) for value in values]
