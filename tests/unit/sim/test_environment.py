"""Environment files: what they say, what is refused with its line, and that writing is exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.documents import LARGEST, Document
from hustings.core.errors import BadInput
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, PerLink, Uniform
from hustings.sim.environment import (
    Crashes,
    Environment,
    Outages,
    parse_environment,
    read_environment,
)
from hustings.sim.loss import Burst, Correlated, Loss, NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses
from hustings.sim.sites import Pair, SiteDelay, SiteLoss, Sites

TEXT = """# two datacentres
[sites]
a = 20
b = 20
[delay]
within = "lognormal:300us,0.4"
between."a,b" = "40ms"
[loss]
rate = "1%"
burst = 5
between."a>b" = "2%"
between."b>a" = { rate = "3%", burst = 8 }
[pauses]
rate = "6/h"
length = "exponential:80ms"
longest = "800ms"
[crashes]
rate = "1/week"
back = "uniform:30s,2m"
[outages]
rate = "1/month"
lasts = "10m"
[clocks]
drift = "50ppm"
[wire]
ip = 6
"""
DAY = 86_400.0


def test_a_file_says_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "environment.toml"
    file.write_text(TEXT)
    read = read_environment(file)
    sites = Sites(("a", "b"), (20, 20))
    within = Burst(0.01, length=5.0)
    assert read == Environment(
        network=Network(
            delay=SiteDelay(
                sites, Lognormal(300 * 1e-6, 0.4), {(0, 1): Fixed(0.04), (1, 0): Fixed(0.04)}
            ),
            loss=SiteLoss.of(
                sites, within, {(0, 1): Burst(0.02, length=5.0), (1, 0): Burst(0.03, length=8.0)}
            ),
        ),
        members=40,
        sites=sites,
        pauses=Pauses(6 / 3600, Exponential(0.08), 0.8),
        crashes=Crashes(1 / (7 * DAY), Uniform(30.0, 120.0)),
        outages=Outages(1 / (30 * DAY), Fixed(600.0), "cut"),
        drift=50e-6,
        header=48,
    )


def test_little_is_needed() -> None:
    assert parse_environment("[delay]\nwithin = '2ms'") == Environment(Network(delay=Fixed(0.002)))


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "x.toml: delay.within is missing: write how long a message takes"),
        ("format = 2\nno-such-key = 1", "x.toml, line 1: format is 2, and this version of hust"),
        ("format = true", "x.toml, line 1: format must be a whole number, at most 1, not true"),
        ("delay = 3", "x.toml, line 1: delay must be a table, not a number"),
        ("[delay]\nwithin = '2'", "x.toml, line 2: delay.within: '2' is no law of times: write 40"),
        (
            "[delay]\nwithin = 'uniform:1ms'",
            "x.toml, line 2: delay.within: delay 'uniform:1ms' nee",
        ),
        ("[delay]\nwithin = 'uniform:1,3'", "x.toml, line 2: delay.within: uniform law's low '1' "),
        ("[delay]\nwithin = 'gamma:1ms'", "x.toml, line 2: delay.within: unknown delay model"),
        ("[delay]\nwithin = '2ms'\nwithinn = 1", "x.toml, line 3: delay.withinn is no key that is"),
        ("[delay]\nwithin = '2ms'\n[lost]\n", "x.toml, line 3: lost is no key that is known here "),
        ("members = 0\n[delay]\nwithin = '2ms'", "x.toml, line 1: members must be a whole number"),
        (
            "[delay]\nwithin = '2ms'\nbetween.'a,b' = '3ms'",
            "x.toml, line 3: delay.between goes with sites, and there are none",
        ),
        (
            "[sites]\na = 1\nb = 2\n[delay]\nwithin = '2ms'\nbetween.'a>b' = '3ms'",
            "x.toml, line 6: delay.between.b>a is missing: each pair needs a law",
        ),
        (
            "[sites]\na = 1\nb = 2\n[delay]\nwithin = '2ms'\nbetween.'a,c' = '3ms'",
            "x.toml, line 6: delay.between.a,c: unknown site 'c'",
        ),
        (
            "[sites]\na = 1\nb = 2\n[delay]\nwithin = '2ms'\n"
            "between.'a,b' = '3ms'\nbetween.'b>a' = '4ms'",
            "x.toml, line 7: delay.between.b>a says again what another key says",
        ),
        (
            "[sites]\na = 1\n[delay]\nwithin = '2ms'",
            "x.toml, line 1: sites: sites are at least two",
        ),
        ("[sites]\na = 1\n'b c' = 1", "x.toml, line 3: sites.b c is no name: write a letter, then"),
        (
            "members = 4\n[sites]\na = 1\nb = 2\n[delay]\nwithin = '2ms'\nbetween.'a,b' = '3ms'",
            "x.toml: there are 4 members, but the sites hold 3: say one of them",
        ),
        (
            "[delay]\nwithin='2ms'\n[loss]\nrate = '1%'\nburst = 0",
            "x.toml, line 5: loss.burst: 0 is",
        ),
        ("[delay]\nwithin='2ms'\n[loss]\nbad = '1%'", "x.toml, line 3: loss: bad goes with burst"),
        (
            "[delay]\nwithin='2ms'\n[loss]\nrate = '90%'\nburst = 5",
            "x.toml, line 3: loss: bursts of 5 messages lose at most 0.833 of all messages",
        ),
        (
            "[delay]\nwithin='2ms'\n[pauses]\nrate = '1/h'",
            "x.toml, line 3: pauses: length is missi",
        ),
        (
            "[delay]\nwithin='2ms'\n[pauses]\nrate = '0/h'\nlength = '1s'",
            "x.toml, line 3: pauses: the rate of pauses must be a number > 0, not 0",
        ),
        (
            "[delay]\nwithin='2ms'\n[outages]\nrate = '1/h'\nlasts = '1s'",
            "x.toml: outages are those of sites: say which sites there are",
        ),
        (
            "[delay]\nwithin='2ms'\n[outages]\nrate = '1/h'\nlasts = '1s'\nkind = 'fire'",
            "x.toml, line 6: outages.kind must be one of cut, crash, not 'fire'",
        ),
        ("[delay]\nwithin='2ms'\n[wire]\nip = 5", "x.toml, line 3: wire: ip must be 4 or 6"),
        (
            "[delay]\nwithin='2ms'\n[clocks]\ndrift = '1s'",
            "x.toml, line 4: clocks.drift: '1s' is no",
        ),
        ("[delay\n", "x.toml, line 1: this is not TOML"),
    ],
)
def test_wrong_files(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_environment(text, "x.toml")
    assert str(refused.value).startswith(sentence)


def test_several_errors_are_one_sentence() -> None:
    wrong = TEXT.replace("800ms", "x").replace('"6/h"', "6").replace("drift", "drft")
    with pytest.raises(BadInput) as refused:
        parse_environment(wrong, "x.toml")
    said = str(refused.value)
    assert "x.toml, line 14: pauses.rate: 6 is not a rate" in said
    assert "x.toml, line 16: pauses.longest must be a duration" in said
    assert "x.toml, line 24: clocks.drft is no key that is known here (did you mean drift?)" in said


def test_lines_of_errors_that_are_not_told_are_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line is found by reading parts of the file again and again."""
    looked_for: list[tuple[str, ...]] = []
    line_of = Document.line_of

    def counted(self: Document, path: tuple[str, ...]) -> int | None:
        looked_for.append(path)
        return line_of(self, path)

    monkeypatch.setattr(Document, "line_of", counted)
    pairs = "".join(f'"a,x{number}" = "1ms"\n' for number in range(4000))
    with pytest.raises(BadInput, match="and 3995 more"):
        parse_environment(
            f"[sites]\na = 1\nb = 1\n[delay]\nwithin = '1s'\n[delay.between]\n{pairs}"
        )
    assert len(looked_for) == 5


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    with pytest.raises(BadInput, match=r"cannot read .*x\.toml: No such file"):
        read_environment(file)
    file.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(BadInput, match="more than"):
        read_environment(file)
    with pytest.raises(BadInput, match="more than"):
        parse_environment("#" * (LARGEST + 1))


