"""Which forms hold from a simultaneous start: delay, rounds and messages, and the baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hustings.lab.closed_forms.announce import delay as delays
from hustings.lab.closed_forms.announce import (
    extensions,
    rounds,
    suppression,
    survival,
    uncorrelated,
)
from hustings.lab.closed_forms.announce import messages as counting
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.closed_forms.announce.setting import AnnounceSetting
from hustings.lab.closed_forms.form import AS_PRINTED, DERIVED, EXACT, LIMIT, Sheet

# Senders where a message of any member silences: LE-M's first round and SUP.
SPEAKERS = "N P(Delta) + a/(1-l) (1-c^N)"
CHAIN = "chain m -> m+1 with l^m, N steps"

SHOWN_ROUNDS = 20  # of a printed sum over all rounds
NO_UNCORRELATED = "the coupling holds for no or correlated loss only; simulate"
NO_FIRST_ROUND = "under uncorrelated loss it is known for Delta = 0 and T_A >= T_S only; simulate"


def delay(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
    """Add tmax, leadership_delay, rounds, avg_rounds."""
    sheet.source = delays.SOURCE
    first = name == "le-m"
    tmax = delays.tmax_first_waker if first else delays.tmax
    waits = "E[tmin]" if first else "E[t_s]" if name == "le-s" else ""
    needed = {"none": "1", "correlated": "1/(1-l)", "uncorrelated": "E[R_(N-1)]"}[s.model]
    formula = f"{_sum(waits, 'T_A (E[R] - 1)')}, E[R] = {needed}"
    found = tmax(s.N, s.loss, s.model, s.law, s.T_A)
    verdict = "exact; one too many as printed (E5)" if s.model == "uncorrelated" else EXACT
    sheet.state("tmax", lambda: found, formula, verdict)
    sheet.state(
        "leadership_delay",
        lambda: delays.leadership_delay(found, s.D),
        "tmax + Delta",
        verdict,
    )
    _rounds(s, sheet)
    if first:
        return
    if s.N == 1:
        sheet.lack("the printed tmax, leadership_delay", "the chapter assumes N > 1")
        return
    printed = delays.printed_tmax(s.N, s.loss, s.model, s.law, s.T_A)
    ending = {"none": "", "correlated": "T_A l/(1-l)", "uncorrelated": "T_A E[R_N]"}[s.model]
    wrong = "wrong: R for R - 1, N for N - 1 receivers (E5)"
    judged = wrong if s.model == "uncorrelated" else AS_PRINTED
    sheet.quote("tmax", lambda: printed, _sum(waits, ending), judged)
    sheet.quote("leadership_delay", lambda: printed + s.D, _sum(waits, "Delta", ending), judged)


def _sum(*parts: str) -> str:
    return " + ".join(part for part in parts if part) or "0"


def _rounds(s: AnnounceSetting, sheet: Sheet) -> None:
    needed = {"none": "1", "correlated": "1/(1-l)", "uncorrelated": "sum of 1 - (1-l^r)^(N-1)"}
    sheet.state("rounds", lambda: rounds.rounds(s.N - 1, s.loss, s.model), needed[s.model])
    sheet.state("avg_rounds", lambda: rounds.average_rounds(s.N - 1, s.loss), "1/(1-l)")
    if s.model != "uncorrelated" or s.loss == 0 or s.N == 1:
        return
    sheet.state(
        "rounds_large_group",
        lambda: rounds.large_group_rounds(s.N - 1, s.loss),
        "(ln(N-1) + gamma) / -ln l + 1/2",
        f"{LIMIT} of many members; no bound (E7)",
    )
    sheet.quote(
        "rounds",
        lambda: rounds.printed_rounds(s.N, s.loss),
        "sum of (-1)^(i+1) C(N,i) / (1 - l^i)",
        "of N receivers, and cancels in doubles: senseless from N = 60 (E5, E6)",
    )


def messages(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
    """Add num_msgs, sent_by_tmax, first_round."""
    sheet.source = counting.SOURCE
    _all_messages(name, s, sheet)
    if name == "le-m":
        _first_round(s, sheet, _FIRST_WAKER)
        return
    _first_round(s, sheet, _ANY_WAKER)
    if s.law.T_S:
        _printed_messages(s, sheet)


def _all_messages(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
    total = counting.total_first_waker if name == "le-m" else counting.total
    formula = {
        "le-a": "1/(1-l) + sum of 1/(1-l^k), k < N; more for Delta >= T_A",
        "le-s": "1/(1-l) + sum over m of E[sum of (1-Z)^k, k < N]",
        "le-m": "1/(1-l) + N sum over m of E[(1-Z)^(N-1) - (1-P)^(N-1)]",
    }[name]
    verdict = s.bears(DERIVED if name == "le-m" else f"{EXACT}; until tmax + Delta (E18)")
    if not s.shared:
        sheet.lack("num_msgs, sent_by_tmax", NO_UNCORRELATED)
        sheet.state(
            "num_msgs_at_least",
            lambda: total(s.N, s.loss, s.law, s.T_A, s.D),
            "num_msgs of correlated loss",
            "a lower bound: uncorrelated loss is the worst case",
        )
        return
    sheet.state("num_msgs", lambda: total(s.N, s.loss, s.law, s.T_A, s.D), formula, verdict)
    if name != "le-m":
        sheet.state(
            "sent_by_tmax",
            lambda: counting.sent_by_tmax(s.N, s.loss, s.law, s.T_A, s.D),
            "as num_msgs, the leader's messages heard at once",
            s.bears(f"{DERIVED} (E30)"),
        )


@dataclass(frozen=True, slots=True)
class _Firsts:
    """How first announcements are counted, depending on the loss."""

    shared: Callable[[int, float, Law, float, float], float]  # all receivers lose the same
    formula: str
    alone: Callable[[int, float], float]  # each loses its own messages, without delay
    alone_formula: str
    alone_verdict: str
    alone_source: str


_ANY_WAKER = _Firsts(
    shared=counting.first_round,
    formula="N P(Delta) + a/(1-l) sum of (1-c^k)/k",
    alone=uncorrelated.first_round,
    alone_formula="M_n = 1 + M_(r+B), r uniform, B binomial",
    alone_verdict="exact; replaces Q(i,n) (E19)",
    alone_source=uncorrelated.SOURCE,
)
_FIRST_WAKER = _Firsts(
    shared=counting.first_round_first_waker,
    formula=SPEAKERS,
    alone=suppression.messages_uncorrelated,
    alone_formula=CHAIN,
    alone_verdict=EXACT,
    alone_source=suppression.SOURCE,
)


def _first_round(s: AnnounceSetting, sheet: Sheet, firsts: _Firsts) -> None:
    if s.shared or s.all_send:
        sheet.state(
            "first_round",
            lambda: firsts.shared(s.N, s.loss, s.law, s.T_A, s.D),
            "N" if s.all_send else firsts.formula,
            EXACT if s.all_send else s.bears(EXACT),
        )
    elif s.D == 0 and s.T_A >= s.law.T_S:
        sheet.source = firsts.alone_source
        sheet.state(
            "first_round",
            lambda: firsts.alone(s.N, s.loss),
            firsts.alone_formula,
            s.bears(firsts.alone_verdict),
        )
    else:
        sheet.lack("first_round", NO_FIRST_ROUND)


def _printed_messages(s: AnnounceSetting, sheet: Sheet) -> None:
    if s.model != "uncorrelated":
        sheet.source = counting.SOURCE
        wrong = "wrong: 1/(1-l) belongs to the integral (E16)"
        sheet.quote(
            "first_round",
            lambda: counting.printed_first_round(s.N, s.loss, s.law, s.D),
            "N P(Delta)/(1-l) + a sum of (1-c^k)/k",
            wrong if s.loss else AS_PRINTED,
        )
    elif s.D == 0:
        sheet.source = uncorrelated.SOURCE
        sheet.quote(
            "first_round",
            lambda: uncorrelated.printed_first_round(s.N, s.loss),
            "sum of i Q(i,N)",
            "wrong for N >= 3: senders are the early ones (E19)",
        )
        sheet.quote(
            "num_msgs",
            lambda: survival.printed_total(s.N, s.loss, SHOWN_ROUNDS),
            f"sum of i r Q(i,N,r), i < N, r <= {SHOWN_ROUNDS}",
            "means nothing: with the true Q the sum over r diverges (E20 to E23)",
        )


def several_leaders(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of k agreed leaders: known without loss and delay."""
    sheet.source = extensions.SOURCE
    if s.loss or s.D:
        sheet.lack("k > 1", "several leaders are counted for l = 0 and Delta = 0 only")
        return
    sheet.state(
        "tmax",
        lambda: extensions.leaders_tmax(s.N, s.k, s.law),
        "E[latest of k wake-ups], T_S k/(k+1)",
        DERIVED,
    )
    if s.law.T_S and s.T_A >= s.law.T_S:
        sheet.state(
            "first_round",
            lambda: extensions.leaders_first_round(s.N, s.k),
            "k + k (H_N - H_k)",
        )
    sheet.lack("anything else", "all other forms are for one leader")


