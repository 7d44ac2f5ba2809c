"""Flags over environment over file, read strictly, with line and key where something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hustings.agent.config import AgentConfig, load
from hustings.core.errors import BadInput
from hustings.net.addresses import Address

FULL = """
[agent]
bind = "10.0.0.1:7400"
advertise = "192.0.2.1:7400"
name = "web-1"
state = "state"
key = ["new.key", "old.key"]
insecure = false
log-format = "json"
log-level = "debug"
shutdown-timeout = "2s"

[http]
bind = "127.0.0.1:8000"
token-file = "agent.token"
event-streams = 5

[groups.billing]
seeds = ["10.0.0.2", "db.example:7500"]
expect = 3
alone = "90s"
protocol = "bully"
choice = "highest:cpu"
observer = true
multicast = "bimodal"
detector = "heartbeat"
preempt-after = "30s"
stall-bound = "2s"
measure = "loss"
guard = "etcd://10.0.0.9"
ttl = "8s"
[groups.billing.guard-settings]
drift = 0.01
[groups.billing.settings]
T1 = "250ms"
delta = 0.1
[groups.billing.attributes]
cpu = 8
[groups.billing.detector-settings]
T_hb = "100ms"
[groups.billing.gossip-settings]
fanout = 3
[groups.billing.leadership-settings]
delta = 1
[groups.billing.limits]
members = 50

