"""What mends a broken rule: a sentence, and the command or the lines of configuration where there are some."""

from __future__ import annotations

from linerate.advice.facts import AuditSubject
from linerate.advice.rule import RuleCheck
from linerate.errors import quote
from linerate.host import catalogue


def mend_lines(check: RuleCheck, subject: AuditSubject) -> list[str]:
    """Lines that a person can follow: commands for hosts and switches, a setting for a topology or a study."""
    if subject.system in check.commands:
        return [f"{subject.name}: {line}" for line in check.commands[subject.system]]
    if not check.setting:
        return []
    given = f"{check.setting}={check.value}"
    if subject.system in ("topology", "study"):
        return [f"in a study: settings = {{ {check.setting} = {_toml(check.value)} }}"]
    setting = catalogue().get(check.setting)
    if setting is None or subject.system not in ("linux", "windows"):
        return []
    device = f" --device {quote(subject.name)}" if subject.kind == "port" and setting.scope == "port" else ""
    if subject.system == "windows":
        return [f"linerate host plan --windows {given}{device}"] if setting.windows else []
    return [f"linerate host apply {given}{device}"] if setting.linux else []


def _toml(value: str) -> str:
    return value if value.isdecimal() else f'"{value}"'
