"""The list of forms, and the whole text of one: head, lines, and what it cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from linerate.errors import UserError
from linerate.recommend.ansible import ansible_form
from linerate.recommend.configuration import Configuration
from linerate.recommend.form import FormText, head, tail
from linerate.recommend.linux import linux_form
from linerate.recommend.multipath import multipath_form
from linerate.recommend.powershell import powershell_form
from linerate.recommend.switch import MARK, SWITCH_KINDS, switch_form
from linerate.recommend.sysctl import sysctl_form
from linerate.recommend.udev import udev_form

Form = Callable[[Configuration, Sequence[str]], FormText]

FORMS: Mapping[str, tuple[str, Form]] = MappingProxyType(
    {
        "linux": ("Settings for a Linux host", linux_form),
        "powershell": ("Settings for a Windows host", powershell_form),
        "ansible": ("Ansible tasks", ansible_form),
        "sysctl": ("A file for /etc/sysctl.d", sysctl_form),
        "udev": ("udev rules", udev_form),
        "multipath": ("Sections of multipath.conf", multipath_form),
        **{
            f"switch:{kind}": ("Lines for a switch", partial(switch_form, kind=kind)) for kind in SWITCH_KINDS
        },
    }
)
"""Form -> what it is, and the function that writes it."""


def configuration_text(configuration: Configuration, form: str, ports: Sequence[str]) -> str:
    """The whole text of a form. `ports` replace those of the study.

    Raises UserError for a form that does not exist, a port that cannot be one, and a form that needs ports.
    """
    if form not in FORMS:
        kinds = ", ".join(f"switch:{kind}" for kind in SWITCH_KINDS)
        hint = f"write one of {kinds}" if form == "switch" else f"write one of {', '.join(FORMS)}"
        raise UserError(f"{form}: there is no such form", hint)
    what, write = FORMS[form]
    mark = MARK if form.startswith("switch:") else "#"
    of_study = () if mark == MARK else configuration.ports
    made = write(configuration, ports or of_study)
    start = ["#!/bin/sh"] if form == "linux" else []
    lines = [*start, *head(configuration, what, mark), *made.lines, *tail(configuration, made.missing, mark)]
    if form == "ansible":
        lines = _as_list(lines, bool(made.lines))
    return "\n".join(lines) + "\n"


def _as_list(lines: list[str], has_tasks: bool) -> list[str]:
    """A task file is a list, also an empty one."""
    return ["---", *lines] if has_tasks else ["---", *lines, "[]"]
