"""The shape of a record: what whoever renders it may count on, lens by lens.

Names that a shape does not know are left alone, so that a record may say more than is read.
"""

from evenhand.files.documents import (
    Shape,
    anything,
    both,
    columns,
    either,
    flag,
    list_of,
    map_of,
    maybe,
    number,
    one_of,
    table,
    text,
    whole,
)
from evenhand.lenses.rows import ASIDES, COLUMNS, KNOWN_SHARES, WORDS

_NUMBER, _TEXT = maybe(number), maybe(text)
_NUMBERS, _NAMES = list_of(_NUMBER), list_of(text)
_VERDICT = one_of("outside", "cannot tell", "within", "not assessed")
_ROW_COLUMNS: dict[str, Shape] = {n: _TEXT if n in WORDS else _NUMBER for n in COLUMNS}
_ROW = table({"lens": text, "measure": text}, {**_ROW_COLUMNS, "lens": text, "measure": text})
_CLAIM = table(
    {"direction": text},
    dict.fromkeys(("attribute", "measure", "group", "reference", "class", "stratum"), _TEXT),
)
_SETTLE = table({"unit": text}, {"how_many": _NUMBER, "reason": _TEXT, "why": _TEXT})
_FINDING = table(
    {"sentence": text, "verdict": _VERDICT},
    {
        **dict.fromkeys(("short", "headline", "detail", "line", "summary", "next", "whose"), _TEXT),
        "claim": maybe(_CLAIM),
        "numbers": maybe(list_of(whole)),
        "certainty": maybe(table({"kind": text}, {"level": _NUMBER})),
        "settle": maybe(_SETTLE),
        "lens": text,
        "layer": text,
        "owner": _TEXT,
        "measure": text,
        "attribute": _TEXT,
        "rows": list_of(whole),
    },
)
_ROLE = either(_TEXT, _NUMBER, flag, _NAMES, _NUMBERS, map_of(_NUMBER), map_of(_TEXT),
               noun="the name of a column, a number, or several of them")  # fmt: skip
_ANSWER = table({"question": text}, {"text": _TEXT, "owner": _TEXT, "date": _TEXT,
                                     "consulted": _NAMES})  # fmt: skip
_CHOSEN = ("cost_ratio", "low", "high", "implied_threshold", "implied_threshold_low",
           "implied_threshold_high")  # fmt: skip
