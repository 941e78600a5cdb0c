"""Sections of a multipath.conf."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.recommend.configuration import Configuration
from linerate.recommend.form import FormText, evidence_lines
from linerate.settings import SanSetting
from linerate.workload.multipath import conf_text


def multipath_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The sections, for /etc/multipath/conf.d or to be merged into /etc/multipath.conf. Ports are of no use here."""
    del ports
    missing: dict[str, str] = {}
    fields: dict[str, object] = {}
    owners: dict[str, str] = {}
    for one in configuration.settings:
        setting = one.setting
        if setting.applier != "multipath":
            missing[one.name] = "it is no setting of multipath"
        elif isinstance(setting, SanSetting) and setting.field and setting.field.part == "multipath":
            fields[setting.field.name] = setting.meaning(one.value)
            owners[setting.field.name] = one.name
        else:
            missing[one.name] = "paths come from the sessions that log in: open-iscsi's records say which"
    text = conf_text(fields)
    missing |= {owners[name]: why for name, why in text.refused.items()}
    expressed = [one for one in configuration.settings if one.name not in missing]
    comments = [line for one in expressed for line in evidence_lines(one)]
    return FormText(["", *comments, *text.lines] if text.lines else [], missing)
