"""Configurations: what `join`, an agent and `hustings run` take, and what files of others say."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from hustings.agent.config import load
from hustings.agent.daemon import checked
from hustings.cli import run as command
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Guarantee
from hustings.joining import Joining, join
from hustings.lab.plans.configuration import Configuration, member_name, read_configuration
from hustings.testing import Group

EVERY = [
    Configuration(),
    Configuration(protocol="bully", detector_settings={"T": 0.2, "D": 0.6}, stall_bound=0.8),
    Configuration(settings={"delta": "60ms", "T_A": 0.25, "T_L": "3s"}, multicast="gossip"),
    Configuration(guard="quorum", voters=(1, 2, 5), ttl=4.0, grace=0.25),
    Configuration(guard="etcd", ttl=13.0, guard_settings={"drift": 0.01}),
    Configuration(gossip_settings={"T_gossip": 5.0, "entries": 8}, limits={"members": 6000}),
    Configuration(preempt_after=30.0, measure="loss", choice="lowest:loss"),
]


def written(folder: Path, configuration: Configuration) -> Path:
    path = folder / "hustings.toml"
    path.write_text(configuration.to_toml(), encoding="utf-8")
    return path


@pytest.mark.parametrize("configuration", EVERY)
def test_an_agent_takes_the_file(configuration: Configuration, tmp_path: Path) -> None:
    config = load(written(tmp_path, configuration), {}, {})
    checked(config)
    (group,) = config.groups
    assert group.name == "m1"
    assert group.protocol == configuration.protocol
    assert group.guard == (configuration.url() or None)


@pytest.mark.parametrize("configuration", EVERY)
def test_the_file_is_read_as_the_same_timers(configuration: Configuration, tmp_path: Path) -> None:
    again, names = read_configuration(written(tmp_path, configuration))
    assert again.configured() == configuration.configured()
    assert again.guarantee is configuration.guarantee
    assert names == [member_name(each) for each in configuration.voters]
    assert again.voters == configuration.voters


@pytest.mark.parametrize("configuration", EVERY)
def test_join_takes_the_options_and_makes_the_same_timers(configuration: Configuration) -> None:
    options = configuration.join_options(durable=False)
    joining = join("jobs", name="m1", insecure=True, **options)
    assert joining.wanted.config == configuration.but(durable=False).configured()


@pytest.mark.parametrize("configuration", EVERY[:4])
def test_members_on_a_virtual_clock_elect_with_it(configuration: Configuration) -> None:
    with Group(seed=3, **configuration.join_options(durable=False)) as group:
        for number in range(1, 6):
            group.join(member_name(number))
        assert group.settle() in group.up


def test_the_grace_of_a_command_is_part_of_the_lease() -> None:
    # 5 s of grace, 1 s for killed processes to be gone and 0.5 s for a slow machine, twice.
    assert Configuration(guard="etcd", grace=5.0).lease == {"ttl": 13.0, "margin": 6.5}
    assert Configuration(guard="etcd", ttl=4.0, grace=0.25).lease == {"ttl": 4.0, "margin": 1.75}
    assert Configuration(guard="etcd", ttl=4.0).lease == {"ttl": 4.0}
    with pytest.raises(BadInput, match="a ttl of 4s leaves no time to lead"):
        Configuration(guard="etcd", ttl=4.0, grace=5.0).configured()


def test_what_a_guard_promises() -> None:
    assert Configuration().guarantee is Guarantee.ADVISORY
    assert Configuration(guard="postgres").guarantee is Guarantee.LEASED
    assert Configuration(guard="redis").guarantee is Guarantee.ADVISORY
    assert Configuration(guard="quorum", voters=(1, 2, 3)).guarantee is Guarantee.LEASED


@pytest.mark.parametrize(
    "given, words",
    [
        ({"guard": "zookeper"}, "did you mean 'zookeeper'"),
        ({"guard": "quorum"}, "the guard quorum needs voters"),
        ({"voters": (1, 2, 3)}, "voters go with the guard quorum"),
        ({"ttl": 3.0}, "ttl and guard_settings go with a guard"),
    ],
)
def test_what_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=words):
        Configuration(**given)


def test_a_file_of_others(tmp_path: Path) -> None:
    path = tmp_path / "hustings.toml"
    path.write_text(
        '[groups.jobs]\nguard = "quorum://a,b,c"\nttl = "3s"\n[groups.jobs.settings]\nT_A = "1s"\n'
        'T_L = "4s"\n',
        encoding="utf-8",
    )
    found, names = read_configuration(path)
    assert (found.guard, found.ttl, names) == ("quorum", 3.0, ["a", "b", "c"])
    assert found.voters == (1, 2, 3)  # their places are not known
    assert found.settings == {"T_A": "1s", "T_L": "4s"}


def test_a_file_with_several_groups_needs_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "hustings.toml"
    path.write_text("[groups.a]\n[groups.b]\nprotocol = 'bully'\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"has 2 groups: choose one with --group \(a, b\)"):
        read_configuration(path)
    assert read_configuration(path, "b")[0].protocol == "bully"


def test_an_error_in_a_file_has_its_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "hustings.toml"
    path.write_text("[groups.a]\nprotocol = 'bully'\n[groups.a.settings]\nT9 = 3\n", "utf-8")
    with pytest.raises(BadInput, match=r"hustings\.toml, line 4: groups\.a\.settings\.T9"):
        read_configuration(path)


@pytest.mark.parametrize("configuration", EVERY)
def test_hustings_run_takes_the_line(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    made: list[Joining] = []

    def supervised(wanted: Joining, *_: object) -> int:
        made.append(wanted)
        return 0

    monkeypatch.setattr(command, "_supervised", supervised)
    line = configuration.run_line(seeds=("127.0.0.1:7401",))
    words = [*shlex.split(line)[2:], "--", "true"]
    assert command.run.main(words, standalone_mode=False) == 0
    (joining,) = made
    # A command always has a grace, which is part of a lease.
    graced = configuration if configuration.grace is not None else configuration.but(grace=5.0)
    expected = graced.configured()
    if configuration.guard_settings:  # for which `hustings run` has no option
        expected = graced.but(guard_settings={}).configured()
    assert joining.wanted.config == expected
