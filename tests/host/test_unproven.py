"""The catalogue claims no more than what reading back shows."""

from __future__ import annotations

import pytest
from linerate.host import catalogue, unproven


@pytest.mark.long
def test_what_only_a_login_agrees_is_not_proven_by_reading_it_back() -> None:
    """Those that the run itself makes are its own to know."""
    made = {"sessions_per_volume", "outstanding"}
    named = {one.name for one in catalogue().values() if one.where == "session" and not one.unproven}
    assert named == made
    assert set(unproven(["mtu", "ecn", "no such setting"])) == {"ecn"}
