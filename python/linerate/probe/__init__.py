"""`linerate probe`: one path to one volume, what it carries, and what limits it.

`survey.py` is the whole probe; open it first. `trials.py` has the short loads as data, `measure.py` runs one of them,
`tcp_state.py` looks at its connections meanwhile. `frames.py` looks for the largest frame that arrives, `sizes.py`
tries I/Os of odd sizes, `raw` plain TCP, and `port` reads the port of this host. All of it is an `Evidence`, from which
`judge.py` names the limit; `stalls.py`, `windows.py` and `beside_raw.py` hold single causes, `hints.py` what to try.
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