def linked(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of wake-up times that are linked with the criterion."""
    sheet.source = extensions.SOURCE
    sheet.state(
        "best_first",
        lambda: extensions.best_first(s.N, s.link),
        "E[prod of 1 - (u - a k)^+, 1 <= k < N], a = link/((1-link) N)",
        DERIVED,
    )
    if s.law.lam == 0 and s.k == 1:
        plain = delays.tmax(s.N, s.loss, s.model, s.law, s.T_A)
        sheet.state(
            "tmax",
            lambda: extensions.linked_tmax(s.link, plain, s.law),
            "(1-link) T_S/2 + T_A (E[R] - 1)",
            DERIVED,
        )
    sheet.lack("anything else", "all other forms are for wake-up times that are drawn alone")


def baseline_suppression(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of SUP: messages, the last send, the instant at which all know."""
    sheet.source = suppression.SOURCE
    known = s.shared or s.all_send
    if known:
        sheet.state(
            "tmax",
            lambda: suppression.tmax(s.N, s.loss, s.law, s.D),
            "the last send: E[min(tau + Delta, T_S) - gap]",
            "exact; a double integral",
        )
        sheet.state(
            "t_halt",
            lambda: suppression.halt(s.N, s.loss, s.law, s.D),
            "E[min(tau + Delta, latest wake-up)]",
            "exact; not the last send (E28)",
        )
        sheet.state(
            "num_msgs",
            lambda: suppression.messages(s.N, s.loss, s.law, s.D),
            "N" if s.all_send else SPEAKERS,
        )
    else:
        sheet.lack("tmax, t_halt", "under uncorrelated loss no form is known; simulate")
        if s.D == 0:
            sheet.state(
                "num_msgs",
                lambda: suppression.messages_uncorrelated(s.N, s.loss),
                CHAIN,
            )
        else:
            sheet.lack("num_msgs", "under uncorrelated loss it is known for Delta = 0 only")
    sheet.state("rounds", lambda: 1, "1")


def baseline_announcing(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of AL: until all hold the leader's state, or all states."""
    sheet.source = delays.SOURCE
    found = delays.tmax_baseline(s.N, s.loss, s.model, s.T_A)
    needed = rounds.rounds(s.N - 1, s.loss, s.model)
    sheet.state("tmax", lambda: found, "T_A (E[R] - 1)")
    sheet.state("leadership_delay", lambda: delays.leadership_delay(found, s.D), "tmax + Delta")
    _rounds(s, sheet)
    sheet.state(
        "num_msgs",
        lambda: counting.total_baseline(s.N, needed, s.T_A, s.D),
        "N E[R]; N more for each period begun within Delta",
    )
    sheet.state(
        "rounds_everybody",
        lambda: delays.everybody_rounds(s.N, s.loss, s.model),
        "E[R] of N(N-1) receivers, N if correlated",
        "exact; the other reading of convergence",
    )
