"""Settings of image backups: what the image is like, and when a write to it is answered."""

from __future__ import annotations

from linerate.setting import Choice
from linerate.settings.san_setting import ModelField, SanSetting

SETTINGS = (
    SanSetting(
        name="backup.image",
        title="Kind of the backup image",
        applier="load",
        kind=Choice(("fixed", "dynamic")),
        default="fixed",
        field=ModelField("backup", "kind"),
        elsewhere=(("Windows", "New-VHD -Fixed, New-VHD -Dynamic"),),
        doc="""A fixed image has all its blocks from the beginning, written with zeros. A dynamic image gets a block at
        its first write, with a change of its table and of its file's length.""",
    ),
    SanSetting(
        name="backup.writes",
        title="Writes to the backup image",
        applier="load",
        kind=Choice(("cached", "through")),
        default="cached",
        field=ModelField("backup", "durable_writes", lambda value: value == "through"),
        elsewhere=(("Windows", "write caching policy of the disk"), ("Samba", "strict sync")),
        doc="""through: each write is on stable storage before it is answered. cached: flushes alone make writes durable,
        so a server that caches writes answers sooner.""",
    ),
)
