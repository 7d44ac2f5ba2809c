"""`hustings agent` given something wrong: one sentence, exit code 2, and nothing has started."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.commands import Hustings, in_process

FREE = ("--bind", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.fixture
def hustings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Hustings:
    monkeypatch.chdir(tmp_path)
    return in_process(capsys)


@pytest.fixture
def taken() -> Iterator[str]:
    with (
        socket.create_server(("127.0.0.1", 0)) as streams,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(streams.getsockname())
        yield f"127.0.0.1:{streams.getsockname()[1]}"


@pytest.mark.parametrize("flag", ["--bind", "--http"])
def test_a_port_in_use(hustings: Hustings, taken: str, flag: str) -> None:
    told = hustings("agent", "--group", "billing", *FREE, flag, taken).complaint
    assert f"{taken} is in use" in told


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[groups.billing\n", "bad.toml, line 1: this is not TOML"),
        ("[groups.billing]\nsed = 1\n", "bad.toml, line 2: groups.billing.sed is no key"),
        (
            "\n[groups.billing]\nprotocol = 'buly'\n",
            "bad.toml, line 3: groups.billing.protocol: unknown protocol 'buly': did you ",
        ),
        (
            "[groups.x.settings]\nT_X = 1\n",
            "bad.toml, line 2: groups.x.settings.T_X: unknown setting 'T_X'",
        ),
        ("[groups.x]\nkey = 'none.key'\n", "bad.toml, line 2: groups.x.key: cannot read key file"),
        (
            "[groups.x]\nname = 'x'\nstate = 'none/deeper'\n",
            "bad.toml, line 3: groups.x.state: state directory",
        ),
        ("[groups.x]\nname = 'a b'\n", "bad.toml, line 2: groups.x.name: name 'a b' does not do"),
        (
            "[groups.x]\nseeds = ['a:b']\n",
            "bad.toml, line 2: groups.x.seeds: seed 'a:b' needs a port",
        ),
        ("[groups.x]\n[http]\ntoken-file = 'none'\n", "cannot read token file"),
        ("[groups.x]\nchoice = 'highest:cpu'\n", "bad.toml, line 2: groups.x.choice: "),
        ("[groups.a]\nmulticast = 'ip:239.1.2.3:7400'\n[groups.b]\n", "groups that share a port"),
    ],
)
def test_what_is_wrong_in_the_file(
    hustings: Hustings, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    assert hustings("agent", "--config", "bad.toml", *FREE).complaint.startswith(sentence)


def test_what_stands_above_the_file_is_not_blamed_on_it(hustings: Hustings, tmp_path: Path) -> None:
    text = "[groups.x]\nprotocol = 'le-s'\n"
    (tmp_path / "good.toml").write_text(text, encoding="utf-8")
    said = hustings("agent", "--config", "good.toml", "--protocol", "buly", *FREE).complaint
    assert said.startswith("good.toml, line 1: groups.x: unknown protocol 'buly'")


@pytest.mark.parametrize(
    "flags, sentence",
    [
        (("--bind", "0.0.0.0:0"), "stands for all interfaces"),
        (("--bind", "0.0.0.0:0", "--advertise", "192.0.2.1:7400"), "without a key only this"),
        (("--bind", "192.0.2.77:7400", "--insecure"), "192.0.2.77:7400"),
        (("--http", "0.0.0.0:0"), "there is no token"),
        (("--config", "none.toml"), "cannot read none.toml: No such file"),
        (("--event-streams", "x"), "--event-streams must be a whole number"),
        (("--log-format", "xml"), "--log-format must be one of text, json"),
    ],
)
def test_what_is_wrong_elsewhere(hustings: Hustings, flags: tuple[str, ...], sentence: str) -> None:
    assert sentence in hustings("agent", "--group", "billing", *FREE, *flags).complaint


def test_without_a_group(hustings: Hustings) -> None:
    assert hustings("agent").complaint.startswith("there is no group to join")


def test_check_only_reads(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    done = hustings("agent", "--group", "billing", "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out == "fine: members in billing on 127.0.0.1:7400, HTTP on 127.0.0.1:7401\n"
    monkeypatch.setenv("HUSTINGS_BNID", "x")
    flags = ("--bind", "10.0.0.1:7400", "--insecure")
    noted = hustings("agent", "--group", "billing", "--check", *flags)
    assert noted.code == 0
    assert [line.split(":")[2].split()[0] for line in noted.err.splitlines()] == ["the", "insecure"]
