"""A test of one's own: a leader is killed, the next one is paused, and one leader stays."""

from hustings.testing import Group

with Group(seed=7, protocol="bully", delay=(0.001, 0.005)) as group:
    for name in ("a", "b", "c", "d"):
        group.join(name)
    first = group.settle(steady=1.0)
    group.kill(first)
    second = group.settle(steady=1.0)

    paused = group.now
    group.pause(second)
    third = group.settle(steady=1.0)
    assert sorted(group.leaders) == sorted([second, third])
    group.resume(second)
    last = group.settle(steady=1.0)
    assert group.leaders == [last]

    print(f"{first} is killed, {second} is paused, {third} leads")
    for time, member, state in group.log:
        if time > paused:
            known = state.leader.name if state.leader else f"nobody ({state.reason})"
            print(f"{time - paused:.3f} s  {member} follows {known}, term {state.term}")
