"""`linerate probe`: one path to one volume, what it carries, and what limits it.

`survey.py` is the whole probe; open it first. `trials.py` has the short loads as data, `measure.py` runs one of them,
`frames.py` looks for the largest frame that arrives, `judge.py` names the limit from all of it.
"""

from linerate.probe.evidence import Evidence, RawRate, SizeTimes, Tcp, TrialResult
from linerate.probe.frames import FrameSizes
from linerate.probe.hints import Hint
from linerate.probe.judge import Diagnosis, judge
from linerate.probe.survey import ProbeRequest, Survey, survey
from linerate.probe.trials import Trial, trials

__all__ = [
    "Diagnosis",
    "Evidence",
    "FrameSizes",
    "Hint",
    "ProbeRequest",
    "RawRate",
    "SizeTimes",
    "Survey",
    "Tcp",
    "Trial",
    "TrialResult",
    "judge",
    "survey",
    "trials",
]
