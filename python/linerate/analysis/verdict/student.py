"""Student's t distribution on numbers and whole arrays, from scipy.special.

scipy.stats has the same under better names, but takes most of a second to load.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]

Numbers: TypeAlias = float | NDArray[np.float64]


def t_reach(alpha: Numbers, freedom: Numbers) -> NDArray[np.float64]:
    """The value that t exceeds with probability `alpha`."""
    return np.asarray(-special.stdtrit(freedom, alpha), dtype=np.float64)


def t_tail(value: Numbers, freedom: Numbers) -> NDArray[np.float64]:
    """The probability that t exceeds a value."""
    return np.asarray(special.stdtr(freedom, np.negative(value)), dtype=np.float64)
