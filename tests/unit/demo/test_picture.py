"""The picture: everybody has a place of their own, and every state its mark."""

from __future__ import annotations

import re

import pytest

from hustings.core.messages import Role
from hustings.demo.simulated.film import Film, FilmFrame, Moving, SeenMember
from hustings.demo.simulated.picture import Canvas, Row, draw, look, places, plain
from hustings.demo.simulated.story import FEWEST, MOST, play
from hustings.protocols.bully import Bully
from hustings.sim.member import Status

CROSS, BARS = "\N{MULTIPLICATION SIGN}", "\N{DOUBLE VERTICAL LINE}"
SCREENS = [(49, 16), (33, 10), (89, 32)]  # what 80x24, the smallest and 120x40 leave for it


@pytest.fixture(scope="module")
def film() -> Film:
    return Film(play(Bully, 9, 1))


def text(rows: list[Row]) -> str:
    return "\n".join("".join(piece for piece, _ in row) for row in rows)


@pytest.mark.parametrize("width, height", SCREENS)
@pytest.mark.parametrize("members", range(FEWEST, MOST + 1))
def test_labels_stay_on_the_canvas_and_apart(members: int, width: int, height: int) -> None:
    where = places(members, width, height)
    assert list(where.points) == list(range(1, members + 1))
    if where.roomy:
        taken = [
            (round(x) + column, round(y) + row)
            for x, y in where.points.values()
            for column in range(-4, 5)
            for row in (0, 1)
        ]
    else:
        taken = [(round(x), round(y)) for x, y in where.points.values()]
    assert len(set(taken)) == len(taken)
    assert all(-1 <= column <= width and 0 <= row < height for column, row in taken)


@pytest.mark.parametrize("width, height", SCREENS[:1] + SCREENS[2:])
@pytest.mark.parametrize("members", [13, 27, MOST])
def test_every_label_of_a_large_group_can_be_read(members: int, width: int, height: int) -> None:
    film = Film(play(Bully, members, 1))
    shown = text(draw(film, film.at(film.play.acts[0].ended), width, height))
    crowned = shown.replace("\N{BLACK CHESS QUEEN}", " ")
    labels = re.findall(r"\[ (\d+)\]", crowned) or crowned.split()
    assert sorted(map(int, labels)) == list(range(1, members + 1))


def test_a_group_that_fits_has_two_rows_for_each() -> None:
    assert places(9, 49, 16).roomy
    assert places(10, 49, 16).roomy
    assert not places(20, 49, 16).roomy
    assert places(20, 89, 32).roomy


def test_rows_fill_the_canvas(film: Film) -> None:
    for t in (0.0, 5.0, film.play.acts[2].ended):
        lines = text(draw(film, film.at(t), 49, 16)).split("\n")
        assert [len(line) for line in lines] == [49] * 16


@pytest.mark.parametrize(
    "member, mark, word, style",
    [
        (SeenMember(1, Status.OUT, None, None, False, False), "·", "not yet", "gone"),
        (SeenMember(1, Status.UP, None, None, False, False), " ", "no leader", "electing"),
        (SeenMember(1, Status.UP, None, None, True, False), "?", "electing", "electing"),
        (SeenMember(1, Status.UP, 1, 3, False, False), "♛", "term 3", "leader"),
        (SeenMember(1, Status.UP, 2, 3, False, False), " ", "→ 2", "follower"),
        (SeenMember(1, Status.UP, 2, 3, False, True), " ", "→ 2?", "follower"),
        (SeenMember(1, Status.PAUSED, 1, 3, False, False), BARS, "paused", "paused"),
        (SeenMember(1, Status.CRASHED, None, None, False, False), CROSS, "crashed", "crashed"),
    ],
)
def test_the_look_of_a_member(member: SeenMember, mark: str, word: str, style: str) -> None:
    assert look(member) == (mark, word, style)


def test_the_leader_is_crowned_and_the_cut_is_drawn(film: Film) -> None:
    partition = film.play.acts[2]
    rows = draw(film, film.at(partition.ended), 49, 16)
    styles = [style for row in rows for _, style in row]
    assert styles.count("cut") > 3
    for leader in partition.after:
        assert f"[\N{BLACK CHESS QUEEN}{leader}]" in text(rows)
        assert f"leader {film.colours[leader]}" in styles
    healed = draw(film, film.at(film.play.acts[3].ended), 49, 16)
    assert "cut" not in [style for row in healed for _, style in row]


def test_in_a_large_group_who_follows_the_other_leader_is_marked() -> None:
    film = Film(play(Bully, 20, 1))
    partition = film.play.acts[2]
    frame = film.at(partition.ended)
    shown = text(draw(film, frame, 49, 16)).split()
    second = [member.id for member in frame.members if member.leader == partition.after[1]]
    marked = sorted(int(word[1:]) for word in shown if word.startswith(":"))
    assert marked == sorted(member for member in second if member != partition.after[1])


def still(film: Film, moving: Moving) -> FilmFrame:
    """The end of act 1 with one message in it."""
    frame = film.at(film.play.acts[0].ended)
    return FilmFrame(
        t=frame.t,
        act=frame.act,
        caption=frame.caption,
        members=frame.members,
        moving=(moving,),
        sides=(),
        leading=frame.leading,
        counts={},
        heartbeats=0,
        beating=(),
        lines=(),
    )


def test_a_message_is_drawn_between_its_ends(film: Film) -> None:
    points = places(9, 49, 16).points
    moving = Moving("E", Role.ELECTION, 3, 8, 0.5, lost=False)
    lines = text(draw(film, still(film, moving), 49, 16)).split("\n")
    row = round((points[3][1] + points[8][1]) / 2)
    column = round((points[3][0] + points[8][0]) / 2)
    assert lines[row][column] == "E"


def test_a_lost_message_is_a_cross(film: Film) -> None:
    rows = draw(film, still(film, Moving("E", Role.ELECTION, 3, 8, 0.5, lost=True)), 49, 16)
    assert (CROSS, "lost") in [piece for row in rows for piece in row]
    assert "E" not in text(rows)


def test_what_lies_outside_is_not_drawn() -> None:
    canvas = Canvas(3, 1)
    canvas.put(-1, 0, "a", "")
    canvas.put(0, 1, "b", "")
    canvas.put(1, 0, "c", "bright")
    canvas.write(5, 0, "d", "")
    assert canvas.rows() == [[(" ", ""), ("c", "bright"), ("d", "")]]


def test_plain_text_is_ascii_and_of_the_same_length(film: Film) -> None:
    for t in (5.0, film.play.acts[2].ended):
        shown = text(draw(film, film.at(t), 49, 16))
        assert plain(shown).isascii()
        assert len(plain(shown)) == len(shown)
