"""A place for a volume."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import SecretStr

from linerate.workload.spec import SessionSpec

TARGET_FORM = (
    "iscsi://host[:port]/target/lun, smb://host/share/file, a path such as ./disk.img or /dev/sdb, "
    "or null:SIZE"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A place for a volume.

    kind: the scheme of its URL; `block` for a block device.
    url: canonical, absolute, free of user and secret.
    is_raw: a device, as opposed to a file or the null target.
    """

    kind: str
    url: str
    is_raw: bool = False
    user: str | None = None
    secret: SecretStr | None = None
    mutual_user: str | None = None
    mutual_secret: SecretStr | None = None
    iscsi: SessionSpec = field(default_factory=SessionSpec)

    @property
    def can_be_made(self) -> bool:
        """A file, which a run may make or lengthen."""
        return self.kind in ("file", "smb")
