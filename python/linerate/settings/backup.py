"""Settings of image backups: what the image is like. When a write is answered is a setting of every load."""

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
)
