"""What is studied: the same words as on the command line, and the same numbers.

    from hustings import lab

    study = lab.simulate("le-s", members=50, loss=0.4, delay=0.1, runs=2000, seed=7)
    study["tmax"].mean, study.verdicts, study.command

The command line calls these functions and decides nothing by itself.
"""

from __future__ import annotations

from hustings.lab.options import Options
from hustings.lab.simulation import simulate
from hustings.lab.study import Study

__all__ = ["Options", "Study", "simulate"]
