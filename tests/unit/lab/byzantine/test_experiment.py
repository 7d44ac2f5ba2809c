"""What describes other worlds is refused for an election in rounds, in a sentence."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hustings.core.errors import BadInput
from hustings.lab.byzantine.experiment import MOST_EVENTS, ByRounds, by_rounds
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from tests.unit.cli.commands import Hustings, in_process


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)


def made(network: Network | None = None, *, seed: int = 1, delta: float = 1.0) -> Experiment:
    config = CommitteeConfig.parse({"N": 24, "delta": delta})
    if network is None:
        return Experiment(Committee, 24, config, seed=seed)
    return Experiment(Committee, 24, config, seed=seed, network=network)


@pytest.mark.parametrize("protocol", ["committee", "agreement", "lightest-bin"])
@pytest.mark.parametrize(
    "option, named",
    [
        ("--choice lowest-id", "--choice"),
        ("--attribute cpu=random", "--attribute"),
        ("--scenario leader-crash", "--scenario"),
        ("--initiator 3", "--scenario"),
        ("--crashed 3", "--scenario"),
        ("--fault crash:7@2.5", "--scenario"),
        ("--view 0.5", "--view"),
        ("--drift 0.1", "--drift"),
        ("--offset 2", "--drift or --offset"),
        ("--detection heartbeat", "--detection"),
        ("--detection perfect", "--detection"),
        ("--guard memory", "--guard"),
        ("--guard quorum", "--guard"),
        ("--membership gossip", "--membership"),
    ],
)
def test_options_that_mean_nothing(
    protocol: str, option: str, named: str, hustings: Hustings
) -> None:
    complaint = hustings("sim", protocol, "-n", "24", *option.split()).complaint
    assert complaint.startswith(f"{protocol} runs in synchronous rounds"), complaint
    assert named in complaint
    assert complaint.endswith("has no meaning there")


@pytest.mark.parametrize("option", ["--loss 0.1", "--duplicate 0.1", "--reorder 0.1 --hold-back 1"])
def test_networks_that_lose_or_repeat(option: str, hustings: Hustings) -> None:
    complaint = hustings("sim", "committee", "-n", "24", *option.split()).complaint
    assert complaint == "committee needs a network that loses, repeats and holds back nothing"


@pytest.mark.parametrize("delay", [Fixed(1.5), Uniform(0.1, 1.5)])
def test_messages_must_arrive_in_their_round(delay: Fixed | Uniform) -> None:
    with pytest.raises(BadInput) as caught:
        by_rounds(made(Network(delay=delay)), limited=False)
    assert "every message within delta = 1" in str(caught.value)
    assert "take 1.5" in str(caught.value)
    by_rounds(made(Network(delay=delay), delta=1.5), limited=False)


def test_loss_of_multicasts_alone_is_loss() -> None:
    with pytest.raises(BadInput, match="loses, repeats and holds back nothing"):
        by_rounds(made(Network(loss=Uncorrelated(0.2))), limited=False)


def test_everything_else_is_kept() -> None:
    plain = made(Network(delay=Uniform(0.1, 0.5)), seed=9)
    found = by_rounds(plain, limited=True)
    assert isinstance(found, ByRounds)
    for each in fields(Experiment):
        assert getattr(found, each.name) == getattr(plain, each.name), each.name


def test_the_usual_limit_of_events_is_too_low_for_committees() -> None:
    plain = made()
    assert plain.max_events < MOST_EVENTS
    assert by_rounds(plain, limited=False).max_events == MOST_EVENTS
    assert by_rounds(plain, limited=True).max_events == plain.max_events
