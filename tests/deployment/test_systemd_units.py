"""The systemd units: verified by systemd itself, and started as it would start them."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_shell_lines import parse

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UNITS = [EXAMPLES / "agent" / "hustings.service", EXAMPLES / "systemd" / "hustings-run@.service"]

# With CI set they run everywhere, and fail where the tool is missing.
systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None and not os.environ.get("CI"),
    reason="systemd-analyze is not installed (Debian: apt install systemd)",
)


def verify(unit: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """systemd's verdict on a unit whose programs are where this machine has some."""
    name = unit.name.replace("@.", "@invoices.")
    text = unit.read_text(encoding="utf-8").replace("/usr/bin/hustings", "/bin/true")
    (folder / name).write_text(text, encoding="utf-8")
    tool = shutil.which("systemd-analyze")
    assert tool is not None, "systemd-analyze is not installed"
    return subprocess.run(
        [tool, "verify", "--man=no", str(folder / name)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_has_no_complaint(unit: Path, tmp_path: Path) -> None:
    done = verify(unit, tmp_path)
    about = [line for line in done.stderr.splitlines() if unit.stem.split("@")[0] in line]
    assert (done.returncode, about) == (0, []), done.stderr


@systemd
def test_a_misspelt_setting_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong" / "hustings.service"
    wrong.parent.mkdir()
    text = UNITS[0].read_text(encoding="utf-8").replace("KillSignal=", "KilSignal=")
    wrong.write_text(text, encoding="utf-8")
    assert "KilSignal" in verify(wrong, tmp_path).stderr


def section(unit: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    parser.read_string(unit.read_text(encoding="utf-8"))
    return parser["Service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_command_line_is_understood(unit: Path) -> None:
    line = section(unit)["ExecStart"].replace("%i", "invoices").replace("%H", "web-1")
    line = line.replace("${GUARD}", "memory://").replace("$COMMAND", "/usr/local/bin/invoices")
    program, name, *words = shlex.split(line)
    assert program == "/usr/bin/hustings"
    parse(shlex.join([name, *words]))


def test_the_worker_has_time_to_end_before_systemd_kills_it() -> None:
    service = section(UNITS[1])
    grace = re.search(r"--grace (\d+)s", service["ExecStart"])
    assert grace is not None
    assert int(service["TimeoutStopSec"].removesuffix("s")) > int(grace[1])
    assert service["KillMode"] == "mixed"  # the command is ended by hustings run, not beside it
    assert service["RestartPreventExitStatus"] == "2"
