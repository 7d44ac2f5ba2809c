"""The layered network and the election of "Scalable Leader Election", section by section."""

from __future__ import annotations

from hustings.core.streams import Stream
from hustings.protocols.committee.network import lay_out, over_representation, share_above
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of
from tests.unit.protocols.committee_groups import play


def test_section_1_2_item_2_leaves_are_public_and_even() -> None:
    """Everybody knows who sits in which leaf, and everybody sits in as many."""
    played = play(40, 1, c0=5, d0=3, layers="4:4:1", path=2)
    rosters = {election.network.roster.leaves for election in played.elections.values()}
    assert len(rosters) == 1
    assert {each.seats[0] for each in played.good.values()} == {3}


def test_section_1_2_item_6_parents_and_children_know_each_other() -> None:
    """Along an honest way a committee and those of its children know each other's members."""
    played = play(40, 1, c0=4, layers="2:3:1,2:2:1", path=2)
    network, elections = played.network, played.elections
    truth: dict[tuple[int, int], tuple[int, ...]] = {}
    for election in elections.values():
        for layer in (1, 2):
            for index in range(len(network.layers[layer])):
                if election.book.knows(layer, index):
                    known = election.book.committee(layer, index)
                    assert truth.setdefault((layer, index), known) == known
    for node in network.layers[2]:
        parents = truth[2, node.index]
        for child in node.children:
            children = truth[1, child]
            for member in parents:
                assert elections[member].book.committee(1, child) == children
            for member in children:
                assert elections[member].book.committee(2, node.index) == parents


def test_section_3_the_papers_graph_is_a_sampler() -> None:
    """Lemma 3.1, measured: however members are picked, few leaves have far too many of them."""
    given = {"profile": "printed", "c0": 40, "d0": 8, "layers": "5:5:1"}
    built = lay_out(tuple(range(1000)), knobs_of(CommitteeConfig.parse(given), 1000))
    assert len(built.roster.leaves) == 200
    rng = Stream(3)
    picks = [rng.sample(range(1000), 200) for _ in range(5)]
    picks.append(list(range(200)))  # neighbours by label, which share stretches
    picks.append([member for leaf in built.roster.leaves[:6] for member in leaf])  # whole leaves
    for chosen in picks:
        assert share_above(over_representation(built, chosen), 0.25) <= 0.05


def test_section_4_the_root_is_monitored_by_all_leaves() -> None:
    """Word of the leader goes to every leaf: nobody has to ask who leads."""
    played = play(36, 1, c0=4, layers="3:4:1", path=2)
    assert list(played.network.root.leaves) == list(range(9))
    assert {each.believed for each in played.good.values()} == {played.leader}


def test_section_5_exactly_one_good_member_takes_itself_for_the_leader() -> None:
    """Theorem 1.1 with a good leader: one considers itself the leader, and the others know it."""
    good = 0
    for seed in range(8):
        played = play(48, seed, c0=12, layers="2:2:1", b=0.08, endgame="full", path=4)
        leader = played.leader
        if leader is not None and not played.scene.is_bad(leader) and played.informed > 0.9:
            good += 1
            assert played.leading == [leader]
    assert good >= 4  # a constant share of the runs


def test_section_6_a_node_with_a_third_of_liars_is_lost_with_what_is_below() -> None:
    """Whoever owns one electorate of three owns a third of the root, not the others' leaves."""
    played = play(48, 1, c0=4, layers="4:4:1", b=0.125, adversary="cluster+lie", path=2)
    owned = [
        3 * sum(played.scene.is_bad(each) for each in voters) >= len(voters)
        for voters in played.network.roster.electorates
    ]
    assert sum(owned) == 1
    outside = [
        member
        for node, lost in zip(played.network.layers[1], owned, strict=True)
        if not lost
        for leaf in node.leaves
        for member in played.network.roster.leaves[leaf]
    ]
    believed = {played.good[member].believed for member in outside if member in played.good}
    assert len(believed) == 1
