"""CONTRIBUTING as a test: who follows its steps has a protocol, or a loss model, everywhere.

The protocol is the one that the guide writes. It is added in both ways that CONTRIBUTING names: to
a copy of the package, by its file and one line of the registry, and as an installed distribution,
by an entry point. Then each door takes it by its name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hustings import lab
from hustings.cli.app import run
from hustings.testing import Group
from tests.agent.processes import agents_in, wait_for

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60
CLAIMS = re.compile(r"`claims\.py`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

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


def claims() -> str:
    """The protocol of the guide."""
    guide = (ROOT / "docs" / "guide" / "08-write-a-protocol.md").read_text(encoding="utf-8")
    (found,) = CLAIMS.findall(guide)
    return str(found)


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
        "net/composition.py",
        "guard/urls.py",
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
        wait_for(lambda: agent.leader("jobs"), lambda: f"a leader in {agent.lines}")


@pytest.mark.usefixtures("own_protocol")
def test_the_demo_takes_an_installed_protocol() -> None:
    words = ("--members", "3", "--seconds", "6", "--json")
    assert json.loads(process("demo", "--protocol", "claims", *words))["fine"]


# --- a protocol and a loss model, in a copy of the package ---------------------------------------


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The package with both of them added, by the files and lines that CONTRIBUTING names."""
    folder = tmp_path_factory.mktemp("house")
    package = folder / "hustings"
    kept = shutil.ignore_patterns("__pycache__")
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
):
    assert run(words.split()) == 0, words
with Group(protocol="claims") as group:
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
    assert "claims" in done.stdout


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
