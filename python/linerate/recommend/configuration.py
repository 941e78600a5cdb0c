"""Which settings of a study are to be put in force, and which are not although they helped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from linerate.report.figures import grouped_findings
from linerate.report.study import Recommendation, StudyPage, study_page
from linerate.setting import Value
from linerate.settings import AnySetting, catalogue, find
from linerate.study import StudyDirectory


@dataclass(frozen=True, slots=True)
class RecommendedSetting:
    """A setting with its checked value, and in one line each what it brought."""

    name: str
    value: Value
    evidence: tuple[str, ...]

    @property
    def setting(self) -> AnySetting:
        """Its entry in the catalogue."""
        return find(self.name)

    @property
    def text(self) -> str:
        """`mtu = 9000`."""
        return f"{self.name} = {self.setting.text(self.value)}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a study recommends.

    `settings` helped, hurt nowhere and are in the order in which they are applied. Others helped and are not put in
    force unasked: `depending` made some load worse, of `open` settings several values helped; each has the reason.
    `doubt` is why the study is not sure of itself; empty if it is. `ports` are those of its hosts, if all of them have
    the same.
    """

    study: str
    title: str
    doubt: str
    settings: tuple[RecommendedSetting, ...]
    depending: Mapping[str, str]
    open: Mapping[str, str]
    ports: tuple[str, ...]
    page: StudyPage

    @property
    def is_empty(self) -> bool:
        """Whether no setting was shown to help."""
        return not self.page.recommendations


def recommended_configuration(directory: StudyDirectory) -> Configuration:
    """The configuration that a study recommends as far as it has come. Raises UserError for what cannot be read."""
    ports = {host.devices for san in directory.study.sans for host in san.hosts}
    return configuration_of(study_page(directory), next(iter(ports)) if len(ports) == 1 else ())


def configuration_of(page: StudyPage, ports: tuple[str, ...] = ()) -> Configuration:
    """The configuration of a study as it is shown; `ports` are those of its hosts."""
    asked: dict[str, dict[Value, list[str]]] = {}
    depending: dict[str, str] = {}
    undecided: dict[str, str] = {}
    for item in page.recommendations:
        if item.mixed:
            depending |= dict.fromkeys(item.values, f"it depends on the load: {'; '.join(item.cost)}")
            continue
        for name, value in item.values.items():
            asked.setdefault(name, {}).setdefault(find(name).parse(value), []).extend(_evidence(item))
    for name, values in asked.items():
        if len(values) > 1:
            texts = " and ".join(find(name).text(value) for value in values)
            undecided[name] = f"{texts} were shown to help, and which is better was not decided"
    settings = tuple(
        RecommendedSetting(name, value, tuple(dict.fromkeys(evidence)))
        for name in catalogue()
        for value, evidence in asked.get(name, {}).items()
        if name not in depending and name not in undecided
    )
    return Configuration(
        study=page.name,
        title=page.title,
        doubt="; ".join(_doubts(page)),
        settings=settings,
        depending=depending,
        open=undecided,
        ports=ports,
        page=page,
    )


def _evidence(item: Recommendation) -> Iterator[str]:
    with_others = f" (with {', '.join(item.values)} together)" if len(item.values) > 1 else ""
    small = " (a small gain, below the margin)" if item.slight else ""
    yield from (f"{line}{with_others}{small}" for line in item.evidence)


def _doubts(page: StudyPage) -> Iterator[str]:
    if page.state != "complete":
        reason = f" ({page.reason})" if page.reason else ""
        yield f"the study is {page.state}{reason}, and more runs may change what it recommends"
    if page.validity.stamp != "valid":
        groups = grouped_findings(page.validity.findings)
        reasons = [group.finding.reason for group in groups if group.finding.severity != "note"]
        more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        why = f" ({reasons[0]}{more})" if reasons else ""
        yield f"its result is stamped {page.validity.stamp}{why}"


def values_of(settings: tuple[RecommendedSetting, ...]) -> Mapping[str, Value]:
    """Name -> checked value."""
    return {one.name: one.value for one in settings}
