"""A PowerShell script for Windows, with undo. It is written from documentation and was not run on Windows."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.filename import file_name
from linerate.host import script_with_undo, windows_refusals
from linerate.recommend.configuration import Configuration, values_of
from linerate.recommend.form import FormText, evidence_lines, host_settings, not_of_hosts


def powershell_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The script. `ports` are names of adapters as Windows shows them; without them the script asks for some."""
    missing = not_of_hosts(configuration)
    of_hosts = tuple(one for one, _ in host_settings(configuration))
    missing |= {refusal.setting: refusal.reason for refusal in windows_refusals(values_of(of_hosts))}
    taken = tuple(one for one in of_hosts if one.name not in missing)
    if not taken:
        return FormText([], missing)
    comments = [line for one in taken for line in evidence_lines(one)]
    saved = f"linerate-{file_name(configuration.study)}-saved.xml"
    script = script_with_undo(values_of(taken), ports, saved)
    return FormText([*comments, *script.splitlines()], missing)
