"""A leader that is cut off steps down before the voters grant another lease; a register fences.

Real members on a virtual clock: the network between them is in memory, and the seed decides.
"""

from hustings.testing import Group

NAMES = ("ada", "ben", "cleo", "dan", "eve")


class Register:
    """The resource: it refuses tokens below the highest that it has seen."""

    def __init__(self) -> None:
        self.highest = 0

    def write(self, token: int, what: str) -> None:
        if token < self.highest:
            print(f"  the register refuses {what!r} with token {token}")
        else:
            self.highest = token
            print(f"  the register accepts {what!r} with token {token}")


def main() -> None:
    register = Register()
    guard = "quorum://ada,ben,cleo?durable=no"
    with Group(seed=4, protocol="bully", guard=guard, ttl=2.0) as group:
        for name in NAMES:
            group.join(name)
        first = group.settle(steady=1.0)
        old = group.member(first).state.token or 0
        print(f"{first} leads with token {old}")
        register.write(old, f"{first} was here")

        others = [name for name in NAMES if name != first]
        group.partition([first], others)
        cut = group.now
        while group.member(first).is_leader:
            group.advance(0.01)
        print(f"cut off, {first} no longer leads after {group.now - cut:.2f} s")
        second = group.settle(others)
        new = group.member(second).state.token or 0
        print(f"{second} leads with token {new} after {group.now - cut:.2f} s")
        register.write(new, f"{second} was here")
        register.write(old, f"{first} was slow")  # a write that was under way

        group.heal()
        print(f"healed: {group.settle(steady=1.0)} leads")


if __name__ == "__main__":
    main()
