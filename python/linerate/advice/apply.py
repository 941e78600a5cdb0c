"""Applies what mends broken rules on this host, as far as it is a setting of a host, under the journal of its settings.

What cannot be done from here (switches, arrays, other hosts, topologies, settings without an applier) is named with the
reason. After the change the host is audited again: a change after which a rule of severity must is broken that was not
broken before is put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linerate.advice.audit import AuditResult, AuditSources, audit
from linerate.advice.judge import RuleOutcome
from linerate.advice.rule import AdviceRule
from linerate.errors import HostError
from linerate.host import HostJournal, HostTarget, PlannedSetting, apply, catalogue, named, plan, restore
from linerate.setting import Value


@dataclass(frozen=True, slots=True)
class PlannedMend:
    """A setting of this host (`device` empty) or of one of its ports that is to be changed for the sake of a rule."""

    rule: AdviceRule
    sentence: str
    step: PlannedSetting

    @property
    def place(self) -> str:
        """`mtu of eth2`."""
        name = self.step.setting.name
        return f"{name} of {self.step.device}" if self.step.device else name

    @property
    def text(self) -> str:
        """`mtu of eth2: 1500, to be 9000`."""
        text = self.step.setting.text
        return f"{self.place}: {text(self.step.before)}, to be {text(self.step.value)}"


@dataclass(frozen=True, slots=True)
class UntouchedRule:
    """A broken rule, or one subject of it, that is not mended from here, and why."""

    rule: AdviceRule
    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.rule.number} {self.rule.id}, {self.subject}: {self.reason}"


@dataclass(frozen=True, slots=True)
class MendPlan:
    """What would be changed on this host, in the order in which it is changed, and what is left."""

    target: str
    mends: tuple[PlannedMend, ...]
    untouched: tuple[UntouchedRule, ...]


def plan_mends(result: AuditResult, host: str) -> MendPlan:
    """Reads this host for each broken rule of it. Nothing is changed. `host` is its name in the journal."""
    mends: dict[tuple[str, str], PlannedMend] = {}
    untouched: list[UntouchedRule] = []
    for one in result.outcomes:
        if one.state != "broken" or one.subject is None:
            continue
        if reason := _not_from_here(one, result):
            untouched.append(UntouchedRule(one.rule, one.subject.name, reason))
            continue
        device = one.subject.name if named(one.check.setting).scope == "port" else ""
        made = plan(HostTarget(host, (device,) if device else ()), {one.check.setting: one.check.value})
        for refusal in made.refused:
            untouched.append(UntouchedRule(one.rule, one.subject.name, refusal.reason))
        for step in made.steps:
            known = mends.setdefault((step.setting.name, device), PlannedMend(one.rule, one.check.mend, step))
            if known.step.value != step.value:
                reason = f"rule {known.rule.id} wants another value of {known.place}"
                untouched.append(UntouchedRule(one.rule, one.subject.name, reason))
    order = list(catalogue())
    ordered = sorted(mends.values(), key=lambda mend: order.index(mend.step.setting.name))
    return MendPlan(host, tuple(ordered), tuple(untouched))


def _not_from_here(one: RuleOutcome, result: AuditResult) -> str:
    """Why the mend of a broken rule is not a change of a setting of this host; empty if it is."""
    subject, check = one.subject, one.check
    assert subject is not None
    if not result.is_here(subject):
        kinds = {
            "linux": "another host",
            "windows": "another host",
            "topology": "a topology",
            "study": "a study",
            "iscsi": "an array",
        }
        return f"it is on {kinds.get(subject.system, 'a switch or an image')}"
    if subject.system != "linux" or not check.setting:
        return f"no setting of a host mends it: {check.mend}"
    setting = catalogue().get(check.setting)
    if setting is None:
        return f"{check.setting} is not a setting of a host: {check.mend}"
    if setting.linux is None:
        return f"{check.setting}: {setting.absent or 'it is agreed when a session logs in'}"
    if (setting.scope == "port") != (subject.kind == "port"):
        return f"it does not say on which port {check.setting} is wrong: {check.mend}"
    return ""


@dataclass(frozen=True, slots=True)
class MendResult:
    """The value that was read back of each mend, and the audit of the same sources after the change."""

    readback: tuple[Value, ...]
    after: AuditResult


def apply_mends(
    made: MendPlan, sources: AuditSources, before: AuditResult, journal: HostJournal
) -> MendResult:
    """Makes all changes or none, reads them back, and audits the host again.

    Raises HostError when something is refused, or when the change breaks a rule of severity must; everything is put
    back then, as after an interrupt.
    """
    mark = journal.mark
    readback: list[Value] = []
    kept = False
    try:
        for mend in made.mends:
            step = mend.step
            target = HostTarget(made.target, (step.device,) if step.device else ())
            applied = apply(target, {step.setting.name: step.value}, journal)
            if applied.refused:
                reason = "; ".join(map(str, applied.refused))
                raise HostError(
                    f"nothing stays changed: {reason}", "mend the cause, or change the others by hand"
                )
            readback += applied.readback.values()
        after = audit(sources)
        if worse := sorted(_broken_musts(after) - _broken_musts(before)):
            raise HostError(
                f"everything was put back: after the change these were broken: {', '.join(worse)}",
                "mend what these rules say first, often a switch or an array port, then apply again",
            )
        kept = True
    finally:
        if not kept and (stuck := restore(journal, since=mark).failed):
            raise HostError(
                "could not be put back: " + "; ".join(map(str, stuck)),
                f"try again: linerate host restore {journal.path}",
            )
    return MendResult(tuple(readback), after)


def _broken_musts(result: AuditResult) -> set[str]:
    return {
        f"{one.rule.id} ({one.subject.name})"
        for one in result.outcomes
        if one.subject and one.state == "broken" and one.rule.severity == "must"
    }


def plan_lines(made: MendPlan) -> Iterator[str]:
    """The plan as text: each change with its rule, what to look at first, and the command that does the same."""
    for mend in made.mends:
        yield f"{mend.text} (rule {mend.rule.number} {mend.rule.id})"
        yield f"    {mend.sentence}"
        yield from (f"    {command}" for command in mend.step.commands)
    yield from untouched_lines(made.untouched)


def untouched_lines(untouched: Sequence[UntouchedRule]) -> Iterator[str]:
    """What is not touched, each with the reason."""
    if untouched:
        yield "not touched:"
    yield from dict.fromkeys(f"    {one}" for one in untouched)
