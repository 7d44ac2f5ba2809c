"""Pictures and pace: every picture is read from the run, and the clock never runs backwards."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import pytest

from hustings.core.messages import Role
from hustings.demo.simulated.film import FAST, READING, Film, FilmPace
from hustings.demo.simulated.story import play
from hustings.demo.simulated.watch import lines_of
from hustings.protocols.bully import Bully
from hustings.protocols.ring import Ring


@pytest.fixture(scope="module")
def film() -> Film:
    return Film(play(Bully, 9, 1))


def instants(film: Film) -> list[float]:
    return [film.end * step / 400 for step in range(401)]


def test_a_picture_at_the_end_of_an_act_shows_its_result(film: Film) -> None:
    for place, act in enumerate(film.play.acts):
        frame = film.at(act.ended)
        assert frame.act == place
        assert frame.leading == act.after
        assert frame.counts == act.messages
        assert frame.heartbeats == act.heartbeats
        assert frame.caption == act.cues[-1].text
        assert {member.id for member in frame.members if member.leads} >= set(act.after)


def test_a_picture_in_mid_election_shows_messages_on_their_way(film: Film) -> None:
    seen: set[str] = set()
    for t in instants(film):
        for moving in film.at(t).moving:
            seen.add(moving.letter)
            assert 0.0 <= moving.way <= 1.0
            assert moving.sender != moving.to
    assert seen == {"E", "O", "C"}


def test_a_message_is_where_its_times_put_it(film: Film) -> None:
    flight = next(flight for flight in film.play.flights if flight.fate == "arrived")
    middle = (flight.left + flight.ended) / 2
    ways = [
        moving.way
        for moving in film.at(middle).moving
        if (moving.sender, moving.to) == (flight.sender, flight.to)
    ]
    assert ways == [pytest.approx(0.5)]


def test_a_message_that_met_the_cut_stops_half_way_and_is_marked(film: Film) -> None:
    flight = next(flight for flight in film.play.flights if flight.fate == "cut")
    shown = film.at(flight.left + 0.6)
    assert [
        (moving.way, moving.lost)
        for moving in shown.moving
        if (moving.sender, moving.to) == (flight.sender, flight.to)
    ] == [(0.5, True)]


def test_a_follower_doubts_a_leader_that_it_suspects_and_still_holds() -> None:
    story = play(Ring, 5, 1)
    at = story.acts[0].ended
    story.watcher.suspects[2] = [(0.0, ()), (at, (5,))]
    story.watcher.suspects[3] = [(0.0, ()), (at, (4,))]
    doubting = [member.id for member in Film(story).at(at).members if member.doubts]
    assert doubting == [2]


def test_sides_are_shown_while_they_last(film: Film) -> None:
    partition, heal = film.play.acts[2], film.play.acts[3]
    assert film.at(partition.began - 0.01).sides == ()
    assert film.at(partition.began).sides == film.at(heal.began - 0.01).sides != ()
    assert film.at(heal.began).sides == ()


def test_the_ticker_tells_every_message_once(film: Film) -> None:
    lines = lines_of(film.play.watcher, film.play.flights)
    assert [line.t for line in lines] == sorted(line.t for line in lines)
    told = sum(targets(line.text) for line in lines if line.role is not None)
    assert told == len(film.play.flights)
    texts = [line.text for line in lines if line.role is None]
    assert "9 crashes" in texts
    assert "9 is back" in texts
    assert "9 stands still" in texts
    assert "9 goes on" in texts
    assert texts.count("9 leads, term 1") == 1


def targets(text: str) -> int:
    """How many members the ids after the arrow name."""
    total = 0
    for part in text.partition("\N{RIGHTWARDS ARROW}")[2].split():
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def test_the_ticker_of_a_picture_ends_now(film: Film) -> None:
    for t in instants(film)[::20]:
        lines = film.at(t).lines
        assert all(line.t <= t for line in lines)
        assert len(lines) <= 40


def test_the_clock_goes_from_start_to_end_and_never_back(film: Film) -> None:
    pace = FilmPace(film, 20.0)
    shown = [pace.at(step / 50) for step in range(1001)]
    assert shown[0] == 0.0
    assert all(one <= other for one, other in pairwise(shown))
    assert film.play.acts[-1].cues[-1].t < shown[-1] <= film.end
    assert pace.at(25.0) == pytest.approx(shown[-1])


def test_the_clock_stands_at_every_sentence_for_long_enough(film: Film) -> None:
    seconds, step = 36.0, 0.01
    pace = FilmPace(film, seconds)
    shown = [pace.at(place * step) for place in range(int(seconds / step))]
    still = 0.0
    for act in film.play.acts:
        for cue in act.cues:
            held = sum(t == cue.t for t in shown) * step
            assert held > 0.3
            still += held
    assert still == pytest.approx(READING * seconds, rel=0.05)


def test_elections_pass_more_slowly_than_silence(film: Film) -> None:
    pace = FilmPace(film, 36.0)
    speeds: dict[bool, list[float]] = {True: [], False: []}
    for place in range(3500):
        start, end = pace.at(place / 100), pace.at((place + 1) / 100)
        if start != end:
            speeds[bool(film.at(start).moving and film.at(end).moving)].append(end - start)
    assert median(speeds[False]) == pytest.approx(FAST * median(speeds[True]))
    assert FAST > 1


def test_letters_and_roles_cover_all_kinds(film: Film) -> None:
    assert film.letters == {"ELECTION": "E", "OK": "O", "COORDINATOR": "C"}
    assert film.roles["OK"] is Role.ANSWER
