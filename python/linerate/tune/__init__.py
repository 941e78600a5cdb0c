"""`linerate tune`: which of many settings matter, by a screening design in place of one change at a time.

Open `stages.py` first: it says what is measured, and in which order. `factors.py` is what may be changed, and
`exclusions.py` what a SAN cannot have together. `design.py` chooses configurations. `effects.py` estimates from all
runs; `robust.py` lets disturbed runs count little. `foldover.py` tells interactions apart, `refine.py` measures levels
between, `best.py` chooses. `power.py` says what so many runs find, `words.py` what was found. `conduct.py` makes a
study of each stage, and `record.py` keeps what was asked for.
"""

from linerate.tune.best import Best
from linerate.tune.design import Design, screening_design
from linerate.tune.effects import Effects, TuneRun
from linerate.tune.factors import Exclusion, Factor, Point, Space
from linerate.tune.stages import Choice, Procedure, TuneEffort, TuneStage

__all__ = [
    "Best",
    "Choice",
    "Design",
    "Effects",
    "Exclusion",
    "Factor",
    "Point",
    "Procedure",
    "Space",
    "TuneEffort",
    "TuneRun",
    "TuneStage",
    "screening_design",
]
