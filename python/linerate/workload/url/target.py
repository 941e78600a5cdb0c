"""A place for a volume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import SecretStr

from linerate.workload.spec import SessionSpec

TARGET_FORM = "iscsi://host[:port]/target/lun, a path such as ./disk.img or /dev/sdb, or null:SIZE"


@dataclass(frozen=True, slots=True)
class Target:
    """A place for a volume. `url` is canonical, absolute and free of user and secret."""

    kind: Literal["iscsi", "file", "block", "null", "array"]
    url: str
    user: str | None = None
    secret: SecretStr | None = None
    mutual_user: str | None = None
    mutual_secret: SecretStr | None = None
    iscsi: SessionSpec = field(default_factory=SessionSpec)

    @property
    def is_raw(self) -> bool:
        """A device, as opposed to a file or the null target."""
        return self.kind in ("iscsi", "block")
