"""The probabilistic election by name: all its forms at a setting, and its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.probabilistic import (
    detection,
    events,
    leaders,
    messages,
    sizing,
    times,
)
from hustings.lab.closed_forms.probabilistic import success as succeeding
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.probabilistic.setting import PARAMETERS, Plan, read
from hustings.lab.closed_forms.probabilistic.sheet import Sheet
from hustings.lab.closed_forms.terms import Form, plain

NAME = "probabilistic"
EXAMPLES = (
    {"K": "40", "view_prob": "0.4", "p_mcastl": "0.01", "p_ucastl": "0.01", "p_fail": "0.01"},
    {"K": "7", "view_prob": "0.5", "p_mcastl": "0.3", "p_ucastl": "0.3", "p_fail": "0.001"},
)
SIZES = ("10000", "2000")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """All forms at one setting."""

    params: dict[str, object]
    forms: list[Form]
    notes: list[str]


def parameters() -> list[reading.Parameter]:
    """The keys that the forms take.

    >>> [parameter.key for parameter in parameters()][:3]
    ['K', 'view_prob', 'p_mcastl']
    """
    return list(PARAMETERS)


def evaluate(texts: Mapping[str, str]) -> Evaluated:
    """All forms at the given parameters, texts as typed; `BadInput` tells a mistake.

    >>> found = evaluate({"K": "24", "N": "10000", **EXAMPLES[0]} | {"K": "24"})
    >>> [round(form.value, 4) for form in found.forms if form.name == "success"]
    [0.99, 0.6391]
    """
    plan, used = read(texts)
    sheet = Sheet()
    for fill in (_success, _detection, _messages, _times, _sizing, _safety):
        fill(plan, sheet)
    return Evaluated(used, sheet.forms, [detection.UNCOVERED, *sheet.notes])


def _success(plan: Plan, sheet: Sheet) -> None:
    sheet.source = events.SOURCE
    one = plan.first
    for name, true, printed in (
        ("e1", events.enough, events.printed_enough),
        ("e2_given_e1", events.joined, events.printed_joined),
        ("e3_given_e1_e2", events.same, events.printed_same),
        ("e4_given_e1_e2_e3", events.heard, events.printed_heard),
        ("e5_given_e1_to_e4", events.leader_lives, events.printed_leader_lives),
        ("room_log10", events.room, events.printed_room),
    ):
        sheet.both(name, one, true, printed)
    sheet.source = succeeding.SOURCE
    sheet.both("success", one, succeeding.success, succeeding.printed_success)
    sheet.of("success_by_product", one, succeeding.product_success)
    sheet.add("torn_without_loss", lambda: _torn(one), succeeding.torn)


def _torn(one: Round) -> float:
    return succeeding.torn(one.K, one.view_prob)


def _detection(plan: Plan, sheet: Sheet) -> None:
    sheet.source = detection.SOURCE
    one = plan.first
    sheet.both("detection", one, detection.detection, detection.printed_detection)
    sheet.of("detection_printed_e1", one, detection.printed_e1_detection)
    sheet.of("detection_by_hash", one, detection.thinned_detection)


def _messages(plan: Plan, sheet: Sheet) -> None:
    sheet.source = messages.SOURCE
    one = plan.first
    sheet.of("relay_members", one, messages.relay_members)
    sheet.of("finals", one, messages.finals)
    sheet.of("first_unicasts", one, messages.first_unicasts)
    sheet.of("unicasts_at_most", one, messages.mean_unicasts_at_most)
    m = max(1, round(messages.relay_members(one)))
    for name, form in (
        ("worst_unicasts", messages.most_unicasts),
        ("worst_fresh_unicasts", messages.most_fresh_unicasts),
        ("worst_unicasts", messages.printed_unicasts),
    ):
        _worst(sheet, name, form, m)


def _worst(sheet: Sheet, name: str, form: Callable[[int], float], m: int) -> None:
    sheet.add(name, lambda: form(m), form, lead=f"m = {m}: ")


def _times(plan: Plan, sheet: Sheet) -> None:
    sheet.source = messages.TIMES
    K, delta, T_3 = plan.first.K, plan.delta, plan.T_3
    T_2 = messages.time_out_2(K, delta, T_3)
    sheet.add("T_2", lambda: T_2, messages.time_out_2)
    sheet.add("T_1", lambda: messages.time_out_1(T_2, T_3), messages.time_out_1)
    sheet.add("T_2", lambda: messages.printed_time_out_2(K, delta), messages.printed_time_out_2)
    sheet.add(
        "T_1", lambda: messages.printed_time_out_1(K, delta, T_3), messages.printed_time_out_1
    )
    sheet.source = times.SOURCE
    one, work = plan.first, plan.work
    sheet.add("round_time", lambda: times.round_time(one, delta, T_3, work), times.round_time)
    sheet.add(
        "round_time", lambda: times.printed_round_time(one, delta, work), times.printed_round_time
    )
    sheet.both("in_time", one, times.in_time, times.printed_in_time)


def _sizing(plan: Plan, sheet: Sheet) -> None:
    sheet.source = sizing.SOURCE
    one, wanted = plan.first, plan.wanted
    for name, form in (
        ("smallest_K", sizing.smallest_k),
        ("smallest_K", sizing.printed_smallest_k),
        ("largest_N_log10", sizing.largest_group),
        ("largest_N_log10", sizing.printed_largest_group),
    ):
        _solved(sheet, name, form, one, wanted)
    sheet.source = sizing.HASHES
    sheet.add("fair_K", lambda: sizing.fair_k(one, plan.hash_skew), sizing.fair_k)


def _solved(
    sheet: Sheet, name: str, form: Callable[[Round, float], float], one: Round, wanted: float
) -> None:
    sheet.add(name, lambda: form(one, wanted), form)


def _safety(plan: Plan, sheet: Sheet) -> None:
    sheet.source = leaders.SOURCE
    one, steps = plan.first, plan.steps
    sheet.of("two_leaders", one, leaders.two_leaders)
    sheet.of("two_leaders_any_views", one, leaders.simple_two_leaders)
    sheet.add(
        "two_leaders_ever", lambda: leaders.two_leaders_ever(one, steps), leaders.two_leaders_ever
    )
    sheet.add("last_round_reached", lambda: leaders.reached(one, steps)[-1], leaders.reached)


def page() -> list[str]:
    """The section of the reference page.

    >>> page()[0]
    '## probabilistic'
    """
    heads = [_told(example, N) for example, N in zip(EXAMPLES, SIZES, strict=True)]
    columns = [
        evaluate(example | {"N": N}).forms for example, N in zip(EXAMPLES, SIZES, strict=True)
    ]
    rows: dict[tuple[bool, str], tuple[Form, list[str]]] = {}
    for column, forms in enumerate(columns):
        for form in forms:
            key = (form.printed, form.name)
            _, values = rows.setdefault(key, (form, ["-"] * len(columns)))
            values[column] = f"{plain(form.value):.6g}"
    order = sorted(rows, key=lambda key: key[0])  # corrected forms first
    return [
        "## probabilistic",
        "",
        "The examples are Figure 4 at K = 40, and a first round of section 5; a dash means that",
        "there is no value.",
        "",
        "| parameter | default | meaning |",
        "|---|---|---|",
        *(_row(f"`{p.key}`", p.default, p.meaning) for p in PARAMETERS),
        "",
        _row("form", "kind", "formula", *heads, "source", "verdict"),
        "|---|---|---|---|---|---|---|",
        *(_shown(*rows[key]) for key in order),
    ]


def _told(example: Mapping[str, str], N: str) -> str:
    return ", ".join(f"{key}={value}" for key, value in {**example, "N": N}.items())


def _shown(form: Form, values: list[str]) -> str:
    kind = "printed" if form.printed else "corrected"
    return _row(f"`{form.name}`", kind, form.formula, *values, form.source, form.verdict)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
