"""`hustings figure`: the papers' figures and tables, measured again."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hustings.cli.options import WHOLE, WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.core.errors import BadInput
from hustings.extras import install_command
from hustings.lab.runs.executors import MAX_JOBS
from hustings.lab.runs.playing import MAX_RUNS
from hustings.sim.files import shown

if TYPE_CHECKING:
    from hustings.lab.figures.figure import Rendered
    from hustings.lab.figures.writing import Draw


@click.command()
@click.argument("names", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the figures.")
@click.option("--family", default=None, help="With all or --list: one family only.")
@click.option(
    "--runs",
    type=WholeRange(1, MAX_RUNS),
    default=None,
    help="Runs of every point; a few are enough for a quick look. [default: what the figure says, "
    "otherwise until the standard error is below 0.1 % of the mean, or 1 % if the event simulator "
    "plays; 4,000,000 or 30,000 at most]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("figures"),
    show_default=True,
    help="The folder for the files; its folder cells keeps what was measured.",
)
@click.option("--seed", type=WHOLE, default=1, show_default=True, help="Same seed, same figures.")
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=None,
    help="The number of workers; on dask:// all workers play.  [default: one for each processor]",
)
@on_option("processes")
@click.option(
    "--check",
    is_flag=True,
    help="Exit 1 if runs and closed forms disagree, or if no claim could be decided.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def figure(
    names: tuple[str, ...],
    listing: bool,
    family: str | None,
    runs: int | None,
    out: Path,
    seed: int,
    jobs: int | None,
    where: str | None,
    check: bool,
    as_json: bool,
) -> int:
    """Make the figures and tables NAMES, or all: CSV, PNG and SVG, and a page of text.

    Points are simulated, lines are closed forms, dashed lines are formulas as printed. The page
    says what the paper shows, and whether the numbers agree. A figure takes seconds to minutes.
    Ctrl-C keeps what has been measured, and the next call continues from there.

    \b
    hustings figure --list
    hustings figure overhead-table-1 --out pictures
    """
    from hustings.lab.figures.catalogue import choose

    if listing:
        _list(names, family, as_json)
        return 0
    chosen = choose(names, family)
    draw = _drawing() if any(figure.pictured for figure in chosen) else _nothing
    from hustings.lab.figures.writing import write
    from hustings.lab.pictures import measured
    from hustings.lab.sweeping import processors

    try:
        with progress("cells") as tell:
            made = measured(
                chosen,
                out,
                runs=runs,
                seed=seed,
                jobs=jobs or processors(),
                on=where,
                warn=warn,
                tell=tell,
            )
    except KeyboardInterrupt:
        warn(
            f"what is finished is kept in {shown(out / 'cells')}: the same command goes on from it"
        )
        raise
    written = [write(each, out, draw) for each in made]
    if as_json:
        show_json(
            {
                "seed": seed,
                "runs": runs,
                "figures": [
                    _to_json(each, files) for each, files in zip(made, written, strict=True)
                ],
            }
        )
    else:
        _show(made, written)
    return _checked(made) if check else 0


def _checked(made: list[Rendered]) -> int:
    """The result of --check: open claims are reported, and fail if all claims are open."""
    from hustings.lab.figures.figure import ClaimVerdict

    verdicts = [finding.verdict for each in made for finding in each.findings]
    undecided = verdicts.count(ClaimVerdict.UNDECIDED)
    if undecided:
        warn(
            f"{undecided} of {len(verdicts)} claims are undecided, for error bars are too wide: "
            "more --runs decide them"
        )
    nothing_known = undecided == len(verdicts) > 0
    return 1 if nothing_known or not all(each.sound for each in made) else 0


def _drawing() -> Draw:
    """The module that draws, or the name of a missing extra, before anything starts."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its own caches
    try:
        from hustings.lab.figures.drawing import draw
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != "matplotlib":
            raise
        raise BadInput(f"figures need matplotlib: {install_command('figures')}") from None
    return draw


def _nothing(made: Rendered) -> dict[str, bytes]:
    return {}


def _list(names: tuple[str, ...], family: str | None, as_json: bool) -> None:
    from hustings.lab.figures.catalogue import of_family

    if names:
        raise BadInput("--list takes no names: it shows what there is")
    rows = [
        [each.name, each.family, "picture" if each.pictured else "table", each.title]
        for each in of_family(family)
    ]
    if as_json:
        keys = ("name", "family", "kind", "title")
        show_json({"figures": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        show_table("Figures", ["figure", "family", "kind", "title"], rows)


def _to_json(made: Rendered, files: list[Path]) -> dict[str, object]:
    return {
        "name": made.name,
        "family": made.family,
        "title": made.title,
        "source": made.source,
        "shows": made.shows,
        "verdict": made.verdict,
        "findings": [finding.to_json() for finding in made.findings],
        "notes": made.notes,
        "rows": [dict(zip(made.columns, row, strict=True)) for row in made.rows],
        "files": [str(path) for path in files],
    }


def _show(made: list[Rendered], written: list[list[Path]]) -> None:
    rows = []
    for each, files in zip(made, written, strict=True):
        endings = ",".join(path.suffix.removeprefix(".") for path in files)
        where = f"{files[0].with_suffix('')}.{{{endings}}}"
        rows.append([each.name, each.verdict, each.checked, where])
    show_table("Figures", ["figure", "the paper's claims", "our checks hold", "files"], rows)
    for each in made:
        for finding in each.findings:
            who = "" if finding.theirs else "(our check) "
            click.echo(f"{each.name}: {who}{finding.claim}: {finding.verdict.value}")
