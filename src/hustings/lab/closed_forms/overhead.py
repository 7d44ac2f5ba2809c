"""Formulas (1) to (7), the special cases and Table 1 of the overhead-aware paper, section 5.

The paper's overhead is ELECTION plus OK, without COORDINATOR, LEADER or STOP. For each formula
`printed_i` adds up the terms as printed, `printed_i_closed` is the value of that sum, and
`corrected_i` is the counted value. n counts the crashed leader, and "n/4 crashed" includes it (the
inclusive convention). With the leader on top, case IV could not happen, since its detector n/2
would be dead itself.
"""

from __future__ import annotations

from hustings.lab.closed_forms.form import require

# --- one election ---------------------------------------------------------------------------------


def printed_1(n: int) -> int:
    """Bully, member 1 detects: 2(n-1) + 2(n-2) + ... + 2, as printed.

    Parameters: n, at least 3.

    Source: formula (1). Verdict: wrong by n-1, it counts an OK from the dead leader to each.

    >>> [printed_1(n) for n in (8, 16, 64)]
    [56, 240, 4032]
    """
    _whole(n, 1)
    return sum(2 * (n - j) for j in range(1, n))


def printed_1_closed(n: int) -> int:
    """The sum of formula (1): n(n-1).

    >>> printed_1_closed(64)
    4032
    """
    _whole(n, 1)
    return n * (n - 1)


def corrected_1(n: int) -> int:
    """Bully, member 1 detects, only the leader is dead: (n-1)^2.

    Parameters: n, at least 3.

    Source: formula (1) corrected. Verdict: counted.

    >>> [corrected_1(n) for n in (8, 16, 64)]
    [49, 225, 3969]
    """
    _whole(n, 1)
    return (n - 1) ** 2


def printed_2(n: int) -> int:
    """Bully, member n/2 detects: 2(n/2) + 2(n/2 - 1) + ... + 2, as printed.

    Parameters: n, even and at least 4.

    Source: formula (2). Verdict: wrong by n/2, it counts an OK from the dead leader to each.

    >>> [printed_2(n) for n in (8, 16, 64)]
    [20, 72, 1056]
    """
    half = _whole(n, 2)
    return sum(2 * j for j in range(1, half + 1))


def printed_2_closed(n: int) -> int:
    """The sum of formula (2): (n/2)(n/2 + 1).

    >>> printed_2_closed(64)
    1056
    """
    half = _whole(n, 2)
    return half * (half + 1)


def corrected_2(n: int) -> int:
    """Bully, member n/2 detects, only the leader is dead: n^2/4.

    Parameters: n, even and at least 4.

    Source: formula (2) corrected. Verdict: counted.

    >>> [corrected_2(n) for n in (8, 16, 64)]
    [16, 64, 1024]
    """
    return _whole(n, 2) ** 2


# --- n/4 elections --------------------------------------------------------------------------------


def printed_3(n: int) -> int:
    """MAP bully, n/4 crashed: n/4 + 2, as printed.

    Parameters: n, divisible by 4.

    Source: formula (3). Verdict: right only if the leader comes on top of the n/4, which is not
    the convention of (4), (5) and (7).

    >>> [printed_3(n) for n in (8, 16, 64)]
    [4, 6, 18]
    """
    return _whole(n, 4) + 2


def corrected_3(n: int, leader_included: bool = True) -> int:
    """MAP bully, n/4 crashed: n/4 + 1, or n/4 + 2 if the leader comes on top.

    Parameters: n, divisible by 4; leader_included, whether the n/4 include the leader.

    Source: formula (3) corrected. Verdict: counted in both conventions.

    >>> [(corrected_3(n), corrected_3(n, leader_included=False)) for n in (8, 16, 64)]
    [(3, 4), (5, 6), (17, 18)]
    """
    return _whole(n, 4) + (1 if leader_included else 2)


def printed_4(n: int) -> int:
    """Bully, n/4 crashed, member 1 detects, as printed.

    ((n-1) + 3n/4) + ((n-2) + (3n/4 - 1)) + ... + n/4. The last term, of member 3n/4, stands alone.

    Parameters: n, divisible by 4.

    Source: formula (4). Verdict: every OK term but the last is one too large, 3n/4 - 1 in all; it
    happens to equal the total with COORDINATOR.

    >>> [printed_4(n) for n in (8, 16, 64)]
    [47, 191, 3071]
    """
    live = 3 * _whole(n, 4)
    return sum((n - j) + (live - j + 1) for j in range(1, live)) + n // 4


def printed_4_closed(n: int) -> int:
    """The sum of formula (4): 3n^2/4 - 1.

    >>> printed_4_closed(64)
    3071
    """
    return 3 * _whole(n, 4) * n - 1


def corrected_4(n: int) -> int:
    """Bully, n/4 crashed with the leader, member 1 detects: (3n/4)(n-1).

    Parameters: n, divisible by 4.

    Source: formula (4) corrected. Verdict: counted.

    >>> [corrected_4(n) for n in (8, 16, 64)]
    [42, 180, 3024]
    """
    return 3 * _whole(n, 4) * (n - 1)


