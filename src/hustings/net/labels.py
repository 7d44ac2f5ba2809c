"""Which group an observer listens to, where several of one name are configured otherwise.

An observer is configured like nobody, so it may be of any of them. It takes up the label of the
group that lets it in: of a welcome that comes from where it asked for one. Without a key anybody
can send frames with any label; so a label that nobody has borne for a while is given up again.
"""

from __future__ import annotations

from hustings.core.messages import Message
from hustings.layers.gossip.messages import WelcomeMsg
from hustings.net.wire import Wire

_UNHEARD = 5.0  # seconds after which a label that nobody bears is given up


class Labels:
    """One host's label, if it observes; of a member it never changes."""

    def __init__(self, wire: Wire, now: float) -> None:
        self._wire = wire
        self._observes = wire.dialect.undecided
        self._heard = now  # when a frame with the label that was taken up came last

    def heard(self, message: Message, invited: bool, now: float) -> None:
        """A frame was understood; `invited`: it comes from where this one wants to be let in."""
        dialect, label = self._wire.dialect, self._wire.label
        if not self._observes:
            return
        if dialect.undecided and invited and isinstance(message, WelcomeMsg):
            dialect.take_up(label)
        if label == dialect.protocol:
            self._heard = now

    def refused(self, now: float) -> bool:
        """A frame with another label came; whether the next one of its kind is understood."""
        if not self._observes or now - self._heard < _UNHEARD:
            return False
        self._wire.dialect.give_up()
        return True
