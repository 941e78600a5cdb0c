"""Looks at the results of a study, and the share of the error rate that each of them may use.

A study looks at its results several times: the repeat rule ends it early when everything is decided, and a person may
extend it. Each look is another chance for a false result. So the error rate (5 %) is divided among the looks, as in
group-sequential trials (Lan and DeMets 1983, Biometrika 70: alpha spending). The shares add up to one at most. Then the
chance of a false result at any look is at most the error rate, for every test and every stopping rule (Bonferroni).

- The looks that are planned share `PLANNED_SHARE`. The share that was used after `n` of `N` blocks grows with
  (n / N) ** 3: early looks find only large effects, and the last look loses little.
- Each extension gets half of what is left. If a study is extended before its planned end, the shares of the looks that
  it did not reach go to the new end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PLANNED_SHARE = 0.8
"""The rest is kept for extensions."""
LOOK_RATIO = 1.5
"""Least ratio of the numbers of blocks at two planned looks; looks that are closer cost more than they save."""
_SPENDING_POWER = 3


@dataclass(frozen=True, slots=True)
class Looks:
    """Numbers of blocks after which results are looked at, in rising order, with the share of each.

    Without any look, the results are looked at once and have the whole error rate.
    """

    blocks: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def share(self, blocks: int) -> float:
        """The share of the look at which a comparison of so many blocks was decided: the first that has them all."""
        if not self.blocks:
            return 1.0
        reached = (share for look, share in zip(self.blocks, self.shares, strict=True) if look >= blocks)
        return next(reached, self.shares[-1])

    def level(self, blocks: int, alpha: float) -> float:
        """The error rate of an interval that holds at every look. That of the first look need not be wider."""
        is_first = not self.blocks or blocks <= self.blocks[0]
        return alpha if is_first else alpha * self.share(blocks)

    def before(self, block: int) -> int | None:
        """The last look before a block is run; None when there was none yet."""
        return max((look for look in self.blocks if look < block), default=None)


def plan_looks(blocks_min: int, blocks_max: int, extensions: Sequence[tuple[int, int]] = ()) -> Looks:
    """The looks of a study.

    Args:
        blocks_min: blocks before the first look.
        blocks_max: planned end.
        extensions: (blocks measured when it was extended, new end), in their order.
    """
    shares = dict(_planned(blocks_min, blocks_max))
    left = 1 - PLANNED_SHARE
    for measured, end in extensions:
        unused = sum(share for look, share in shares.items() if look > measured)
        shares = {look: share for look, share in shares.items() if look <= measured}
        if unused == 0:
            unused, left = left / 2, left / 2
        shares[end] = shares.get(end, 0.0) + unused
    return Looks(tuple(shares), tuple(shares.values()))


def _planned(blocks_min: int, blocks_max: int) -> list[tuple[int, float]]:
    looks = [blocks_max]
    while (earlier := round(looks[0] / LOOK_RATIO)) > blocks_min and earlier < looks[0]:
        looks.insert(0, earlier)
    if blocks_min < looks[0]:
        looks.insert(0, blocks_min)
    used = [PLANNED_SHARE * (look / blocks_max) ** _SPENDING_POWER for look in looks]
    return [(look, now - before) for look, now, before in zip(looks, used, [0.0, *used], strict=False)]
