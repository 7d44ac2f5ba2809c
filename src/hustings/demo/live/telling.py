"""The acts in words and numbers: for plain lines, for the table at the end, for scripts."""

from __future__ import annotations

from collections.abc import Sequence

from hustings.demo.live.measuring import Sides
from hustings.demo.live.scene import LiveAct, LivePlan, LiveScene

COLUMNS = ("act", "what was done", "led before", "leads after", "term", "noticed", "all agree")
_LISTED = 8  # names that fit into a sentence


# Before an act


def title(plan: LivePlan) -> str:
    """The title of the show."""
    rule = ", --preempt: a better member displaces the leader" if plan.preempt else ""
    return f"{plan.protocol}, {plan.members} processes on this machine{rule}"


def start(members: int, protocol: str) -> str:
    return f"{members} processes start and look for each other; {protocol} elects a leader."


def kill(leader: str, pid: int) -> str:
    return f"{leader} leads. Its process, {pid}, is killed with SIGKILL."


def restart(member: str) -> str:
    return f"{member} starts again, as a new process that remembers nothing."


def pause(leader: str, pid: int) -> str:
    return f"{leader} leads. Its process, {pid}, is stopped with SIGSTOP, and does not know."


def resume(member: str) -> str:
    return f"{member} goes on with SIGCONT, as if no time had passed."


def cut(sides: Sides) -> str:
    one, other = (listed(side) for side in sides)
    return f"The network is cut: {one} cannot reach {other}."


def heal(leading: Sequence[str]) -> str:
    text = "The cut is healed."
    if len(leading) > 1:
        text += f" {listed(leading)} lead at once, and have yet to hear of each other."
    return text


def transfer(leader: str, successor: str) -> str:
    return f"{leader} transfers leadership to {successor}."


def unasked(before: Sequence[str], now: Sequence[str]) -> str:
    """The sentence on a change of leader that the demo did not cause."""
    return (
        f"Meanwhile, though nothing was done, the leader changed from {listed(before) or 'nobody'} "
        f"to {listed(now) or 'nobody'}."
    )


# After the act


def verdict(act: LiveAct) -> str:
    """The result of an act in a sentence."""
    if act.agreed is None:
        if not act.after:
            led = "nobody leads"
        else:
            led = f"{listed(act.after)} lead{'s' if len(act.after) == 1 else ''}"
        return f"{act.failure[:1].upper()}{act.failure[1:]}: {led}."
    took = duration(act.agreed)
    if len(act.after) > 1:
        return f"Each side has its leader after {took}: {listed(act.after)}."
    led = f"{act.after[0]} in term {act.term}"
    return f"All {act.members} agree after {took}: {led}."


def row(act: LiveAct) -> list[str]:
    """An act's line in the table."""
    return [
        act.name,
        act.what,
        listed(act.before) or "nobody",
        listed(act.after) or "nobody",
        str(act.term) if act.term else "-",
        "-" if act.noticed is None else duration(act.noticed),
        "not in time" if act.agreed is None else duration(act.agreed),
    ]


def note(scene: LiveScene) -> str:
    """A note on what the table leaves open."""
    text = "Noticed: the first member took to another leader, or to none. All agree: and went on so"
    text += "; in a cut, each side."
    if scene.quiet_rate is not None:
        text += f" At rest a member sends {scene.quiet_rate:.1f} messages per second."
    if scene.unasked:
        times = "once" if scene.unasked == 1 else f"{scene.unasked} times"
        text += f" The leader changed {times} though nothing was done."
    return text


def to_json(scene: LiveScene) -> dict[str, object]:
    """The whole demo as data for scripts; times in seconds."""
    plan = scene.plan
    return {
        "protocol": plan.protocol,
        "members": plan.members,
        "preempt": plan.preempt,
        "seed": plan.seed,
        "group": scene.group,
        "seconds": scene.elapsed,
        "fine": scene.fine,
        "failure": scene.failure,
        "unasked_changes": scene.unasked,
        "messages_per_second_at_rest": scene.quiet_rate,
        "acts": [
            {
                "name": act.name,
                "what": act.what,
                "began": act.began,
                "noticed": act.noticed,
                "agreed": act.agreed,
                "leaders_before": list(act.before),
                "leaders_after": list(act.after),
                "term": act.term,
                "members": act.members,
                "failure": act.failure,
            }
            for act in scene.acts
        ],
    }


# Helpers


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; a long list is cut.

    >>> listed(["m1"]), listed(["m1", "m4", "m5"])
    ('m1', 'm1, m4 and m5')
    >>> listed([f"m{number}" for number in range(1, 12)])
    'm1, m2, m3, m4, m5, m6, m7 and 4 more'
    """
    if len(names) <= 1:
        return "".join(names)
    if len(names) > _LISTED:
        return f"{', '.join(names[: _LISTED - 1])} and {len(names) - _LISTED + 1} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def duration(seconds: float) -> str:
    """A time, rounded so that a reader can compare it.

    >>> duration(0.00391), duration(0.0416), duration(0.412), duration(2.3456), duration(15.0)
    ('3.9 ms', '42 ms', '412 ms', '2.35 s', '15.0 s')
    """
    if seconds < 0.9995:
        ms = 1000.0 * seconds
        return f"{ms:.1f} ms" if ms < 9.95 else f"{ms:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"


def address(endpoint: tuple[str, int]) -> str:
    """An endpoint in the form of `seeds` of `hustings.join`; empty if the endpoint is not known.

    >>> address(("127.0.0.1", 7400)), address(("", 0))
    ('127.0.0.1:7400', '')
    """
    host, port = endpoint
    return f"{host}:{port}" if port else ""