[groups.search]
name = "finder"
key = "search.key"
state = "elsewhere"
"""


def read(
    text: str | None, folder: Path, /, *, env: dict[str, str] | None = None, **flags: object
) -> AgentConfig:
    path = None
    if text is not None:
        path = folder / "hustings.toml"
        path.write_text(text, encoding="utf-8")
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    return load(path, given, env or {})


def refused(
    text: str | None, folder: Path, /, *, env: dict[str, str] | None = None, **flags: object
) -> str:
    with pytest.raises(BadInput) as error:
        read(text, folder, env=env, **flags)
    return str(error.value).replace(f"{folder}/", "")


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    config = read(FULL, tmp_path)
    assert (config.bind, config.advertise) == (
        Address("10.0.0.1", 7400),
        Address("192.0.2.1", 7400),
    )
    assert (config.http, config.token_file) == (
        Address("127.0.0.1", 8000),
        tmp_path / "agent.token",
    )
    assert (config.log_format, config.log_level) == ("json", "debug")
    assert (config.shutdown_s, config.streams, config.insecure) == (2.0, 5, False)
    billing, search = config.groups
    assert (billing.group, billing.name) == ("billing", "web-1")
    assert billing.seeds == ("10.0.0.2", "db.example:7500")
    assert (billing.protocol, billing.choice, billing.observer) == ("bully", "highest:cpu", True)
    assert (billing.multicast, billing.detector, billing.preempt_after) == (
        "bimodal",
        "heartbeat",
        30.0,
    )
    assert billing.stall_bound == 2.0
    assert (billing.expect, billing.alone) == (3, 90.0)
    assert (search.expect, search.alone) == (None, None)
    assert (billing.guard, billing.ttl) == ("etcd://10.0.0.9", 8.0)
    assert billing.guard_settings == {"drift": 0.01}
    assert billing.settings == {"T1": "250ms", "delta": 0.1}
    assert billing.attributes == {"cpu": 8.0}
    assert billing.detector_settings == {"T_hb": "100ms"}
    assert billing.gossip_settings == {"fanout": 3}
    assert billing.leadership_settings == {"delta": 1}
    assert billing.limits == {"members": 50}
    assert billing.keys == (tmp_path / "new.key", tmp_path / "old.key")
    assert billing.state == tmp_path / "state"
    assert (search.name, search.keys) == ("finder", (tmp_path / "search.key",))
    assert search.state == tmp_path / "elsewhere"


def test_defaults() -> None:
    config = load(None, {"group": "billing"}, {})
    assert (config.bind, config.http) == (Address("127.0.0.1", 7400), Address("127.0.0.1", 7401))
    assert (config.log_format, config.log_level, config.shutdown_s) == ("text", "info", 5.0)
    (group,) = config.groups
    assert (group.group, group.name, group.seeds, group.keys) == ("billing", None, (), ())


@pytest.mark.parametrize(
    "flags, env, expected",
    [
        ({}, {}, 1),
        ({}, {"HUSTINGS_HTTP": "127.0.0.1:2"}, 2),
        ({"http": "127.0.0.1:3"}, {"HUSTINGS_HTTP": "127.0.0.1:2"}, 3),
        ({"http": "127.0.0.1:3"}, {}, 3),
        ({}, {"HUSTINGS_HTTP": "  "}, 1),
    ],
)
def test_flags_over_environment_over_file(
    flags: dict[str, object], env: dict[str, str], expected: int, tmp_path: Path
) -> None:
    text = '[http]\nbind = "127.0.0.1:1"\n[groups.billing]\n'
    assert read(text, tmp_path, env=env, **flags).http.port == expected


def test_the_environment_is_text(tmp_path: Path) -> None:
    env = {
        "HUSTINGS_GROUP": "billing",
        "HUSTINGS_JOIN": "10.0.0.1, 10.0.0.2",
        "HUSTINGS_OBSERVER": "yes",
        "HUSTINGS_INSECURE": "false",
        "HUSTINGS_EVENT_STREAMS": "7",
        "HUSTINGS_KEY": "a.key,b.key",
        "HUSTINGS_SET": "T_A=250ms,T_L=1s",
        "HUSTINGS_ATTRIBUTE": "cpu=8,load=0.5",
        "HUSTINGS_HTTP_TOKEN": "secret",
        "HUSTINGS_EXPECT": "2",
        "HUSTINGS_ALONE": "no",
    }
    config = read(None, tmp_path, env=env)
    (group,) = config.groups
    assert group.seeds == ("10.0.0.1", "10.0.0.2")
    assert (group.observer, config.insecure, config.streams) == (True, False, 7)
    assert (group.expect, group.alone) == (2, False)
    assert group.keys == (Path("a.key"), Path("b.key"))
    assert group.settings == {"T_A": "250ms", "T_L": "1s"}
    assert group.attributes == {"cpu": 8.0, "load": 0.5}
    assert config.token == "secret"
    assert "secret" not in repr(config)
    assert config.notes == ()


def test_tables_are_merged_entry_by_entry(tmp_path: Path) -> None:
    text = "[groups.billing.attributes]\ncpu = 1\nload = 2\n"
    config = read(text, tmp_path, attribute=("cpu=9",), env={"HUSTINGS_ATTRIBUTE": "load=5"})
    assert config.groups[0].attributes == {"cpu": 9.0, "load": 2.0}  # a flag hides the variable


def test_a_slip_in_a_variable_is_noted() -> None:
    env = {"HUSTINGS_BNID": "x", "HUSTINGS_AGENT": "y", "OTHER": "z"}
    (note,) = load(None, {"group": "billing"}, env).notes
    assert "HUSTINGS_BNID" in note


def test_one_of_several_groups(tmp_path: Path) -> None:
    config = read(FULL, tmp_path, group="search", join=("10.9.9.9",))
    assert [(group.group, group.seeds) for group in config.groups] == [("search", ("10.9.9.9",))]
    assert refused(FULL, tmp_path, group="serch").startswith("unknown group 'serch': did you mean")
    assert refused(FULL, tmp_path, join=("10.9.9.9",)).startswith("--join is for one group")
    assert refused(FULL, tmp_path, env={"HUSTINGS_CHOICE": "lowest-id"}).startswith(
        "HUSTINGS_CHOICE is for one group"
    )


def test_a_flag_for_all_groups_goes_before_each_group_s_own(tmp_path: Path) -> None:
    config = read(FULL, tmp_path, key=("mine.key",))
    assert [group.keys for group in config.groups] == [(Path("mine.key"),)] * 2


@pytest.mark.parametrize(
    "text, sentence",
    [
        (
            "[agent]\nbnid = 1\n",
            "line 2: agent.bnid is no key that is known here (did you mean bind?)",
        ),
        ("[agnt]\n", "line 1: agnt is no key that is known here (did you mean agent?)"),
        ("agent = 3\n", "line 1: agent must be a table, not a number"),
        ("[agent]\nbind = 3\n", "line 2: agent.bind must be a text HOST:PORT, not 3"),
        ("[agent]\nbind = 'a:b:c'\n", "line 2: agent.bind 'a:b:c' needs brackets"),
        ("[agent]\nbind = 'host:99999'\n", "line 2: agent.bind 'host:99999' needs a port"),
        ("[agent]\nname = ''\n", "line 2: agent.name must be a text that is not empty"),
        ("[agent]\ninsecure = 'yes'\n", "line 2: agent.insecure must be true or false, not 'yes'"),
        ("[agent]\nkey = [1]\n", "line 2: agent.key must be a text or a list of texts, not [1]"),
        ("[agent]\nstate = ['a']\n", "line 2: agent.state must be a text, not ['a']"),
        ("[agent]\nshutdown-timeout = '5'\n", "line 2: agent.shutdown-timeout must be a duration"),
        (
            "[agent]\nshutdown-timeout = 0\n",
            "line 2: agent.shutdown-timeout must be from 100ms to 600s, not 0",
        ),
        ("[agent]\nlog-level = 'loud'\n", "line 2: agent.log-level must be one of debug, info"),
        (
            "[http]\nevent-streams = 0\n",
            "line 2: http.event-streams must be a whole number from 1 to 10000",
        ),
        ("[http]\nevent-streams = true\n", "line 2: http.event-streams must be a whole number"),
        ("[groups]\nbilling = 3\n", "line 2: groups.billing must be a table, not a number"),
        ("[groups.'a b']\n", "line 1: groups.a b must be letters, digits"),
        ("[groups.x]\nseeds = ['']\n", "line 2: groups.x.seeds must be texts that are not empty"),
        (
            "[groups.x]\npreempt-after = 'soon'\n",
            "line 2: groups.x.preempt-after must be a duration",
        ),
        ("[groups.x]\npreempt-after = -1\n", "line 2: groups.x.preempt-after must be a duration"),
        (
            "[groups.x]\nexpect = 0\n",
            "line 2: groups.x.expect must be a whole number from 1 to 65536, not 0",
        ),
        ("[groups.x]\nexpect = true\n", "line 2: groups.x.expect must be a whole number"),
        (
            "[groups.x]\nalone = 'soon'\n",
            "line 2: groups.x.alone must be true, false or a duration, as 30s, not 'soon'",
        ),
        ("[groups.x.attributes]\ncpu = '8'\n", "line 2: groups.x.attributes.cpu must be a number"),
        ("[groups.x.attributes]\ncpu = inf\n", "line 2: groups.x.attributes.cpu must be a finite"),
        ("[groups.x.attributes]\ncpu = true\n", "line 2: groups.x.attributes.cpu must be a number"),
        ("[groups.x]\nattributes = 3\n", "line 2: groups.x.attributes must be a table, not 3"),
        (
            "[groups.x.attributes]\n'~x' = 3\n",
            "line 1: groups.x: attribute ~x may not begin with ~",
        ),
        ("[groups.x.settings]\nT_A = [1]\n", "line 2: groups.x.settings.T_A must be a text, a num"),
    ],
)
def test_what_is_wrong_in_the_file(text: str, sentence: str, tmp_path: Path) -> None:
    more = "" if "groups" in text else "[groups.billing]\n"
    assert refused(text + more, tmp_path).startswith(f"hustings.toml, {sentence}")


@pytest.mark.parametrize(
    "flags, env, sentence",
    [
        ({"bind": "x:y"}, {}, "--bind 'x:y' needs a port"),
        ({}, {"HUSTINGS_BIND": "x:y"}, "HUSTINGS_BIND 'x:y' needs a port"),
        (
            {"event-streams": "many"},
            {},
            "--event-streams must be a whole number from 1 to 10000, not 'many'",
        ),
        ({"set": ("T_A",)}, {}, "--set must be written NAME=VALUE, not 'T_A'"),
        ({"attribute": ("cpu=x",)}, {}, "--attribute cpu must be a number, not 'x'"),
        ({"attribute": ("cpu=nan",)}, {}, "--attribute cpu must be a number, not 'nan'"),
        ({"preempt-after": "5"}, {}, "--preempt-after must be a duration"),
        ({"stall-bound": "5"}, {}, "--stall-bound must be a duration"),
        ({"expect": "few"}, {}, "--expect must be a whole number from 1 to 65536, not 'few'"),
        ({}, {"HUSTINGS_ALONE": "maybe"}, "HUSTINGS_ALONE must be true, false or a duration"),
        ({}, {"HUSTINGS_OBSERVER": "perhaps"}, "HUSTINGS_OBSERVER must be true or false"),
    ],
)
def test_what_is_wrong_elsewhere(
    flags: dict[str, object], env: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    assert refused(None, tmp_path, group="billing", env=env, **flags).startswith(sentence)


def test_all_that_is_wrong_is_told_in_one_sentence(tmp_path: Path) -> None:
    text = "[agent]\nbind = 1\nname = 2\n[http]\nbind = 3\n"
    text += "event-streams = 'x'\ntoken-file = 4\nodd = 5\n"
    told = refused(f"{text}[groups.x]\n", tmp_path)
    assert told.count("hustings.toml, line") == 5
    assert told.endswith("; and 1 more")
    assert "\n" not in told


def test_without_a_group_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert refused(None, tmp_path).startswith("there is no group to join: say --group NAME")
    assert refused("[grups.billing]\n", tmp_path).startswith(
        "hustings.toml, line 1: grups is no key"
    )


def test_a_bad_name_of_a_group_from_a_flag(tmp_path: Path) -> None:
    assert refused(None, tmp_path, group="a/b").startswith("--group a/b must be letters")
