"""The story in words and numbers: for a pipe, for a script, and for the table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hustings.core.choice import MemberId
from hustings.demo.simulated.story import Play, SimulatedAct
from hustings.demo.simulated.words import both, when

COLUMNS = ("act", "what happened", "before", "after", "time", "messages", "verdict")


def title(play: Play) -> str:
    """The title of the play."""
    return f"{play.kind.about.name}, {play.members} members, seed {play.seed}"


def transcript(play: Play) -> Iterator[str]:
    """The story as plain lines."""
    detector = play.detector
    yield f"hustings demo: {title(play)}"
    yield (
        f"Delays lie between 0.5 and 1; heartbeats go to all every T = {detector.period:g}, "
        f"and silence of T + D = {detector.timeout:g} is suspicious."
    )
    for place, act in enumerate(play.acts, 1):
        yield ""
        yield f"Act {place}: {act.name}"
        for cue in act.cues:
            yield f"{cue.t:7.2f}  {cue.text}"
        lost = f", {act.lost} lost" if act.lost else ""
        yield f"         {messages(act) or 'no messages'}{lost}; {act.heartbeats} heartbeats."
    yield ""


def row(act: SimulatedAct, letters: Mapping[str, str]) -> list[str]:
    """An act's line in the table; each kind of message has a letter."""
    counts = (f"{count}{letters[kind]}" for kind, count in act.messages.items())
    return [
        act.name,
        act.what,
        who(act.before),
        who(act.after),
        "-" if act.time is None else when(act.time),
        " ".join(counts) or "-",
        act.verdict,
    ]


def who(leaders: tuple[MemberId, ...]) -> str:
    """Leaders in a few words.

    >>> who(()), who((9,)), who((8, 7)), who((5, 4, 3))
    ('nobody', '9', '8 and 7', '3 at once')
    """
    if len(leaders) > 2:
        return f"{len(leaders)} at once"
    return both(leaders) if leaders else "nobody"


def messages(act: SimulatedAct) -> str:
    """Counts by kind."""
    return ", ".join(f"{count} {kind}" for kind, count in act.messages.items())


def note(play: Play, letters: Mapping[str, str]) -> str:
    """A note on what the table leaves open."""
    kinds = ", ".join(f"{letter} {kind}" for kind, letter in letters.items())
    text = f"Before, after: who led. Time: simulated, until all agreed. Messages: {kinds}."
    if two := sum(act.two_leaders for act in play.acts):
        about = play.kind.about
        text += (
            f" More than one member led for {when(two)} in all: {about.name} is "
            f"{about.guarantee.value.upper()} ({about.promises})."
        )
    return text


def to_json(play: Play) -> dict[str, object]:
    """The play as data for scripts."""
    return {
        "protocol": play.kind.about.name,
        "guarantee": play.kind.about.guarantee.value,
        "members": play.members,
        "seed": play.seed,
        "detector": {
            "pattern": play.detector.pattern,
            "T": play.detector.period,
            "D": play.detector.margin,
        },
        "time": play.acts[-1].ended,
        "acts": [
            {
                "name": act.name,
                "what": act.what,
                "began": act.began,
                "ended": act.ended,
                "time": act.time,
                "leaders_before": list(act.before),
                "leaders_after": list(act.after),
                "term": act.term,
                "best": act.best,
                "agreed": act.settled is not None,
                "messages": act.messages,
                "lost": act.lost,
                "heartbeats": act.heartbeats,
                "two_leaders": act.two_leaders,
                "verdict": act.verdict,
                "story": [cue.text for cue in act.cues],
            }
            for act in play.acts
        ],
    }
