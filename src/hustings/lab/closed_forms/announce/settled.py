"""Which forms hold in a settled group: departure, false departure, joiners, shares of time, Bye."""

from __future__ import annotations

from math import inf

from hustings.lab.closed_forms.announce import consistency, extensions
from hustings.lab.closed_forms.announce import departure as leaving
from hustings.lab.closed_forms.announce import joiner as joining
from hustings.lab.closed_forms.announce.setting import AnnounceSetting
from hustings.lab.closed_forms.form import APPROXIMATE, AS_PRINTED, DERIVED, EXACT, Sheet

PLAIN = "T_L + 2 Delta + E[t_s] - T_A/2"


def departure(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms after the leader's departure, until all survivors follow its successor."""
    sheet.source = leaving.SOURCE
    times = (s.law, s.T_A, s.T_L, s.D)
    if inf == s.T_L:
        sheet.lack("departure", "with T_L infinite no member notices")
        return
    if name == "le-m":
        if s.loss:
            sheet.lack("departure", "of le-m it is known for l = 0 only; simulate")
        else:
            formula = "T_L + 2 Delta - T_A/2 + E[tmin of N-1]"
            sheet.state("departure", lambda: leaving.first_waker(s.N, *times), formula, DERIVED)
        return
    if s.loss == 0:
        sheet.state("departure", lambda: leaving.without_loss(s.N, *times), PLAIN)
    elif s.model == "correlated":
        sheet.state(
            "departure",
            lambda: leaving.correlated(s.N, s.loss, *times),
            "E[X^+], X = T_L + 2 Delta + t_s - t_d + (H-G) T_A",
            f"{APPROXIMATE}: to second order in l^(T_L/T_A) (E8)",
        )
    else:
        sheet.state(
            "departure",
            lambda: leaving.uncorrelated(s.N, s.loss, *times),
            f"{PLAIN} + T_A E[max((G_1-G_i-f)^+ + H_i) - G_1]",
            "the limit of large T_L, too low for few T_A (E9)",
        )
    wrong = {"correlated": "the limit of large T_L (E8)", "uncorrelated": "wrong (E9)"}
    judged = wrong.get(s.model, AS_PRINTED) if s.loss else AS_PRINTED
    sheet.quote("departure", lambda: leaving.printed(s.N, s.loss, s.model, *times), PLAIN, judged)


def false_departure(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of time-outs although the leader lives: of one listener, and of any."""
    sheet.source = consistency.SOURCE
    times = (s.T_A, s.T_L)
    never = inf == s.T_L or s.N == 1 or (s.loss == 0 and s.T_L >= s.T_A)
    sheet.state(
        "false_departure_fraction",
        lambda: 0.0 if s.N == 1 else consistency.fraction(s.loss, *times),
        "l^k (T_A/(1-l) + k T_A - T_L) (1-l)/T_A, k = floor(T_L/T_A)",
        "exact, one listener (E12)",
    )
    alone = s.model != "uncorrelated"
    sheet.state(
        "inconsistent_fraction",
        lambda: (
            0.0
            if never
            else consistency.fraction(s.loss, *times)
            if alone
            else consistency.system_fraction(s.N, s.loss, *times)
        ),
        "that of one listener" if alone else "1 - (1-l^k)^(N-1) at T_L = k T_A",
        "exact, anybody (E12)",
    )
    lasting = "T_A/(1-l)^(N-1) - T_L" if s.T_L < s.T_A else "T_A (1-a)/(a-b)"
    if never:
        names = "false_departure_duration, inconsistent_duration"
        sheet.lack(names, "false departures do not happen")
    else:
        sheet.state(
            "false_departure_duration",
            lambda: consistency.duration(s.loss, *times),
            "T_A/(1-l) + k T_A - T_L",
            "exact, one listener, given that it happens (E10, E11)",
        )
        sheet.state(
            "inconsistent_duration",
            lambda: (
                consistency.duration(s.loss, *times)
                if alone
                else consistency.system_duration(s.N, s.loss, *times)
            ),
            "that of one listener" if alone else lasting,
            "exact, anybody, given that it happens (E11)",
        )
    if inf > s.T_L:
        _printed_false_departure(s, sheet)


def _printed_false_departure(s: AnnounceSetting, sheet: Sheet) -> None:
    period = {
        "none": "T_A",
        "correlated": "T_A/(1-l)",
        "uncorrelated": "T_A (E[R_N] + 1)",
    }[s.model]
    sheet.quote(
        "false_departure_duration",
        lambda: consistency.printed_duration(s.N, s.loss, s.model, s.T_A, s.T_L),
        f"{period} - T_L",
        "right for l = 0 and T_L < T_A only (E10, E11)",
    )
    sheet.quote(
        "inconsistent_fraction",
        lambda: consistency.printed_fraction(s.N, s.loss, s.model, s.T_A, s.T_L),
        f"1 - T_L / ({period})",
        "right for l = 0 and T_L <= T_A only (E12)",
    )
    if s.loss == 0:
        sheet.quote(
            "literal_disagreement",
            lambda: consistency.literal_disagreement(s.T_A, s.T_L),
            "1 - T_L / ((floor(T_L/T_A) + 1) T_A)",
            "what the printed programs do without the correction (E1)",
        )


def joiner(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the forms of a join: the joiner is the best of all, or not."""
    sheet.source = joining.SOURCE
    sheet.state(
        "joiner_smaller",
        lambda: joining.smaller(s.loss, s.T_A),
        "T_A/2 + T_A l/(1-l)",
        s.bears(EXACT),
    )
    if s.loss == 0:
        sheet.state(
            "query_joiner_smaller",
            lambda: joining.smaller_query(s.T_A, s.D),
            "2 Delta - 2 Delta^2/T_A for 2 Delta <= T_A, else T_A/2",
            s.bears(DERIVED),
        )
    else:
        sheet.lack("query_joiner_smaller", "it is known for l = 0 only")
    if name == "le-m":
        sheet.lack("joiner_larger", "by the absolute key a joiner never unseats the leader")
        return
    sheet.state(
        "joiner_larger",
        lambda: joining.larger(s.N, s.loss, s.model, s.law, s.T_A, s.D),
        "E[t_s] + Delta + T_A (E[R_N] - 1)",
        s.bears(f"{EXACT} (E15)"),
    )
    bad = s.model == "uncorrelated"
    lost = {"none": "", "correlated": " + T_A l/(1-l)", "uncorrelated": " + T_A E[R_N]"}[s.model]
    sheet.quote(
        "joiner_larger",
        lambda: joining.printed_larger(s.N, s.loss, s.model, s.law, s.T_A, s.D),
        f"E[t_s] + Delta{lost}",
        "wrong: R for R - 1 (E15)" if bad else AS_PRINTED,
    )
    sheet.quote(
        "joiner_smaller",
        lambda: joining.printed_smaller(s.N, s.loss, s.model, s.T_A),
        f"T_A/2{lost}",
        "wrong: only the joiner listens (E14)" if bad else "right with the ceiling (E13)",
    )
    sheet.quote(
        "joiner_smaller_no_ceiling",
        lambda: joining.printed_smaller(s.N, s.loss, s.model, s.T_A, ceiling=False),
        lost.removeprefix(" + ") or "0",
        "wrong: the ceiling is lost in print (E13)",
    )


def share_of_time(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add the disagreement by departures and joins that come every T_d and T_a."""
    sheet.source = consistency.SOURCE
    found = {form.name: float(form.value) for form in sheet.forms if not form.printed}
    printed = {form.name: float(form.value) for form in sheet.forms if form.printed}
    if s.T_d < inf and "departure" in found:
        sheet.state(
            "inconsistent_by_departures",
            lambda: consistency.by_departures(s.N, found["departure"], s.T_d),
            "departure / (N T_d)",
            "first order in 1/T_d; only the leader's departure counts (E25)",
        )
        if "departure" in printed:
            sheet.quote(
                "inconsistent_by_departures",
                lambda: consistency.printed_by_departures(printed["departure"], s.T_d),
                "departure / T_d",
                "wrong: as if every departure were the leader's (E25)",
            )
    if s.T_a < inf:
        smaller = found["joiner_smaller"]
        larger = found.get("joiner_larger", smaller)  # le-m: every joiner hears the leader
        sheet.state(
            "inconsistent_by_joiners",
            lambda: consistency.by_joiners(s.N, larger, smaller, s.T_a),
            "(joiner_larger + N joiner_smaller) / ((N+1) T_a)",
            "first order in 1/T_a",
        )


def bye(s: AnnounceSetting, sheet: Sheet) -> None:
    """Add how many Byes a departing leader sends."""
    sheet.source = extensions.SOURCE
    sheet.state(
        "bye_repeats",
        lambda: extensions.bye_repeats(s.N, s.loss, s.model, s.eps),
        "least B with (1-l^B)^(N-1) >= 1 - eps; l^B <= eps if correlated",
        f"{EXACT} (E29)",
    )
    sheet.state(
        "bye_mean",
        lambda: extensions.bye_mean(s.N, s.loss, s.model),
        "E[R]",
        f"{EXACT} (E29)",
    )
    if s.model != "uncorrelated":
        sheet.quote(
            "bye_repeats",
            lambda: extensions.printed_byes(s.loss),
            "l/(1-l)",
            "wrong: none without loss, one too few with it (E29)",
        )
