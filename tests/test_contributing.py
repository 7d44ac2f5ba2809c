"""CONTRIBUTING as a test: what its steps add is there, at every door that names such a thing.

The protocol and the detector are those that the guide writes. Each is added in both ways that
CONTRIBUTING names: to a copy of the package, by its file and one line of the registry, and as an
installed distribution, by an entry point. Then each door takes it by its name. A loss model, a
guard, a figure and a setting are added in the same way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from hustings import lab
from hustings.cli.app import run
from hustings.testing import Group
from tests.agent.processes import agents_in
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60
BLOCK = r"`%s\.py`:\n\n```python\n(.*?)^```$"

# Nothing is lost from the even members, every other message from the odd ones.
ODD = '''"""Loss by the sender: what CONTRIBUTING says of a loss model, and no more."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from hustings.sim.loss import Fate, Loss


@dataclass(frozen=True, slots=True)
class Odd(Loss):
    """An odd sender loses the share `p` of its messages, or of all if `all` is 1."""

    name: ClassVar[str] = "odd"
    all: float = 0.0

    def fate(self, chance: Random) -> Fate:
        def lost(now: float, sender: int, receiver: int) -> bool:
            return (sender % 2 == 1 or self.all > 0) and chance.random() < self.p

        return lost
'''


# A guard that grants its lease to whoever asks first, for as long as the process lives.
FIRST_COME = '''"""A guard of one's own: what CONTRIBUTING says of it, and no more."""

from collections.abc import AsyncIterator

from hustings.guard import Floor, Guarantees, Guard, GuardUrl, HeldBy, Holder, Holding, NotGranted


class FirstCome(Guard):
    guarantees = Guarantees(monotone=True, clock="nobody")
    held: dict[str, tuple[Holder, int]] = {}

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy:
        first, token = self.held.setdefault(self.group, (holder, floor.known + 1))
        return token if first == holder else HeldBy(first.name, token, ttl)

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        if self.held.get(self.group) != (holder, token):
            raise NotGranted("somebody else was first")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        if self.held.get(self.group) == (holder, token):
            del self.held[self.group]

    async def _observe(self) -> AsyncIterator[Holding]:
        holder, token = self.held.get(self.group, (None, 0))
        yield Holding(None if holder is None else holder.name, token)


def make(url: GuardUrl, group: str) -> Guard:
    url.only()
    return FirstCome()
'''

# A table that needs no runs.
TWO = '''"""A figure: what CONTRIBUTING says of it, and no more."""

from hustings.lab.figures.figure import ClaimVerdict, Finding, TableContent, TableFigure
from hustings.lab.figures.measuring import Results


def _fill(results: Results) -> TableContent:
    finding = Finding("two and two are four", ClaimVerdict.HOLDS, "4 = 4", theirs=True)
    return TableContent(columns=["sum"], rows=[[4]], findings=[finding])


