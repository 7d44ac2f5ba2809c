"""The election by committees by name: all its forms at a setting, and its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.committee import (
    agreement,
    aware,
    bins,
    claims,
    costs,
    endgame,
    exponents,
    network,
    polling,
)
from hustings.lab.closed_forms.committee.setting import PARAMETERS, Question, read
from hustings.lab.closed_forms.probabilistic.sheet import Sheet
from hustings.lab.closed_forms.terms import Form, plain

NAME = "committee"
EXAMPLES = ({"n": "10000", "b": "0.1"}, {"n": "1e20", "b": "0.3"})


@dataclass(frozen=True, slots=True)
class Evaluated:
    """All forms at one setting."""

    params: dict[str, object]
    forms: list[Form]
    notes: list[str]


def parameters() -> list[reading.Parameter]:
    """The keys that the forms take.

    >>> [parameter.key for parameter in parameters()][:3]
    ['n', 'b', 'profile']
    """
    return list(PARAMETERS)


def evaluate(texts: Mapping[str, str]) -> Evaluated:
    """All forms at the given parameters, texts as typed; `BadInput` tells a mistake.

    >>> found = evaluate({"n": "1e20", "b": "0.3"})
    >>> [round(form.value, 1) for form in found.forms if form.name == "ln_n_layers"]
    [35.8]
    """
    asked, used = read(texts)
    sheet = Sheet()
    _exponents(asked, sheet)
    _claims(asked, sheet)
    _polls(asked, sheet)
    _endgames(asked, sheet)
    if asked.knobs is None:
        sheet.notes.append(asked.why)
    else:
        _agreement(asked.knobs, sheet)
        _bins(asked.knobs, asked.b, sheet)
        _network(asked.knobs, asked.b, sheet)
        _aware(asked.knobs, asked.b, sheet)
        _costs(asked.knobs, asked.b, sheet)
    return Evaluated(used, sheet.forms, sheet.notes)


def _exponents(asked: Question, sheet: Sheet) -> None:
    """Where each constraint begins to hold; n itself is told before the formula."""
    sheet.source = exponents.SOURCE
    for name, power in (("leaves", 5), ("inputs", 8), ("layers", 10), ("subcommittees", 11)):
        value = exponents.power_fits(power)
        what = f"L^{power} < n from n = {exponents.shown(value)} on: "
        _known(sheet, f"ln_n_{name}", value, exponents.power_fits, what)
    for share in (3, 2, 1):
        value = exponents.first_layer_bits(share)
        what = f"share = {share}, n = {exponents.shown(value)}: "
        _known(sheet, f"ln_n_bits_below_n{share}", value, exponents.first_layer_bits, what)
    for name, form in (
        ("ln_n_learning", exponents.learning_majority),
        ("ln_n_learning_for_ever", exponents.surely_learning_majority),
        ("ln_n_silent_lemma", exponents.silent_lemma),
        ("ln_n_silent_lemma", exponents.printed_silent_lemma),
    ):
        value = form()
        _known(sheet, name, value, form, f"n = {exponents.shown(value)}: ")
    if asked.b <= exponents.NEAREST:
        for good in (exponents.good_nodes, exponents.printed_good_nodes):
            value = good(asked.b)
            _known(sheet, "ln_n_good_nodes", value, good, f"n = {exponents.shown(value)}: ")
    else:
        sheet.notes.append("no value for ln_n_good_nodes: b is too near to 1/3")


def _known(
    sheet: Sheet, name: str, value: float, told: Callable[..., object], lead: str = ""
) -> None:
    sheet.add(name, lambda: value, told, lead)


def _claims(asked: Question, sheet: Sheet) -> None:
    sheet.source = claims.SOURCE
    x, b, c1 = asked.ln_n, asked.b, asked.c1
    sheet.add("layers", lambda: exponents.layers(x), exponents.layers)
    sheet.add("first_seats", lambda: claims.first_memberships(x, c1), claims.first_memberships)
    sheet.add(
        "last_participants", lambda: claims.last_participants(x, c1), claims.last_participants
    )
    for name, form in (
        ("first_seats", claims.printed_first_memberships),
        ("first_nodes", claims.first_nodes),
        ("first_nodes", claims.printed_first_nodes),
        ("first_elections", claims.first_elections),
        ("first_elections", claims.printed_first_elections),
        ("monitored", claims.monitored),
        ("monitored", claims.printed_monitored),
        ("last_participants", claims.printed_last_participants),
    ):
        _known(sheet, name, form(x), form)
    for top in (claims.top_bad, claims.printed_top_bad):
        _known(sheet, "top_bad", top(x, b), top)


def _polls(asked: Question, sheet: Sheet) -> None:
    sheet.source = polling.SOURCE
    mean = claims.first_memberships(asked.ln_n, asked.c1)
    lead = f"mean {mean:.3g}: "
    sheet.add("tau", lambda: polling.corrected_tau(mean), polling.corrected_tau, lead)
    sheet.add("silenced", lambda: polling.silenced(mean), polling.silenced, lead)
    sheet.add("silenced", lambda: polling.printed_silenced(mean), polling.printed_silenced, lead)
    n, b, poll, informed = asked.n, asked.b, asked.poll, asked.informed
    for form, polled in (
        (polling.false_leaders, poll),
        (polling.printed_false_leaders, asked.printed_poll),
    ):
        value = form(n, b, polled, informed)
        _known(sheet, "false_leaders", value, form, f"poll = {polled}: ")
    sheet.add(
        "unanswered",
        lambda: polling.unanswered(b, poll, informed),
        polling.unanswered,
        f"poll = {poll}: ",
    )


def _endgames(asked: Question, sheet: Sheet) -> None:
    sheet.source = endgame.SOURCE
    r, x = asked.r, asked.x
    depth = asked.knobs.depth if asked.knobs else 128
    lead = f"r = {r}, x = {x}: "
    sheet.add("feige_good", lambda: endgame.feige(r, x), endgame.feige, lead)
    sheet.add("baton_good", lambda: endgame.baton(r, x), endgame.baton, lead)
    sheet.add("path_good", lambda: endgame.path(x / r, depth), endgame.path, f"{lead}D = {depth}: ")
    sheet.add("path_depth", lambda: endgame.path_depth(r, x / r), endgame.path_depth, lead)
    sheet.add(
        "path_depth_bounded",
        lambda: endgame.bounded_path_depth(x / r),
        endgame.bounded_path_depth,
        lead,
    )


def _agreement(knobs: network.Knobs, sheet: Sheet) -> None:
    sheet.source = agreement.SOURCE
    k = round(network.participants(knobs))
    for name, form in (
        ("agreement_bits", agreement.agreement_bits),
        ("agreement_bits", agreement.printed_agreement_bits),
        ("agreement_rounds", agreement.agreement_rounds),
        ("phase_king_bits", agreement.phase_king_bits),
        ("phase_king_rounds", agreement.phase_king_rounds),
    ):
        _known(sheet, name, form(k), form, f"k = {k}: ")


def _bins(knobs: network.Knobs, b: float, sheet: Sheet) -> None:
    sheet.source = bins.SOURCE
    k, h = round(network.participants(knobs)), knobs.layers[0][2]
    bad, lead = round(b * k), f"k = {k}, h = {h}: "
    sheet.add("bad_after_halving", lambda: bins.halved(k, bad, h), bins.halved, lead)
    sheet.add(
        "bad_after_halving_formula",
        lambda: bins.halved_formula(k, b, h),
        bins.halved_formula,
        lead,
    )
    sheet.add("bad_after_one_shot", lambda: bins.one_shot(k, bad, 2**h), bins.one_shot, lead)
    sheet.add(
        "bad_after_one_shot_formula",
        lambda: bins.one_shot_formula(k, b, 2**h),
        bins.one_shot_formula,
        lead,
    )
    sheet.add("bad_unpacked", lambda: bins.unpacked(b), bins.unpacked)
    sheet.source = costs.SOURCE
    sheet.add("election_bits", lambda: costs.election_bits(k, h), costs.election_bits, lead)
    sheet.add("election_rounds", lambda: costs.election_rounds(k, h), costs.election_rounds, lead)
    if h:
        sheet.add("one_shot_bits", lambda: costs.one_shot_bits(k, 2**h), costs.one_shot_bits, lead)


def _network(knobs: network.Knobs, b: float, sheet: Sheet) -> None:
    sheet.source = network.SOURCE
    for name, form in (
        ("k", network.participants),
        ("c", network.committee),
        ("nodes", network.top_nodes),
        ("k_top", network.top_seats),
        ("k_top_distinct", network.top_members),
        ("memberships_at_most", network.most_memberships),
    ):
        _known(sheet, name, form(knobs), form)
    sheet.add("root_bad", lambda: network.root_bad(knobs, b), network.root_bad)
    for style in network.STYLES:
        _winning(sheet, knobs, b, style)
    size = min(128, knobs.n)
    sheet.add(
        "good_leader_single",
        lambda: network.single(knobs.n, b, size, knobs.depth),
        network.single,
        f"of {size}: ",
    )


def _winning(sheet: Sheet, knobs: network.Knobs, b: float, style: str) -> None:
    sheet.add(
        f"good_leader_{style}",
        lambda: network.good_leader(knobs, b, style),
        network.good_leader,
        f"{style}: ",
    )


def _aware(knobs: network.Knobs, b: float, sheet: Sheet) -> None:
    sheet.source = aware.SOURCE
    groups = max(1, round(knobs.groups))
    lead = f"R = {groups}: "
    beta = aware.broken(b, groups)
    _known(sheet, "broken", beta, aware.broken, lead)
    sheet.add("broken_at_most", lambda: aware.broken_at_most(b, groups), aware.broken_at_most, lead)
    sheet.add("informed_if_broken", lambda: aware.informed(beta, b), aware.informed)


def _costs(knobs: network.Knobs, b: float, sheet: Sheet) -> None:
    sheet.source = costs.SOURCE
    sheet.add("bits_mean", lambda: costs.tree_bits(knobs, b), costs.tree_bits)
    sheet.add("bits_electing", lambda: costs.electing_bits(knobs), costs.electing_bits)
    sheet.add("bits_root", lambda: costs.rooting_bits(knobs, b), costs.rooting_bits)
    sheet.add("bits_learning", lambda: costs.learning_bits(knobs), costs.learning_bits)
    sheet.add("rounds", lambda: costs.tree_rounds(knobs, b), costs.tree_rounds)
    for name, rival in (
        ("path", costs.everybody_by_path),
        ("feige", costs.everybody_by_feige),
        ("phase_king", costs.everybody_by_phase_king),
    ):
        _known(sheet, f"bits_everybody_{name}", rival(knobs.n), rival)
        _crossing(sheet, name, rival)
    sheet.add("bits_everybody", lambda: costs.printed_everybody(knobs.n), costs.printed_everybody)


def _crossing(sheet: Sheet, name: str, rival: Callable[[int], float]) -> None:
    sheet.add(f"crossover_{name}", lambda: costs.crossover(rival), costs.crossover, f"{name}: ")


def page() -> list[str]:
    """The section of the reference page.

    >>> page()[0]
    '## committee'
    """
    heads = [", ".join(f"{k}={v}" for k, v in example.items()) for example in EXAMPLES]
    columns = [evaluate(example).forms for example in EXAMPLES]
    rows: dict[tuple[bool, str], tuple[Form, list[str]]] = {}
    for column, forms in enumerate(columns):
        for form in forms:
            key = (form.printed, form.name)
            _, values = rows.setdefault(key, (form, ["-"] * len(columns)))
            values[column] = f"{plain(form.value):.6g}"
    order = sorted(rows, key=lambda key: key[0])  # corrected forms first
    return [
        "## committee",
        "",
        "L is ln n. The examples are a group of ten thousand, and one so large that the paper's",
        "network has layers; a dash means that there is no value.",
        "",
        "| parameter | default | meaning |",
        "|---|---|---|",
        *(_row(f"`{p.key}`", p.default, p.meaning) for p in PARAMETERS),
        "",
        _row("form", "kind", "formula", *heads, "source", "verdict"),
        "|---|---|---|---|---|---|---|",
        *(_shown(*rows[key]) for key in order),
    ]


def _shown(form: Form, values: list[str]) -> str:
    kind = "printed" if form.printed else "corrected"
    return _row(f"`{form.name}`", kind, form.formula, *values, form.source, form.verdict)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
