"""What happens while a study is conducted: the entries of its journal as they are written, and what comes next."""

from __future__ import annotations

from typing import Literal

from linerate.model import Model
from linerate.study.journal import Entry


class StudyBegan(Model):
    """The study directory is open. The times are for all blocks that it may come to."""

    type: Literal["study"] = "study"
    name: str
    directory: str
    cases: int
    workloads: int
    blocks_min: int
    blocks_max: int
    least_s: float
    most_s: float


class BlockBegan(Model):
    """A block begins; `steps` of it are to be run."""

    type: Literal["block"] = "block"
    block: int
    steps: int
    seconds: float


class StepBegan(Model):
    """A run begins: `number` of `of` in its block."""

    type: Literal["step_began"] = "step_began"
    block: int
    number: int
    of: int
    san: str
    case: str
    workload: str


StudyEvent = StudyBegan | BlockBegan | StepBegan | Entry
