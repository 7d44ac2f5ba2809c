"""What is studied: the same words as on the command line, and the same numbers.

    from hustings import lab

    study = lab.simulate("le-s", members=50, loss=0.4, delay=0.1, runs=2000, seed=7)
    study["tmax"].mean, study.verdicts, study.command

Results have rows (`to_arrow`, `to_pandas`), show themselves in a notebook, and name the command
line that gives the same. The command line calls these functions and decides nothing by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hustings.lab.checking import Checked, check
    from hustings.lab.comparison import Comparison, compare
    from hustings.lab.forms import Theory, theory
    from hustings.lab.measuring import MeasuredGroup, measure
    from hustings.lab.options import Options
    from hustings.lab.pictures import Picture, figure
    from hustings.lab.planning import explain, plan
    from hustings.lab.plans.committee import CommitteePlan
    from hustings.lab.plans.configuration import Configuration, read_configuration
    from hustings.lab.plans.explain import Explained
    from hustings.lab.plans.goals import GroupGoals
    from hustings.lab.plans.planned import GroupPlan
    from hustings.lab.plans.rare import Rate, wrong_rate
    from hustings.lab.plans.verify import Verification, verify
    from hustings.lab.plans.virtual import ObservedGroup, observe
    from hustings.lab.simulation import Study, simulate
    from hustings.lab.swarming import Swarmed, swarm
    from hustings.lab.sweeping import Sweep, sweep, sweep_file
    from hustings.sim.environment import Environment, parse_environment, read_environment

__all__ = [
    "Checked",
    "CommitteePlan",
    "Comparison",
    "Configuration",
    "Environment",
    "Explained",
    "GroupGoals",
    "GroupPlan",
    "MeasuredGroup",
    "ObservedGroup",
    "Options",
    "Picture",
    "Rate",
    "Study",
    "Swarmed",
    "Sweep",
    "Theory",
    "Verification",
    "check",
    "compare",
    "explain",
    "figure",
    "measure",
    "observe",
    "parse_environment",
    "plan",
    "read_configuration",
    "read_environment",
    "simulate",
    "swarm",
    "sweep",
    "sweep_file",
    "theory",
    "verify",
    "wrong_rate",
]

# The module of each name. Only used modules are loaded: a simulation needs no figures.
_MODULES = {
    ".checking": ("Checked", "check"),
    ".comparison": ("Comparison", "compare"),
    ".forms": ("Theory", "theory"),
    ".measuring": ("MeasuredGroup", "measure"),
    ".options": ("Options",),
    ".pictures": ("Picture", "figure"),
    ".planning": ("explain", "plan"),
    ".plans.committee": ("CommitteePlan",),
    ".plans.configuration": ("Configuration", "read_configuration"),
    ".plans.explain": ("Explained",),
    ".plans.goals": ("GroupGoals",),
    ".plans.verify": ("Verification", "verify"),
    ".plans.rare": ("Rate", "wrong_rate"),
    ".plans.virtual": ("ObservedGroup", "observe"),
    ".plans.planned": ("GroupPlan",),
    ".simulation": ("Study", "simulate"),
    ".swarming": ("Swarmed", "swarm"),
    ".sweeping": ("Sweep", "sweep", "sweep_file"),
    "hustings.sim.environment": ("Environment", "parse_environment", "read_environment"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and refuses any other name

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_PLACES[name], __name__), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
