"""The claims that `make simulate` tries: their counting, their table, and that they hold."""

import numpy as np
import pytest

from claims.claim import Claim, Outcome, registry, run
from claims.page import END, START, held, keep, kept, table, write

# Whole audits, and series judged at every look, are slow.
WHOLE = ("audits:", "looks:")
AUDITS = [claim for claim in registry() if any(mark in claim.setting for mark in WHOLE)]
TOLD = [claim for claim in registry() if claim.kind == "told"]
STATISTICS = [claim for claim in registry() if claim not in (*AUDITS, *TOLD)]


def coin(chance: float = 0.5, **changes) -> Claim:
    """A claim that comes true by chance; every tenth repetition the question does not arise."""

    def simulate(generator: np.random.Generator, repetitions: int) -> np.ndarray:
        drawn = (generator.random(repetitions) < chance).astype(float)
        drawn[::10] = np.nan
        return drawn

    shape = {"measure": "coin", "setting": "fair", "wanted": (0.45, 0.55), "simulate": simulate}
    return Claim(**(shape | changes))


def test_hits_are_counted_where_the_question_arose() -> None:
    (outcome,) = run([coin()], repetitions=1000)
    assert outcome.repetitions == 900
    assert outcome.rate == pytest.approx(0.5, abs=0.06)
    assert outcome.error == pytest.approx(np.sqrt(0.25 / 900), rel=0.02)
    assert outcome.verdict == "holds"
    assert run([coin()], repetitions=1000)[0].hits == outcome.hits
    assert run([coin()], repetitions=1000, seed=1)[0].hits != outcome.hits


def test_verdicts_allow_two_errors() -> None:
    assert run([coin(0.3)], repetitions=1000)[0].verdict == "below"
    assert run([coin(0.7)], repetitions=1000)[0].verdict == "above"
    assert Outcome(claim=coin(), hits=0.0, repetitions=0).verdict == "never arose"
    assert Outcome(claim=coin(wanted=(0.0, 0.05)), hits=0.0, repetitions=50).error > 0


def test_slow_claims_take_their_share() -> None:
    outcomes = run([coin(), coin(setting="slow", share=0.1)], repetitions=400)
    assert [o.repetitions for o in outcomes] == [360, 36]
    assert [o.claim.setting for o in outcomes] == ["fair", "slow"]


def test_the_table_goes_between_its_marks(tmp_path) -> None:
    outcomes = [
        Outcome(claim=coin(), hits=480.0, repetitions=1000),
        Outcome(
            claim=coin(measure="die", kind="error", wanted=(0.0, 0.05)),
            hits=160.0,
            repetitions=1000,
        ),
        Outcome(claim=coin(measure="band", wanted=(0.93, 1.0)), hits=990.0, repetitions=1000),
        Outcome(
            claim=coin(measure="cent", wanted=(0.93, 1.0), said="few cases"),
            hits=850.0,
            repetitions=1000,
        ),
    ]
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{START}\nstale\n{END}\n\nafter\n")
    write(outcomes, page)
    text = page.read_text()
    assert "stale" not in text
    assert text.startswith("before\n\n" + START)
    assert text.endswith(END + "\n\nafter\n")
    assert "| coin | fair | .450–.550 | .480 ± .016 | 1,000 |  |" in text
    assert "| die | fair | ≤ .050 | .160 ± .012 | 1,000 | **above** |" in text
    assert "| band | fair | ≥ .930 | .990 ± .003 | 1,000 |  |" in text
    assert "Wider than they need be (.980 and more): band (fair) .990." in text
    assert "Not as wanted: die (fair) .160." in text
    assert "| cent | fair | ≥ .930 | .850 ± .011 | 1,000 | **below** |" in text
    assert "cent (fair) .850; its `method` says so beside it: “few cases”." in text
    write(outcomes, page)
    assert page.read_text() == text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="lacks the marks"):
        write(outcomes, page)
    assert table([]) == ""


def test_rows_that_are_not_simulated_again_stay(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{START}\n{END}\n")
    both = [coin(), coin(measure="die", kind="error", wanted=(0.0, 0.05))]
    first = [Outcome(claim=claim, hits=481.0, repetitions=1001) for claim in both]
    write(first, page)
    text = page.read_text()
    kept = held(both, page)
    assert [outcome.repetitions for outcome in kept] == [1001, 1001]
    write(kept, page)
    assert page.read_text() == text


def test_a_run_that_is_ended_early_keeps_its_chunks(tmp_path) -> None:
    both = [coin(), coin(measure="die")]
    seen = []

    def so_far(outcome: Outcome) -> None:
        keep(outcome, folder=tmp_path)
        seen.append(outcome.repetitions)

    outcomes = run(both, repetitions=250, so_far=so_far)
    assert seen == [90, 180, 225] * 2
    again = kept([*both, coin(measure="card")], tmp_path)
    assert [(o.claim.name, o.hits, o.repetitions) for o in again] == [
        (o.claim.name, o.hits, o.repetitions) for o in outcomes
    ]


def test_names_are_unique() -> None:
    names = [claim.name for claim in registry()]
    assert len(set(names)) == len(names)


@pytest.mark.heavy
def test_processes_do_not_matter() -> None:
    chosen = [claim for claim in STATISTICS if claim.name.startswith("impact ratio")]
    alone = run(chosen, repetitions=250)
    together = run(chosen, repetitions=250, processes=2)
    assert [o.hits for o in alone] == [o.hits for o in together]


LOOKS = [claim for claim in AUDITS if "looks:" in claim.setting]
TRIED = ("alarm of a change", "alarm of a limit", "jump of .10 dated")
QUICK = [
    claim
    for claim in AUDITS
    if claim not in LOOKS
    or (claim.setting == "looks: 500 a week" and claim.measure.startswith(TRIED))
]


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: claim.name)
def test_claims_of_audits_can_be_tried(claim) -> None:
    """Whether they hold is for `make simulate` to say."""
    (outcome,) = run([claim], repetitions=round(2 / claim.share))
    assert outcome.repetitions <= 2


BESIDE = [claim for claim in TOLD if claim.setting.startswith("3,000 rows, 1 point ")]


@pytest.mark.parametrize("claim", BESIDE, ids=lambda claim: claim.measure)
def test_what_is_told_beside_a_limit_holds(claim) -> None:
    (outcome,) = run([claim], repetitions=150, seed=1)
    assert outcome.repetitions == 150
    assert outcome.verdict == "holds", f"{outcome.rate:.3f} ± {outcome.error:.3f}"


@pytest.mark.heavy
@pytest.mark.parametrize("claim", STATISTICS, ids=lambda claim: claim.name)
def test_claims_of_the_statistics_hold(claim) -> None:
    (outcome,) = run([claim], repetitions=1200, seed=1)
    expected = "below" if claim.said else "holds"
    assert outcome.verdict == expected, f"{outcome.rate:.3f} ± {outcome.error:.3f}"


@pytest.mark.heavy
@pytest.mark.parametrize("claim", AUDITS, ids=lambda claim: claim.name)
def test_claims_of_audits_hold(claim) -> None:
    many = round(40 / claim.share) if claim in LOOKS else 600
    (outcome,) = run([claim], repetitions=many, seed=1)
    assert outcome.verdict == "holds", f"{outcome.rate:.3f} ± {outcome.error:.3f}"
