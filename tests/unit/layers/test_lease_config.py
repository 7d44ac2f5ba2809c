"""What members may ask a guard for, and what they must know of clocks."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.layers.lease import LeaseConfig


@pytest.mark.parametrize(
    "settings, complaint",
    [
        ({"ttl": 5.0}, "three round trips"),
        ({"ttl": "inf"}, "must be finite"),
        ({"drift": 0.6}, "too short to renew in"),
        ({"drift": -0.1}, "drift must be"),
        ({"drift": 1.0}, "drift must be"),
        ({"retry": 0.0}, "retry must be"),
        ({"ttl": 6.0, "drift": 0.2}, "too short to renew in"),
    ],
)
def test_a_lease_that_cannot_work_gets_a_sentence(
    settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        LeaseConfig.parse(settings)


def test_times_default_to_multiples_of_the_delay_bound() -> None:
    lease = LeaseConfig.parse({"delta": 0.5})
    assert (lease.asked, lease.patience, lease.renewal) == (15.0, 1.5, 5.0)
    assert lease.window(15.0) == pytest.approx(15.0 * 0.999 / 1.001)
