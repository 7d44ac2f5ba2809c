"""The course of the number of leaders, as `sim` shows it to a person."""

from __future__ import annotations

from hustings.cli.output import show_table
from hustings.sim.course import Course

MOST_ROWS = 20
WIDEST = 30  # characters of the longest bar


def show_course(course: Course) -> None:
    """A table with bars: every instant, or evenly spread ones if there are many."""
    points = len(course.time)
    stride = -(-points // MOST_ROWS)
    highest = max(course.mean)
    rows: list[list[object]] = [
        [
            course.time[place],
            course.mean[place],
            course.stderr[place],
            course.max[place],
            course.under_way[place],
            "█" * round(WIDEST * course.mean[place] / highest) if highest else "",
        ]
        for place in range(0, points, stride)
    ]
    note = "A run that has ended counts as it ended."
    if stride > 1:
        note = f"One in {stride} of {points:,} instants; --json has all. {note}"
    columns = ["time", "mean", "stderr", "max", "under way", ""]
    show_table("Simultaneous leaders over time", columns, rows, note)