def test_a_law_and_a_loss_of_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own_models.py").write_text(
        "from dataclasses import dataclass\n"
        "from hustings.sim.delay import Delay\n"
        "from hustings.sim.loss import Loss\n"
        "@dataclass(frozen=True, slots=True)\n"
        "class Steps(Delay):\n"
        "    name = 'steps'\n"
        "    step: float\n"
        "    most: float\n"
        "    def draw(self, rng, sender, receiver):\n"
        "        return self.step * rng.randint(1, int(self.most))\n"
        "    @property\n"
        "    def bound(self):\n"
        "        return self.step * self.most\n"
        "@dataclass(frozen=True, slots=True)\n"
        "class Odd(Loss):\n"
        "    name = 'odd'\n"
        "    share: float = 0.5\n"
        "    def fate(self, chance):\n"
        "        return lambda now, sender, receiver: sender % 2 == 1\n"
    )
    place = tmp_path / "own_models.py"
    read = parse_environment(
        f"[delay]\nwithin = '{place}:Steps:5ms,4'\n"
        f"[loss]\nrate = '1%'\nmodel = '{place}:Odd'\nsettings = {{ share = 0.25 }}"
    )
    assert read.network.delay.bound == 0.02
    assert "share=0.25" in repr(read.network.loss)
    assert parse_environment(read.to_toml()) == read


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Environment(Network(), members=0), "members must be from 1"),
        (lambda: Environment(Network(), drift=1.0), "clock drift must lie in"),
        (lambda: Environment(Network(), header=20), "the headers of a datagram take 28"),
        (lambda: Environment(Network(), sites=Sites(("a", "b"), (1, 1))), "sites need a delay"),
        (lambda: Environment(Network(multicast_loss=Uncorrelated(0.1))), "has one loss"),
        (lambda: Crashes(0.0, Fixed(1.0)), "the rate of crashes must be > 0 and at most 1000/s"),
        (lambda: Outages(1e9, Fixed(1.0)), "the rate of outages must be > 0 and at most 1000/s"),
        (lambda: Environment(Network(), pauses=Pauses(1e12)), "the rate of pauses must be > 0 and"),
        (lambda: Outages(1.0, Fixed(1.0), "fire"), "an outage must be one of cut, crash"),
        (lambda: Environment(Network(delay=PerLink())).to_toml(), "cannot be written"),
    ],
)
def test_what_is_no_environment(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        make()


# Every environment is written so that it is read as the same

TIMES = st.floats(1e-9, 1e6)
SHARES = st.floats(0.0, 1.0)
LAWS: st.SearchStrategy[Delay] = st.one_of(
    st.builds(Fixed, st.floats(0.0, 1e6)),
    st.builds(lambda a, b: Uniform(min(a, b), max(a, b)), TIMES, TIMES),
    st.builds(Exponential, TIMES),
    st.builds(Lognormal, TIMES, st.floats(0.0, 5.0)),
)
LOSSES: st.SearchStrategy[Loss] = st.one_of(
    st.just(NoLoss()),
    st.builds(Uncorrelated, SHARES),
    st.builds(Burst, st.floats(0.0, 0.2), st.floats(1.0, 50.0), st.floats(0.5, 1.0)),
)
RATES = st.floats(1e-9, 1e3)


@st.composite
def networks(draw: st.DrawFn, sites: Sites | None) -> Network:
    within, losses = draw(LAWS), draw(LOSSES)
    delay: Delay = within
    loss: Loss = draw(
        st.one_of(
            st.just(losses), st.builds(Correlated, SHARES), st.builds(Uncorrelated, SHARES, SHARES)
        )
    )
    if sites is not None:
        count = range(len(sites.names))
        pairs: list[Pair] = [(one, other) for one in count for other in count if one != other]
        delay = SiteDelay(sites, within, {pair: draw(LAWS) for pair in pairs})
        some = draw(st.lists(st.sampled_from(pairs), unique=True))
        if some:
            loss = SiteLoss.of(sites, losses, {pair: draw(LOSSES) for pair in some})
    reorder = draw(st.floats(0.0, 0.5))
    return Network(
        delay=delay,
        loss=loss,
        duplicate=draw(SHARES),
        reorder=reorder,
        hold_back=draw(TIMES) if reorder else 0.0,
        fifo=False if reorder else draw(st.booleans()),
    )


@st.composite
def environments(draw: st.DrawFn) -> Environment:
    names = draw(st.lists(st.from_regex(r"[A-Za-z][\w-]{0,5}", fullmatch=True), unique=True))
    sizes = [draw(st.integers(1, 50)) for _ in names]
    sites = Sites(tuple(names), tuple(sizes)) if len(names) >= 2 else None
    longest = st.one_of(st.just(float("inf")), TIMES)
    outages = st.builds(Outages, RATES, LAWS, st.sampled_from(["cut", "crash"]))
    return Environment(
        network=draw(networks(sites)),
        members=None if sites is not None else draw(st.none() | st.integers(1, 10**6)),
        sites=sites,
        pauses=draw(st.none() | st.builds(Pauses, RATES, LAWS, longest)),
        crashes=draw(st.none() | st.builds(Crashes, RATES, LAWS)),
        outages=draw(st.none() | outages) if sites is not None else None,
        drift=draw(st.floats(0.0, 0.5)),
        header=draw(st.sampled_from([28, 48])),
    )


@given(environments())
def test_what_is_written_is_read_as_the_same(environment: Environment) -> None:
    assert parse_environment(environment.to_toml()) == environment
