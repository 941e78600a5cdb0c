"""tune.json: what a search was asked for. All else follows from it and from the study directories of its stages."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict

from linerate.errors import HostError, UserError, quote
from linerate.model import Model
from linerate.results.files import open_record, write_record
from linerate.study import Study
from linerate.study.directory import SEARCH
from linerate.tune.factors import Space
from linerate.tune.stages import TuneEffort

FORMAT_VERSION = 1


class TuneRecord(Model):
    """A search: its settings, its effort, and the study that every stage is made from."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["linerate-tune"] = "linerate-tune"
    format_version: int = FORMAT_VERSION
    started_at: datetime
    command: tuple[str, ...] = ()
    space: Space
    effort: TuneEffort
    study: Study
    """With one workload; its baseline is that of the search."""

    def create(self, directory: Path) -> None:
        """Writes it into a directory that is new or empty.

        Raises UserError if there is something in it, HostError if it cannot be written.
        """
        path = directory / SEARCH
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise UserError(
                    f"{directory} is not empty",
                    f"give another --output, or go on with: linerate tune {quote(directory)}",
                )
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}", "see that the directory can be written") from error
        write_record(path, self)

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Raises UserError for a directory that is no search, or a damaged one."""
        wanted = "give a study file, or a directory that `linerate tune` wrote"
        return open_record(cls, directory / SEARCH, FORMAT_VERSION, wanted)
