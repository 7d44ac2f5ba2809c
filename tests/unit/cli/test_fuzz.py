"""Whatever is typed, a command answers with a result or with one sentence."""

from __future__ import annotations

import contextlib
import io

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hustings.cli.app import run
from hustings.sim.faults import FAULTS
from tests.unit.cli.commands import Result

# Nothing that is typed can hold a NUL or a lone surrogate.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.one_of(
    st.integers(-3, 12).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(["", "1e999", "-0.0", "1_000", "0x10", "٣", "1e-320", " 5 ", "9" * 400]),
)
IDS = st.lists(
    st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS).map("-".join)), min_size=1, max_size=3
).map(",".join)
WORDS = st.one_of(TEXTS, NUMBERS, IDS)

KEYS = ["delta", "T1", "T2", "max_runs", "T", "x", ""]
SETTINGS = TEXTS | st.tuples(st.sampled_from(KEYS), WORDS).map("=".join)
DELAYS = WORDS | st.tuples(
    st.sampled_from(["uniform", "lognormal", "fixed"]), st.tuples(NUMBERS, NUMBERS).map(",".join)
).map(":".join)
ATTRIBUTES = TEXTS | st.tuples(st.sampled_from(["cpu", "load", ""]), WORDS).map("=".join)
CHOICES = TEXTS | st.lists(
    st.tuples(st.sampled_from(["highest", "lowest", ""]), st.sampled_from(["cpu", "x", ""])).map(
        ":".join
    ),
    max_size=3,
).map(",".join)
WHOM = st.one_of(
    WORDS,
    st.tuples(IDS, IDS).map(">".join),
    st.tuples(IDS, IDS).map("|".join),
    st.tuples(NUMBERS, NUMBERS).map("+".join),
)
HAPPENINGS = TEXTS | st.tuples(st.sampled_from([*FAULTS, "", "crush"]), WHOM, NUMBERS).map(
    lambda parts: f"{parts[0]}:{parts[1]}@{parts[2]}"
)
LINKS = TEXTS | st.tuples(NUMBERS, NUMBERS, NUMBERS).map(lambda p: f"{p[0]}>{p[1]}={p[2]}")


def typed(*arguments: str) -> Result:
    """Bounded, so that a setting that is merely unwise ends as well."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    return Result(code, out.getvalue(), err.getvalue())


def check(*arguments: str) -> None:
    result = typed(*arguments)
    if result.code == 0:
        assert result.out
        assert all(line.startswith("hustings: note: ") for line in result.err.splitlines())
    else:
        assert result.complaint


def check_sim(*arguments: str) -> None:
    check("sim", "bully", "-n", "5", "--max-events", "2000", *arguments)


@given(text=SETTINGS)
@example(text="T1=1e-320")
@example(text="delta=1e308")
def test_settings(text: str) -> None:
    check_sim(f"--set={text}")


@given(text=HAPPENINGS)
@settings(max_examples=180)
def test_faults(text: str) -> None:
    check_sim(f"--fault={text}")


@given(text=DELAYS)
@example(text="lognormal:1,900")
@example(text="1e300")
def test_delays(text: str) -> None:
    check_sim(f"--delay={text}")


@given(text=LINKS)
def test_links(text: str) -> None:
    check_sim(f"--link={text}")


@given(attribute=ATTRIBUTES, choice=CHOICES)
def test_attributes_and_choices(attribute: str, choice: str) -> None:
    check_sim(f"--attribute={attribute}", f"--choice={choice}")


@given(choice=CHOICES)
def test_choices_over_what_there_is(choice: str) -> None:
    check_sim("--attribute=cpu=random", f"--choice={choice}")


@given(crashed=WORDS, scenario=st.sampled_from(["start", "leader-crash"]))
def test_the_crashed(crashed: str, scenario: str) -> None:
    check_sim(f"--crashed={crashed}", f"--scenario={scenario}")


@given(
    option=st.sampled_from(
        [
            "--loss",
            "--collision",
            "--duplicate",
            "--reorder",
            "--hold-back",
            "--view",
            "--drift",
            "--offset",
            "--until",
            "--seed",
            "--initiator",
        ]
    ),
    value=WORDS,
)
@settings(max_examples=120)
def test_numbers(option: str, value: str) -> None:
    check_sim(f"{option}={value}")


@given(
    detection=st.sampled_from(["perfect", "heartbeat", "accrual"]),
    setting=st.tuples(st.sampled_from(["latency", "T", "D", "pattern", "threshold"]), WORDS).map(
        "=".join
    ),
)
def test_detection_settings(detection: str, setting: str) -> None:
    check_sim("--until=50", f"--detection={detection}", f"--detection-set={setting}")


@given(
    protocol=st.sampled_from(["bully", "ring", "heartbeat", "stable"]),
    setting=st.tuples(st.sampled_from(["n", "d", "m", "crashed", "T1", "T"]), WORDS).map("=".join),
)
def test_theory(protocol: str, setting: str) -> None:
    check("theory", protocol, f"--set={setting}")


@given(command=TEXTS, argument=TEXTS)
def test_commands(command: str, argument: str) -> None:
    check(command, argument)
