"""Where a volume is: an iSCSI LUN, a file of an SMB share, a file, a block device, or nothing at all.

    iscsi://[user%secret@]host[:port]/target/lun[?header_digest=none|crc32c&target_user=..&target_password=..]
    smb://[[domain;]user[%secret]@]host[:port]/share/folder/file
    file:/path   /path   ./path   (a block device is a path, too)
    null:8g
    array:NAME       a volume of an array file, in virtual time

The iSCSI form is the one that libiscsi's tools and QEMU take, read by the same rules: `user:secret@` works as
well, the secret may hold `/`, `%xx` is decoded in the target's name only, and LIBISCSI_CHAP_USERNAME,
_PASSWORD, _TARGET_USERNAME and _TARGET_PASSWORD in the environment are used where the URL has no value. The
secret leaves the URL here: what is passed on, shown and stored has none. LINERATE_SMB_USER and LINERATE_SMB_PASSWORD
are used where an SMB URL has no value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.url.host_like import url_meant
from linerate.workload.url.iscsi import IscsiPortal, parse_iscsi_portal, without_secret
from linerate.workload.url.kinds import (
    UrlText,
    array_url,
    has_paths,
    is_remote,
    is_share,
    kind_of,
    null_bytes,
    path_of,
    portal_of,
)
from linerate.workload.url.path import NO_DEVICE, in_dev, parse_path
from linerate.workload.url.smb import SMB_FOLDER_FORM, parse_smb_folder, parse_smb_server, smb_url_meant
from linerate.workload.url.target import TARGET_FORM, Target

__all__ = [
    "NO_DEVICE",
    "SMB_FOLDER_FORM",
    "IscsiPortal",
    "Target",
    "array_url",
    "has_paths",
    "in_dev",
    "is_remote",
    "is_share",
    "is_volume",
    "null_bytes",
    "parse_iscsi_portal",
    "parse_smb_folder",
    "parse_smb_server",
    "parse_target",
    "path_of",
    "portal_of",
    "smb_url_meant",
    "without_secret",
]

_WINDOWS_DEVICE = re.compile(r"\\\\\.\\|//\./|[a-z]:[\\/]", re.IGNORECASE)


def parse_target(
    text: str, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Target:
    """The target that `text` names. Relative paths start at `folder` (default: the current directory).

    Raises UserError; the message names the part that is wrong and never shows a secret.
    """
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if (kind := kind_of(text)) is not None:
        return kind.parse(UrlText(text, rest, folder, os.environ if environ is None else environ))
    if _WINDOWS_DEVICE.match(text):
        raise UserError(
            f"{text}: a Windows device, which this host does not have",
            "say where it is with --map, for example --map '*'=iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}",
        )
    if (share := smb_url_meant(text)) is not None and not _is_path(text):
        raise UserError(f"{text}: a file of a share, in another form", f"write {share}")
    if colon and re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) and rest.startswith("//"):
        raise UserError(f"{scheme}://: no such kind of target", f"write {TARGET_FORM}")
    if (meant := url_meant(text, os.path.abspath(folder or "."))) is not None:
        shown = "***@" + text.rpartition("@")[2] if "@" in text else text
        raise UserError(
            f"{shown}: a host or an iSCSI name is no target by itself",
            f"write {meant}; `linerate discover` lists an array's targets and LUNs; a file of this name is ./{shown}",
        )
    return parse_path(text, text, folder)


def is_volume(text: str) -> bool:
    """Whether a text names a volume, not a file with words: it is a URL of a volume, or a block device."""
    path = Path(text)
    return path.is_block_device() or (kind_of(text) is not None and not path.exists())


def _is_path(text: str) -> bool:
    """Whether a text that starts with two slashes names something below a folder of this host."""
    return text.startswith("//") and os.path.isdir("/" + text.lstrip("/").partition("/")[0])