def printed_5(n: int) -> int:
    """Bully, n/4 crashed, member n/2 detects, as printed.

    (n/2 + n/4) + ((n/2 - 1) + (n/4 - 1)) + ... + n/4.

    Parameters: n, divisible by 4.

    Source: formula (5). Verdict: right.

    >>> [printed_5(n) for n in (8, 16, 64)]
    [12, 40, 544]
    """
    quarter = _whole(n, 4)
    return sum((n // 2 - j) + (quarter - j) for j in range(quarter + 1))


def printed_5_closed(n: int) -> int:
    """The sum of formula (5): (n/4 + 1)(n/2).

    >>> printed_5_closed(64)
    544
    """
    return (_whole(n, 4) + 1) * (n // 2)


def corrected_5(n: int) -> int:
    """Bully, n/4 crashed with the leader, member n/2 detects: (n/4 + 1)(n/2).

    Parameters: n, divisible by 4.

    Source: formula (5). Verdict: counted, and as printed.

    >>> [corrected_5(n) for n in (8, 16, 64)]
    [12, 40, 544]
    """
    quarter = _whole(n, 4)
    return (quarter + 1) * 2 * quarter


# --- n/2 elections --------------------------------------------------------------------------------


def printed_6(n: int) -> int:
    """MAP bully, n/2 crashed, member 1 detects: n/2 + 2, as printed.

    Parameters: n, even and at least 4.

    Source: formula (6). Verdict: right only if the leader comes on top of the n/2, as with (3).

    >>> [printed_6(n) for n in (8, 16, 64)]
    [6, 10, 34]
    """
    return _whole(n, 2) + 2


def corrected_6(n: int, leader_included: bool = True) -> int:
    """MAP bully, n/2 crashed, member 1 detects: n/2 + 1, or n/2 + 2 if the leader comes on top.

    Parameters: n, even and at least 4; leader_included, whether the n/2 include the leader.

    Source: formula (6) corrected. Verdict: counted in both conventions; with the leader on top n
    must be at least 6, or member 1 is left alone.

    >>> [(corrected_6(n), corrected_6(n, leader_included=False)) for n in (8, 16, 64)]
    [(5, 6), (9, 10), (33, 34)]
    """
    require(leader_included or n >= 6, f"n must be at least 6 with the leader on top, not {n}")
    return _whole(n, 2) + (1 if leader_included else 2)


def printed_7(n: int) -> int:
    """Bully, n/2 crashed, member 1 detects, as printed.

    ((n-1) + n/2) + ((n-2) + (n/2 - 1)) + ... + n/2. The last term, of member n/2, stands alone.

    Parameters: n, even and at least 4.

    Source: formula (7). Verdict: n/2 - 1 too many, as with (4).

    >>> [printed_7(n) for n in (8, 16, 64)]
    [31, 127, 2047]
    """
    live = _whole(n, 2)
    return sum((n - j) + (live - j + 1) for j in range(1, live)) + n // 2


def printed_7_closed(n: int) -> int:
    """The sum of formula (7): n^2/2 - 1.

    >>> printed_7_closed(64)
    2047
    """
    return _whole(n, 2) * n - 1


def corrected_7(n: int) -> int:
    """Bully, n/2 crashed with the leader, member 1 detects: (n/2)(n-1).

    Parameters: n, even and at least 4.

    Source: formula (7) corrected. Verdict: counted.

    >>> [corrected_7(n) for n in (8, 16, 64)]
    [28, 120, 2016]
    """
    return _whole(n, 2) * (n - 1)


# --- case IV --------------------------------------------------------------------------------------


def printed_case_4(n: int) -> int:
    """Both elections, n/2 crashed, member n/2 detects: n/2 ELECTION, as printed.

    Parameters: n, even and at least 4.

    Source: case (IV). Verdict: right for the bully election, one too many for MAP.

    >>> printed_case_4(64)
    32
    """
    return _whole(n, 2)


def corrected_case_4_map(n: int) -> int:
    """MAP bully, n/2 crashed with the leader, member n/2 detects: n/2 - 1 ELECTION.

    The dead leader is skipped. Parameters: n, even and at least 4.

    Source: case (IV) corrected. Verdict: counted.

    >>> corrected_case_4_map(64)
    31
    """
    return _whole(n, 2) - 1


def corrected_case_4_bully(n: int) -> int:
    """Bully, n/2 crashed with the leader, member n/2 detects: n/2 ELECTION.

    Parameters: n, even and at least 4.

    Source: case (IV). Verdict: counted, and as printed.

    >>> corrected_case_4_bully(64)
    32
    """
    return _whole(n, 2)


def _whole(n: int, divisor: int) -> int:
    """Return n / divisor; refuse a remainder and groups too small for the case."""
    least = max(3, 2 * divisor if divisor == 2 else divisor)
    require(n >= least, f"n must be at least {least} for this formula, not {n}")
    require(n % divisor == 0, f"n must be divisible by {divisor} for this formula, not {n}")
    return n // divisor
