"""Cases from factors: every combination of their values, or a regular fraction of the two-valued ones.

A fraction 1/2^p of k factors takes all combinations of the first k - p and derives each of the other p as the product
of some of those (its generator; Box, Hunter and Hunter, Statistics for Experimenters, chapter 6). A single generator is
the product of all. Of several, products of an odd number of factors come first: then every product of generators has
an even number, and as long as there are such, main effects mix with interactions of three or more factors only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from linerate.errors import UserError
from linerate.study.model import SettingValue
from linerate.workload.plan import RUNS_MAX


def combinations(
    factors: Mapping[str, Sequence[SettingValue]], fraction: int
) -> Iterator[dict[str, SettingValue]]:
    """The settings of every case, the baseline (all first values) first.

    Raises UserError for too many of them, and for a fraction that these factors do not have.
    """
    count = math.prod(len(values) for values in factors.values()) // fraction
    if count > RUNS_MAX:
        shown = " x ".join(f"{len(values)} {name}" for name, values in factors.items())
        over = f", over {fraction}" if fraction > 1 else ""
        raise UserError(
            f"factors: {count:,} combinations ({shown}{over}); at most {RUNS_MAX:,}",
            "leave out factors or values, or take a larger fraction",
        )
    if fraction == 1:
        for values in itertools.product(*factors.values()):
            yield dict(zip(factors, values, strict=True))
        return
    derived = _derived(factors, fraction)
    basic = len(factors) - len(derived)
    for signs in itertools.product((0, 1), repeat=basic):
        # A generator of n factors is the sum of their signs mod 2: all zeros, the baseline, stays in the fraction.
        levels = (*signs, *(sum(signs[index] for index in group) % 2 for group in derived))
        yield {name: values[level] for (name, values), level in zip(factors.items(), levels, strict=True)}


def _derived(factors: Mapping[str, Sequence[SettingValue]], fraction: int) -> list[tuple[int, ...]]:
    """For each factor that is not free, the free ones whose product it is."""
    count = round(math.log2(fraction))
    if 2**count != fraction or any(len(values) != 2 for values in factors.values()):
        raise UserError(
            f"factorial.fraction {fraction}: no such fraction of these factors",
            "a fraction is 2, 4, 8 .., and each factor has two values",
        )
    basic = len(factors) - count
    groups = [group for size in range(basic, 1, -1) for group in itertools.combinations(range(basic), size)]
    if count > 1:
        groups.sort(key=lambda group: len(group) % 2 == 0)
    if basic < 2 or len(groups) < count:
        raise UserError(
            f"factorial.fraction {fraction}: too few runs would be left to tell {len(factors)} factors apart",
            "take a smaller fraction",
        )
    return groups[:count]