FIGURE = TableFigure(
    name="two",
    family="classic",
    title="A sum",
    source="school",
    shows="that two and two are four",
    needs=(),
    fill=_fill,
)
'''

SETTINGS_OF_RING = "    ] = 16\n"


def of_the_guide(chapter: str, name: str) -> str:
    """A file that the guide writes."""
    guide = (ROOT / "docs" / "guide" / chapter).read_text(encoding="utf-8")
    (found,) = re.findall(BLOCK % name, guide, re.DOTALL | re.MULTILINE)
    return str(found)


def claims() -> str:
    """The protocol of the guide."""
    return of_the_guide("08-write-a-protocol.md", "claims")


def patient() -> str:
    """The detector of the guide."""
    return of_the_guide("11-failure-detectors.md", "patient")


def installed(site: Path, group: str, name: str, module: str, kind: str, text: str) -> None:
    """A distribution with one module and one entry point, as pip would leave it."""
    (site / f"{module}.py").write_text(text, encoding="utf-8")
    about = site / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{kind}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed distributions, for this process and those that it starts."""
    folder, here = tmp_path / "site", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def own_protocol(site: Path) -> Path:
    installed(site, "hustings.protocols", "claims", "their_claims", "Claims", claims())
    return site


@pytest.fixture
def own_loss(site: Path) -> Path:
    installed(site, "hustings.losses", "odd", "their_odd", "Odd", ODD)
    return site


@pytest.fixture
def own_detector(site: Path) -> Path:
    installed(site, "hustings.detectors", "patient", "their_patient", "Patient", patient())
    return site


@pytest.fixture
def own_guard(site: Path) -> Path:
    installed(site, "hustings.guards", "firstcome", "their_guard", "make", FIRST_COME)
    return site


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints; it has to end well."""

    def told(*words: str) -> str:
        capsys.readouterr()
        code = run(list(words))
        shown = capsys.readouterr()
        assert code == 0, shown.err
        return shown.out

    return told


def process(*words: str, path: str | None = None) -> str:
    """The same of a command in a process of its own."""
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    done = subprocess.run(
        [sys.executable, "-m", "hustings", *words],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- what CONTRIBUTING says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "protocols/registry.py",
        "hustings.protocols",
        "sim/loss.py",
        "sim/delay.py",
        "hustings.losses",
        "hustings.delays",
        "layers/detector/registry.py",
        "hustings.detectors",
        "guard/registry.py",
        "hustings.guards",
        "lab/figures/catalogue.py",
    ],
)
def test_contributing_names_the_place(place: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert place in text
    if place.endswith(".py"):
        assert (ROOT / "src" / "hustings" / place).is_file()


def test_every_file_that_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|docs|tests|scripts)/[\w/.-]+)`", text)
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


# --- a protocol, installed -----------------------------------------------------------------------


@pytest.mark.usefixtures("own_protocol")
@pytest.mark.parametrize(
    "words",
    [
        ("sim", "claims", "-n", "5", "--scenario", "leader-crash", "--json"),
        ("check", "claims", "-n", "2", "--json"),
        ("compare", "claims", "bully", "-n", "5", "--json"),
        ("swarm", "--protocol", "claims", "--seeds", "3", "--json"),
        ("protocols", "claims", "--json"),
    ],
    ids=lambda words: str(words[0]),
)
def test_a_command_takes_an_installed_protocol(
    words: tuple[str, ...], command: Callable[..., str]
) -> None:
    assert "claims" in command(*words)


@pytest.mark.usefixtures("own_protocol")
def test_a_sweep_takes_an_installed_protocol(command: Callable[..., str], tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text('protocol = ["claims", "ring"]\nruns = 4\n', encoding="utf-8")
    told = command("sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1", "--json")
    assert "claims" in told


@pytest.mark.usefixtures("own_protocol")
def test_a_trace_of_an_installed_protocol_is_drawn(
    command: Callable[..., str], tmp_path: Path
) -> None:
    recorded = str(tmp_path / "run.jsonl")
    scenario = ("--scenario", "leader-crash", "--detector", "1")
    command("sim", "claims", "-n", "4", *scenario, "--trace", recorded)
    assert "CLAIM" in command("trace", recorded, "--protocol", "claims", "--width", "200")


@pytest.mark.usefixtures("own_protocol")
def test_a_test_group_joins_with_an_installed_protocol() -> None:
    """`testing.Group` calls `hustings.join`, and only the network below is another."""
    with Group(protocol="claims") as group:
        group.join("a")
        group.join("b")
        assert group.settle() in ("a", "b")


@pytest.mark.usefixtures("own_protocol")
def test_the_laboratory_takes_an_installed_protocol() -> None:
    by_name = lab.simulate("claims", members=5, runs=2, seed=3)
    by_class = lab.simulate("their_claims:Claims", members=5, runs=2, seed=3)
    assert by_name["messages"].mean == by_class["messages"].mean


@pytest.mark.usefixtures("own_protocol")
def test_run_takes_an_installed_protocol() -> None:
    assert process("run", "jobs", "--protocol", "claims", "--", "echo", "led") == "led\n"


@pytest.mark.usefixtures("own_protocol")
def test_an_agent_takes_an_installed_protocol(tmp_path: Path) -> None:
    with agents_in(tmp_path) as agents:
        agent = agents.start("--group", "jobs", "--protocol", "claims")
        until(lambda: agent.leader("jobs"), lambda: f"a leader in {agent.lines}")


@pytest.mark.usefixtures("own_protocol")
def test_the_demo_takes_an_installed_protocol() -> None:
    words = ("--members", "3", "--seconds", "6", "--json")
    assert json.loads(process("demo", "--protocol", "claims", *words))["fine"]


# --- all of them, in a copy of the package -------------------------------------------------------


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The package with all of them added, by the files and lines that CONTRIBUTING names."""
    folder = tmp_path_factory.mktemp("house")
    package = folder / "hustings"
    kept = shutil.ignore_patterns("kernels-*")  # what is compiled counts for what stays as it is
    shutil.copytree(ROOT / "src" / "hustings", package, ignore=kept)
    (package / "protocols" / "claims.py").write_text(claims(), encoding="utf-8")
    insert(
        package / "protocols" / "registry.py",
        after='    "stable": ProtocolEntry("protocols.stable", "Stable"),\n',
        line='    "claims": ProtocolEntry("protocols.claims", "Claims"),\n',
    )
    insert(
        package / "protocols" / "registry.py",
        after='    *("stable", "bully-assistant"),\n',
        line='    "claims",\n',
    )
    with (package / "sim" / "loss.py").open("a", encoding="utf-8") as file:
        file.write(ODD.partition("\n\n\n")[2])
        file.write('\n\nLOSSES = {**LOSSES, "odd": Odd}\n')
    detectors = package / "layers" / "detector"
    (detectors / "patient.py").write_text(patient(), encoding="utf-8")
    insert(
        detectors / "registry.py",
        after="from hustings.layers.detector.heartbeat import HeartbeatConfig\n",
        line="from hustings.layers.detector.patient import Patient\n",
    )
    insert(detectors / "registry.py", after="for kind in (AccrualConfig, ", line="Patient, ")
    (package / "guard" / "firstcome.py").write_text(FIRST_COME, encoding="utf-8")
    insert(
        package / "guard" / "registry.py",
        after='    GuardEntry("memory", "memory://", token="counter"),\n',
        line='    GuardEntry("firstcome", "firstcome://", token="1"),\n',
    )
    (package / "lab" / "figures" / "two.py").write_text(TWO, encoding="utf-8")
    catalogue = package / "lab" / "figures" / "catalogue.py"
    insert(catalogue, after="    *classic.FIGURES,\n", line="    two.FIGURE,\n")
    insert(
        catalogue,
        after="from hustings.lab.figures import classic\n",
        line="from hustings.lab.figures import two\n",
    )
    insert(
        package / "protocols" / "ring.py",
        after=SETTINGS_OF_RING,
        line='    laps: Annotated[int, Meta(ge=1, le=9, description="laps to go")] = 1\n',
    )
    return str(folder)


def insert(path: Path, after: str, line: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(after) == 1, f"{path.name} has no line {after!r}: follow it here"
    path.write_text(text.replace(after, after + line), encoding="utf-8")


DOORS = """
import sys
import hustings
from hustings.cli.app import run
from hustings.testing import Group

assert hustings.__file__.startswith(sys.argv[1]), hustings.__file__
for words in (
    "protocols claims",
    "sim claims -n 5 --check",
    "check claims -n 2",
    "compare",
    "swarm --protocol claims --seeds 3",
    "sim bully -n 5 --loss-model odd --loss 0.5 --loss-set all=1",
    "sim bully -n 5 --detection patient --detection-set beats=2 --fault crash:5@8 --check",
    "guards",
    "guards firstcome:// --group jobs",
    "figure two --out pictures",
    "sim ring -n 5 --set laps=9",
    "protocols ring",
):
    assert run(words.split()) == 0, words
assert run("sim ring -n 5 --set laps=10".split()) == 2
with Group(protocol="claims", detector="patient", guard="firstcome://") as group:
    group.join("a")
    assert group.settle() == "a"
"""


def test_every_door_takes_what_was_added_to_the_package(house: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DOORS, house],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": house},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("claims", "firstcome", "two and two", "laps to go"):
        assert word in done.stdout


# --- a loss model --------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_loss")
@pytest.mark.parametrize("model", ["odd", "their_odd:Odd"])
def test_the_simulator_takes_an_installed_loss_model(
    model: str, command: Callable[..., str]
) -> None:
    words = ("sim", "le-a", "-n", "6", "--delay", "0.1", "--runs", "20", "--json")
    lossy = ("--loss-model", model, "--loss", "0.5")
    shown = {command(*words), command(*words, *lossy), command(*words, *lossy, "--loss-set=all=1")}
    assert len(shown) == 3, "each loses other messages"


@pytest.mark.usefixtures("own_loss")
def test_the_laboratory_takes_an_installed_loss_model() -> None:
    lossy = lab.simulate("le-a", members=5, delay=0.1, runs=5, loss=0.5, loss_model="odd")
    without = lab.simulate("le-a", members=5, delay=0.1, runs=5)
    assert lossy["tmax"].mean != without["tmax"].mean
    assert "--loss-model=odd" in lossy.command


@pytest.mark.usefixtures("own_loss")
def test_a_sweep_takes_an_installed_loss_model(command: Callable[..., str], tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    rows = ('protocol = "le-a"', 'loss-model = "odd"', "loss = [0.1, 0.5]", "delay = 0.1")
    grid.write_text("\n".join((*rows, "runs = 4")), encoding="utf-8")
    told = command("sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1", "--json")
    assert "odd" in told


@pytest.mark.usefixtures("own_loss")
def test_a_loss_model_that_does_not_know_a_setting_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("sim", "bully", "--loss-model", "odd", "--loss", "0.5", "--loss-set", "even=1")
    assert run(list(words)) == 2
    assert "even" in capsys.readouterr().err


# --- a detector ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_detector")
@pytest.mark.parametrize("name", ["patient", "their_patient:Patient"])
def test_the_simulator_takes_an_installed_detector(name: str, command: Callable[..., str]) -> None:
    words = ("sim", "bully", "-n", "3", "--initiator", "1", "--fault", "crash:3@8.01", "--json")

    def ends(*more: str) -> float:
        return float(json.loads(command(*words, *more))["metrics"]["time"]["mean"])

    own = ("--detection", name)
    assert ends("--detection", "heartbeat") == 16
    assert ends(*own) == 24
    assert ends(*own, "--detection-set", "beats=5") == 32


@pytest.mark.usefixtures("own_detector")
def test_composed_members_take_an_installed_detector(command: Callable[..., str]) -> None:
    words = ("sim", "bully", "-n", "3", "--composed", "--delay", "0.05", "--fault", "crash:3@20")
    assert len({command(*words), command(*words, "--detection", "patient")}) == 2


@pytest.mark.usefixtures("own_detector")
def test_the_laboratory_and_a_sweep_take_an_installed_detector(
    command: Callable[..., str], tmp_path: Path
) -> None:
    study = lab.simulate("bully", members=3, detection="patient", faults="crash:3@8.01")
    assert study["time"].mean == 24
    assert "--detection=patient" in study.command
    grid = tmp_path / "grid.toml"
    rows = ('protocol = "bully"', 'detection = ["heartbeat", "patient"]', "members = 3")
    grid.write_text("\n".join(rows), encoding="utf-8")
    told = command("sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1", "--json")
    assert "patient" in told


@pytest.mark.usefixtures("own_detector")
def test_members_take_an_installed_detector() -> None:
    """By its name, and as the class itself."""
    for detector in ("patient", import_module("their_patient").Patient):
        settings = {"beats": 2}
        with Group(protocol="bully", detector=detector, detector_settings=settings) as group:
            group.join("a")
            group.join("b")
            assert group.settle() in ("a", "b")


@pytest.mark.usefixtures("own_detector")
def test_run_takes_an_installed_detector() -> None:
    words = ("--protocol", "bully", "--detector", "patient", "--detector-set", "beats=2")
    assert process("run", "jobs", *words, "--", "echo", "led") == "led\n"


@pytest.mark.parametrize(
    "words, says",
    [
        (("sim", "bully", "--detection", "patient"), "unknown detector 'patient'"),
        (("sim", "bully", "--detection", "hustings.core.config:Config"), "is no detector"),
        (("run", "jobs", "--detector", "nowhere.py:Patient", "--", "true"), "there is no file"),
    ],
)
def test_what_is_no_detector_is_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(list(words)) == 2
    assert says in capsys.readouterr().err


@pytest.mark.usefixtures("site")
def test_a_detector_without_a_name_of_its_own_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nameless = patient().replace('    name: ClassVar[str] = "patient"\n', "")
    Path("nameless.py").write_text(nameless, encoding="utf-8")
    assert run(["sim", "bully", "--detection", "nameless.py:Patient"]) == 2
    assert "a detector says its `name`" in capsys.readouterr().err


# --- a guard -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_guard")
def test_members_take_an_installed_guard() -> None:
    with Group(guard="firstcome://") as group:
        group.join("a")
        assert group.settle() == "a"


@pytest.mark.usefixtures("own_guard")
def test_run_and_guards_take_an_installed_guard(command: Callable[..., str]) -> None:
    assert process("run", "jobs", "--guard", "firstcome://", "--", "echo", "led") == "led\n"
    assert json.loads(command("guards", "firstcome://", "--json"))["clock"] == "nobody"