_CHARTER = table(
    {"sentence": text},
    {
        "system": table(
            {},
            {
                **dict.fromkeys(("name", "decision", "of", "decided"), _TEXT),
                **dict.fromkeys(("item", "truth", "class"), maybe(list_of(text, length=2))),
                "false_positive": list_of(text, length=2),
                "false_negative": list_of(text, length=2),
                "groups": maybe(map_of(map_of(text))),
            },
        ),
        "layers": map_of(
            table(
                {},
                {
                    "owner": _TEXT,
                    "date": _TEXT,
                    "review_by": _TEXT,
                    "consulted": _NAMES,
                    "answers": list_of(_ANSWER),
                },
            )
        ),
        "stakeholders": list_of(
            table({"name": text}, {"interest": _TEXT, "consulted": maybe(flag)})
        ),
        "catalogue": list_of(
            table(
                {"outcome": text, "kind": text, "borne_by": text, "what": text},
                {"attribute": _TEXT, "group": _TEXT},
            )
        ),
        "choices": list_of(
            table(
                dict.fromkeys(_CHOSEN, number),
                dict.fromkeys(
                    ("attribute", "group", "decided_by", "decided_on", "review_by", "reason"),
                    _TEXT,
                ),
            )
        ),
    },
)
_TRIED = columns(
    {"bandwidth": list_of(number), "value": _NUMBERS},
    dict.fromkeys(
        ("n", "low", "high", "cost_ratio", "cost_ratio_low", "cost_ratio_high"), _NUMBERS
    ),
)
_POINT = table(
    {"threshold": _NUMBER, "cost": number},
    dict.fromkeys(
        (
            "false_positives",
            "false_negatives",
            "selection_rate",
            "extra_cost",
            "extra_low",
            "extra_high",
            "implied",
            "implied_low",
            "implied_high",
        ),
        _NUMBER,
    ),
)
_PRESENT = both(_POINT, table(dict.fromkeys(("extra_cost", "extra_low", "extra_high"), number)))
_CURVE = columns(
    {
        "group": text,
        "n": number,
        "cost_ratio": number,
        "cheapest": _POINT,
        "thresholds": _NUMBERS,
        "cost": list_of(number),
        "false_positives": _NUMBERS,
        "false_negatives": _NUMBERS,
    },
    {
        "attribute": _TEXT,
        "present": maybe(_PRESENT),
        "threshold_low": _NUMBER,
        "threshold_high": _NUMBER,
    },
)
_EQUALISED = table(
    {
        "rate": text,
        "attribute": text,
        "gap_at_cheapest": _NUMBER,
        "gap": _NUMBER,
        "extra_cost": number,
        "groups": map_of(_POINT),
    },
    {"reference": _TEXT},
)
_EVIDENCE = table({"score": number, "truth": _TEXT}, {"text": _TEXT})
# How often the truth is known, where that forbids to judge rows, under one name in every lens.
_PLACE = dict.fromkeys(("attribute", "group", "reference", "class", "stratum"), _TEXT)
_KNOWN = {
    KNOWN_SHARES: list_of(
        table(
            {
                **_PLACE,
                **dict.fromkeys(("over_groups", "decided"), flag),
                **dict.fromkeys(("of", "where", "whom"), _TEXT),
                "who": text,
                "shares": list_of(number, length=2),
            }
        )
    )
}
_AUDITED_CUT = table({"attribute": text, "group": text, "threshold": number, "verdict": _VERDICT})
_THRESHOLDS = table(
    {},
    {
        "positive": _TEXT,
        **_KNOWN,
        "attributes": list_of(
            table(
                {"attribute": text},
                {
                    "groups": list_of(
                        table(
                            {"group": text},
                            {
                                **dict.fromkeys(("threshold", "bandwidth", "raw"), _NUMBER),
                                "sensitivity": maybe(_TRIED),
                            },
                        )
                    ),
                    "evidence": map_of(list_of(_EVIDENCE)),
                },
            )
        ),
        "cost_curves": maybe(
            table({}, {"groups": list_of(_CURVE), "equalised": list_of(_EQUALISED)})
        ),
        "audited_cuts": maybe(list_of(_AUDITED_CUT)),
    },
)  # fmt: skip
_GRID = list_of(_NUMBERS)
_QUANTITY = columns({"value": _GRID, "low": _GRID, "high": _GRID})
_GAP = maybe(table({}, dict.fromkeys(("value", "low", "high"), _NUMBER)))
# Records of earlier versions have the value alone.
_SPLIT = either(_NUMBER, _GAP, noun="a number or one with its interval")
_PAIR = {"group": text, "reference": text}
_LABELERS = table(
    {},
    {
        "positive": _TEXT,
        **_KNOWN,
        "attributes": list_of(
            table(
                {"attribute": text},
                {
                    "forest": maybe(
                        table(
                            {"labelers": _NAMES, "groups": _NAMES},
                            {
                                "labels": _GRID,
                                "criterion": _QUANTITY,
                                "separation": _QUANTITY,
                                "pooled": maybe(flag),
                                "reliability": maybe(map_of(_NUMBERS)),
                            },
                        )
                    ),
                    "pooled_contrasts": maybe(
                        list_of(table(_PAIR, {"criterion_gap": _GAP, "separation_gap": _GAP}))
                    ),
                    "splits": maybe(
                        list_of(
                            table(
                                _PAIR,
                                dict.fromkeys(("total", "prevalence", "bar", "skill"), _SPLIT),
                            )
                        )
                    ),
                    "times": maybe(
                        list_of(
                            table(
                                {},
                                {
                                    "group": _TEXT,
                                    **dict.fromkeys(
                                        (
                                            "labels",
                                            "mean_seconds",
                                            "share_right",
                                            "drift",
                                            "boundary",
                                        ),
                                        _NUMBER,
                                    ),
                                },
                            )
                        )
                    ),
                },
            )
        ),
    },
)
_QUADRANT = columns(
    {
        "measure": _NAMES,
        "class": list_of(_TEXT),
        "group": _NAMES,
        "reference": _NAMES,
        "statistical": _NUMBERS,
        "counterfactual": _NUMBERS,
        "signs": list_of(_TEXT),
    },
    dict.fromkeys(
        ("statistical_low", "statistical_high", "counterfactual_low", "counterfactual_high"),
        _NUMBERS,
    ),
)
_COUNTERFACTUAL = table(
    {}, {"positive": _TEXT, "quadrant": maybe(_QUADRANT), "flipped": list_of(map_of(_TEXT))}
)
_TREND = both(
    columns(
        {"classes": _NAMES, "correlation": _NUMBERS},
        dict.fromkeys(("share", "low", "high", "n", "ties", "detectable"), maybe(_NUMBERS)),
    ),
    table(
        {"group": text},
        {
            **dict.fromkeys(("mean", "floor", "floor_high", "bias", "slope"), _NUMBER),
            "bias_interval": maybe(list_of(_NUMBER, length=2)),
            "norm": _TEXT,
            "stratum": _TEXT,
            "attribute": _TEXT,
            "irrelevant": maybe(flag),
        },
    ),
)
_NORMS = table(
    {},
    {
        "trends": list_of(_TREND),
        "unknown": maybe(
            list_of(
                table(
                    {"attribute": text, "norm": text, "irrelevant": flag, "why": text},
                    dict.fromkeys(("value", "low", "high"), _NUMBER),
                )
            )
        ),
        "words_toward": _TEXT,
        "words": maybe(
            list_of(
                table(
                    {"class": text, "word": text, "classifier": number, "norm": number},
                    {"relevant": maybe(flag)},
                )
            )
        ),
    },
)
RECORD = table(
    {
        "made": table({}, {"at": text, "version": text, "engine": text, "level": number,
                           "seed": whole, "limits": whole, "arguments": map_of(anything)}),
        "data": table(
            {},
            {
                "source": text,
                "rows": maybe(whole),
                "excluded": list_of(table({"reason": text, "rows": number})),
                "roles": both(map_of(_ROLE), table({}, {"group": maybe(_NAMES)})),
                "fingerprint": text,
                "lenses": map_of(_TEXT),
                "heeded": list_of(text),
            },
        ),
        "results": list_of(_ROW),
        "findings": list_of(_FINDING),
        "verdict": _VERDICT,
    },
    {
        "charter": maybe(_CHARTER),
        "asides": table({}, dict.fromkeys(ASIDES, map_of(list_of(whole)))),
        "notes": maybe(list_of(text)),
        "sentence": _TEXT,
        "headline": _TEXT,
        "remark": _TEXT,
        "details": maybe(
            table(
                {},
                {
                    "statistical": table({}, {"positive": _TEXT, **_KNOWN}),
                    "counterfactual": _COUNTERFACTUAL,
                    "thresholds": _THRESHOLDS,
                    "labelers": _LABELERS,
                    "norms": _NORMS,
                },
            )
        ),
    },
)  # fmt: skip
