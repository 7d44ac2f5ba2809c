"""What is studied: the same words as on the command line, and the same numbers.

    from hustings import lab

    study = lab.simulate("le-s", members=50, loss=0.4, delay=0.1, runs=2000, seed=7)
    study["tmax"].mean, study.verdicts, study.command

Results have rows (`to_arrow`, `to_pandas`), show themselves in a notebook, and name the command
line that gives the same. The command line calls these functions and decides nothing by itself.
"""

from __future__ import annotations

from hustings.lab.checking import Checked, check
from hustings.lab.comparison import Comparison, compare
from hustings.lab.forms import Theory, theory
from hustings.lab.options import Options
from hustings.lab.pictures import Picture, figure
from hustings.lab.simulation import simulate
from hustings.lab.study import Study
from hustings.lab.swarming import Swarmed, swarm
from hustings.lab.sweeping import Sweep, sweep

__all__ = [
    "Checked",
    "Comparison",
    "Options",
    "Picture",
    "Study",
    "Swarmed",
    "Sweep",
    "Theory",
    "check",
    "compare",
    "figure",
    "simulate",
    "swarm",
    "sweep",
    "theory",
]
