"""The table of claims: each verdict follows the numbers, whichever way they point."""

from __future__ import annotations

import pytest

from hustings.lab.figures.announce.against_al import CROSSING
from hustings.lab.figures.announce.claims_table import CLAIMS, TABLE
from hustings.lab.figures.announce.measurements import CORRELATED, NONE, UNCORRELATED
from hustings.lab.figures.figure import ClaimVerdict, Rendered
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.writing import as_page
from tests.unit.lab.figures.announce.supposed import Change, Means, block, means, suppose

HOLDS, PARTLY, FAILS = ClaimVerdict.HOLDS, ClaimVerdict.PARTLY, ClaimVerdict.FAILS

# In a world in which the corrected closed forms are true.
TRUE = {
    "without loss the delay of LE-S does not depend on N": HOLDS,
    "nor does it under correlated loss": HOLDS,
    "under uncorrelated loss it levels off as N grows": FAILS,
    "for small N, LE-S is behind AL by E[t_s]": HOLDS,
    "LE-S overtakes AL at N = 200 (l = 0.4)": PARTLY,  # with adjusted loss only
    "in the first round LE-M is SUP": HOLDS,
    "LE-M needs less time and fewer messages than LE-S": HOLDS,
    "SUP is a lower bound for LE-M": PARTLY,  # not without loss
    "LE-S needs more time and messages than SUP": HOLDS,
    "uncorrelated loss is the worst case": HOLDS,
    "a leader's departure takes as long to mend under every loss model": PARTLY,
    "after a better member joins it takes as long as after a start": HOLDS,
    "after a worse member joins LE-S and LE-A take as long": HOLDS,
    "T_L > T_A E[# consecutive lost] avoids false departures": FAILS,
    "exponential timers give fewer messages": PARTLY,  # in large groups
}


def made(change: Change | None = None) -> Rendered:
    return TABLE.make(suppose(TABLE.cells(), change), 1)


def verdicts(shown: Rendered) -> dict[str, ClaimVerdict]:
    return {each.claim: each.verdict for each in shown.findings if each.theirs}


def test_if_the_closed_forms_are_true() -> None:
    shown = made()
    assert verdicts(shown) == TRUE
    assert shown.sound
    assert shown.verdict == "reproduced in part"
    assert [row[2] for row in shown.rows] == [verdict.value for verdict in TRUE.values()]


def test_every_claim_has_a_row_with_its_section_and_numbers() -> None:
    shown = made()
    assert shown.columns == ["claim", "section", "verdict", "evidence"]
    assert len(shown.rows) == len(CLAIMS) == 15
    for claim, row in zip(CLAIMS, shown.rows, strict=True):
        assert row[0] == claim.says
        assert str(row[1]).startswith("5.")
        assert any(letter.isdigit() for letter in str(row[3]))


def test_the_page_tells_each_claim_once() -> None:
    page = as_page(made())
    for claim in CLAIMS:
        assert page.count(claim.says) == 1


def change_of(
    protocol: str,
    factor: float,
    metric: str,
    *,
    loss_model: str | None = None,
    scenario: str = "start",
    collision: bool | None = None,
) -> Change:
    """A world in which one metric of one protocol is another, the more so in larger groups."""

    def change(cell: Measurement, supposed: Means) -> Means:
        if (
            cell.protocol == protocol
            and cell.scenario == scenario
            and loss_model in (None, cell.loss_model)
            and collision in (None, bool(cell.collision))
            and metric in supposed
        ):
            supposed[metric] *= 1.0 + (factor - 1.0) * min(1.0, cell.members / 100)
        return supposed

    return change


def level(cell: Measurement, supposed: Means) -> Means:
    """Groups beyond fifty are no slower than fifty."""
    if cell.protocol == "le-s" and cell.loss_model == UNCORRELATED and cell.members > 50:
        supposed["tmax"] = 4.9
    return supposed


def patient(cell: Measurement, supposed: Means) -> Means:
    """Hardly anybody ever gives a living leader up."""
    return {name: 0.001 if name.startswith("incons") else v for name, v in supposed.items()}


def as_printed(cell: Measurement, supposed: Means) -> Means:
    """Departures are mended as the thesis has it."""
    if cell.scenario == "leader-crash":
        T_L = float(dict(cell.settings)["T_L"])
        supposed["reestablishment_delay"] = T_L + 0.2
    return supposed


def steep(cell: Measurement, supposed: Means) -> Means:
    if ("law", "exponential") in cell.settings:
        supposed["num_msgs"] = 2.0
    return supposed


def late(cell: Measurement, supposed: Means) -> Means:
    """AL degrades beyond the crossing, without adjusted loss too."""
    if cell.protocol == "al" and cell.members > CROSSING:
        supposed["tmax"] *= 1.5
    return supposed


OTHERWISE: list[tuple[str, Change, ClaimVerdict]] = [
    ("without loss the delay", change_of("le-s", 2.0, "tmax", loss_model=NONE), FAILS),
    ("nor does it under", change_of("le-s", 2.0, "tmax", loss_model=CORRELATED), FAILS),
    ("levels off", level, HOLDS),
    ("behind AL by", change_of("al", 0.5, "tmax", collision=False), FAILS),
    ("overtakes AL", late, HOLDS),
    ("overtakes AL", change_of("al", 0.5, "tmax", collision=True), FAILS),
    ("in the first round", change_of("le-m", 2.0, "first_round"), PARTLY),
    ("LE-M needs less", change_of("le-m", 2.0, "tmax"), PARTLY),
    ("a lower bound", change_of("le-m", 200.0, "tmax", loss_model=NONE), PARTLY),
    ("LE-S needs more", change_of("sup", 99.0, "tmax"), PARTLY),
    ("the worst case", change_of("le-a", 9.0, "num_msgs", loss_model=CORRELATED), PARTLY),
    ("a leader's departure", as_printed, HOLDS),
    (
        "a better member joins",
        change_of("le-s", 2.0, "reestablishment_delay", scenario="join-larger"),
        FAILS,
    ),
    (
        "a worse member joins",
        change_of("le-a", 2.0, "reestablishment_delay", scenario="join-smaller"),
        FAILS,
    ),
    ("avoids false departures", patient, HOLDS),
    ("exponential timers", steep, HOLDS),
]


@pytest.mark.parametrize("words, change, verdict", OTHERWISE, ids=range(len(OTHERWISE)))
def test_other_numbers_give_other_verdicts(
    words: str, change: Change, verdict: ClaimVerdict
) -> None:
    (found,) = (each for claim, each in verdicts(made(change)).items() if words in claim)
    assert found is verdict


def test_runs_that_differ_from_the_closed_forms_are_seen() -> None:
    assert not made(change_of("le-s", 1.2, "num_msgs", loss_model=CORRELATED)).sound


def test_few_runs_decide_nothing() -> None:
    results = {cell: block(means(cell), runs=50) for cell in TABLE.cells()}
    assert set(verdicts(TABLE.make(results, 1)).values()) == {ClaimVerdict.UNDECIDED}
