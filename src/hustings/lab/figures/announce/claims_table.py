"""The table announce-claims: every claim with its verdict."""

from __future__ import annotations

from hustings.lab.figures.announce.against_sup import AGREE, FAMILY
from hustings.lab.figures.announce.claims import COMPARISONS, Look
from hustings.lab.figures.announce.upsets import UPSETS
from hustings.lab.figures.figure import TableContent, TableFigure
from hustings.lab.figures.judging import agrees
from hustings.lab.figures.measurement import FAST_TARGET, TARGET
from hustings.lab.figures.measuring import Results

CLAIMS = (*COMPARISONS, *UPSETS)


def _fill(results: Results) -> TableContent:
    look = Look(results)
    findings = [claim.judge(claim.says, look) for claim in CLAIMS]
    unique = {(point.cell, point.mean): point for point in look.compared}
    return TableContent(
        columns=["claim", "section", "verdict", "evidence"],
        rows=[
            [finding.claim, claim.section, finding.verdict.value, finding.evidence]
            for claim, finding in zip(CLAIMS, findings, strict=True)
        ],
        findings=[*findings, agrees(AGREE, unique.values())],
    )


TABLE = TableFigure(
    name="announce-claims",
    family=FAMILY,
    title="The claims of the announce-listen thesis, and what the runs say",
    source="Announce-listen thesis, chapter 5",
    shows="What the chapter claims in words.",
    needs=tuple(dict.fromkeys(cell for claim in CLAIMS for cell in claim.needs)),
    fill=_fill,
    notes=(
        "Starts are played by the compiled kernels, to a standard error of "
        f"{100 * FAST_TARGET:g} % of the mean. What happens to an established group (departures, "
        "joins, vigils) these do not know: it is played message by message, to "
        f"{100 * TARGET:g} %.",
    ),
)

FIGURES = (TABLE,)
