"""Reads and writes multipath.conf, the configuration of Linux' device mapper multipath: the same in our words.

The file has keys in sections (`defaults`, `devices`, `overrides`, `multipaths`, `blacklist`); what is not given has
the default that multipath-tools gives it. Keys that only concern block devices and their names are named and left
out; a key or value whose effect cannot be had here is refused, with its line. Form of the file: multipath.conf(5).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from linerate.workload.plan import FileNotice
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import MultipathPolicy, MultipathSpec
from linerate.workload.toml_read import read_text

_DEFAULTS = {
    "path_grouping_policy": "failover",
    "path_selector": "service-time 0",
    "rr_min_io_rq": "1",
    "failback": "manual",
    "no_path_retry": "fail",
    "polling_interval": "5",
    "fast_io_fail_tmo": "5",
}
"""As multipath-tools has them where the file says nothing."""
_TAKEN = {*_DEFAULTS, "rr_min_io", "rr_weight", "features", "prio"}
# fmt: off
_HARMLESS = frozenset((
    "alias", "alias_prefix", "all_tg_pt", "auto_resize", "bindings_file", "checker_timeout", "config_dir",
    "deferred_remove", "delay_wait_checks", "delay_watch_checks", "detect_checker", "detect_pgpolicy",
    "detect_pgpolicy_use_tpg", "detect_prio", "dev_loss_tmo", "disable_changed_wwids", "eh_deadline",
    "enable_foreign", "find_multipaths", "find_multipaths_timeout", "flush_on_last_del", "force_sync",
    "getuid_callout", "ghost_delay", "hardware_handler", "log_checker_err",
    "marginal_path_double_failed_time", "marginal_path_err_rate_threshold",
    "marginal_path_err_recheck_gap_time", "marginal_path_err_sample_time", "marginal_pathgroups", "max_fds",
    "max_polling_interval", "max_sectors_kb", "missing_uev_wait_timeout", "multipath_dir",
    "partition_delimiter", "path_checker", "prio_args", "prkeys_file", "product", "product_blacklist",
    "purge_disconnected", "queue_without_daemon", "reassign_maps", "recheck_wwid", "remove_retries",
    "reservation_key", "retain_attached_hw_handler", "retrigger_delay", "retrigger_tries", "revision",
    "san_path_err_forget_rate", "san_path_err_recovery_time", "san_path_err_threshold", "skip_kpartx",
    "strict_timing", "udev_dir", "uev_wait_timeout", "uid_attribute", "uid_attrs", "unpriv_sgio",
    "user_friendly_names", "uxsock_timeout", "vendor", "verbosity", "vpd_vendor", "wwid", "wwids_file",
))
# fmt: on
"""Keys about block devices and their names, or about how a path is checked."""
_BLACKLISTS = ("blacklist", "blacklist_exceptions")
_SELECTORS: dict[str, MultipathPolicy] = {
    "round-robin": "round_robin",
    "queue-length": "least_queue_depth",
    "service-time": "service_time",
    "historical-service-time": "service_time",
}
_ALL_PATHS = ("multibus", "group_by_prio", "group_by_tpg")
_PRIOS = ("alua", "sysfs", "const")
_WRITTEN_POLICIES: dict[str, tuple[str, str]] = {
    "failover_only": ("failover", ""),
    "round_robin": ("multibus", "round-robin"),
    "round_robin_subset": ("group_by_prio", "round-robin"),
    "least_queue_depth": ("multibus", "queue-length"),
    "service_time": ("multibus", "service-time"),
}
"""Policy -> grouping and selector; a group of one path needs no selector."""
_LIST_MOST = 8
_WORDS = re.compile(r'"((?:[^"]|"")*)"|([^\s"#!]+)|([#!].*)|(")')


@dataclass(frozen=True, slots=True)
class _Entry:
    value: str
    place: SourceLocation


@dataclass(slots=True)
class _Section:
    """A section with its own keys and the sections in it."""

    name: str
    place: SourceLocation
    entries: dict[str, _Entry] = field(default_factory=dict)
    sections: list[_Section] = field(default_factory=list)


def read_conf(path: Path) -> tuple[MultipathSpec, tuple[FileNotice, ...]]:
    """What a multipath.conf asks for, and what of it does not apply here. Raises UserError with all that is wrong."""
    return parse_conf(read_text(path, "multipath.conf"), str(path))


def parse_conf(text: str, shown: str) -> tuple[MultipathSpec, tuple[FileNotice, ...]]:
    """The same for the text of a file; `shown` is the file's name in messages."""
    problems = Problems()
    entries = _effective(_sections(text, shown, problems), shown, problems)
    spec = _Meaning(entries, problems).spec()
    problems.raise_if_any()
    return spec, tuple(problems.notices)


def _sections(text: str, shown: str, problems: Problems) -> _Section:
    root = _Section("", SourceLocation(shown, 0))
    opened = [root]
    for number, line in enumerate(text.splitlines(), 1):
        place = SourceLocation(shown, number)
        found = [match for match in _WORDS.finditer(line) if match[3] is None]
        if any(match[4] for match in found):
            problems.error(place, "a quote without its end", 'write "value"')
            continue
        words = [match[2] if match[1] is None else match[1].replace('""', '"') for match in found]
        match words:
            case []:
                pass
            case [name, "{"]:
                section = _Section(name, place)
                opened[-1].sections.append(section)
                opened.append(section)
            case ["}"] if len(opened) > 1:
                opened.pop()
            case [key, value] if "{" not in words and "}" not in words:
                opened[-1].entries[key] = _Entry(value, place)
            case _:
                problems.error(place, f"{line.strip()!r} cannot be read", "write key value, section { or }")
    if len(opened) > 1:
        problems.error(
            opened[-1].place, f"{opened[-1].name} {{ is not closed", "write } on a line of its own"
        )
    return root


def _effective(root: _Section, shown: str, problems: Problems) -> dict[str, _Entry]:
    """The keys in force: defaults below the device, that below overrides, those below the multipath."""
    by_rank: dict[str, dict[str, _Entry]] = {}
    for key, entry in root.entries.items():
        problems.error(entry.place, f"{key} is outside of any section", "put it into defaults { }")
    for section in root.sections:
        if section.name in ("defaults", "overrides"):
            by_rank.setdefault(section.name, {}).update(section.entries)
            for inner in section.sections:  # protocol { } in overrides
                _left_out(inner, problems)
        elif section.name in ("devices", "multipaths"):
            by_rank.setdefault(section.name, {}).update(_only_one(section, problems))
        elif section.name in _BLACKLISTS:
            problems.notice(section.place, f"{section.name}: left out; the workload names its volumes itself")
        else:
            known = "defaults, devices, overrides, multipaths, blacklist, blacklist_exceptions"
            problems.error(section.place, f"{section.name}: no such section", f"known are {known}")
    ranks = ("defaults", "devices", "overrides", "multipaths")
    entries = {key: entry for rank in ranks for key, entry in by_rank.get(rank, {}).items()}
    _check_keys(entries, problems)
    absent = [key for key in _DEFAULTS if key not in entries]
    if absent:
        texts = ", ".join(f"{key} {_DEFAULTS[key]}" for key in absent)
        problems.notice(SourceLocation(shown, 0), f"not in the file, so as multipath-tools has it: {texts}")
    return {key: _Entry(_DEFAULTS[key], SourceLocation(shown, 0)) for key in absent} | entries


def _left_out(section: _Section, problems: Problems) -> None:
    if any(key in _TAKEN for key in section.entries):
        what = f"{section.name}: its settings for some protocols cannot be separated"
        problems.error(section.place, what, "put the keys into overrides { } itself")


def _only_one(section: _Section, problems: Problems) -> dict[str, _Entry]:
    """The keys of the single device or multipath; which of several a LUN is, is not known before it is open."""
    telling = [one for one in section.sections if any(key in _TAKEN for key in one.entries)]
    if len(telling) > 1:
        what = f"{section.name}: {len(telling)} sections say how paths are used"
        problems.error(telling[1].place, what, f"leave the one of the tested array in {section.name} {{ }}")
    for key, entry in section.entries.items():
        problems.error(entry.place, f"{key} is outside of a section in {section.name}", "mend the file")
    return {key: entry for one in section.sections for key, entry in one.entries.items()}


def _check_keys(entries: dict[str, _Entry], problems: Problems) -> None:
    known = {*_TAKEN, *_HARMLESS}
    unused: list[str] = []
    for key, entry in entries.items():
        if key in _HARMLESS:
            unused.append(key)
        elif key not in known:
            close = difflib.get_close_matches(key, sorted(known), n=1)
            problems.error(entry.place, f"{key}: no such key", f"did you mean {close[0]}?" if close else "")
    if unused:
        shown = ", ".join(unused[:_LIST_MOST]) + (", ..." if len(unused) > _LIST_MOST else "")
        problems.notice(entries[unused[0]].place, f"without effect here: {shown}")


class _Meaning:
    """The keys in force, as multipath settings."""

    def __init__(self, entries: dict[str, _Entry], problems: Problems) -> None:
        self._entries = entries
        self._problems = problems

    def spec(self) -> MultipathSpec:
        self._check_rest()
        polling_s = self._number("polling_interval", least=1)
        return MultipathSpec(
            policy=self._policy(),
            ios_per_path=self._ios_per_path(),
            failback=self._failback(),
            path_timeout_s=self._number("fast_io_fail_tmo", least=1),
            checker_interval_s=polling_s,
            no_path_queue_s=self._no_path_queue_s(polling_s),
        )

    def _value(self, key: str) -> str:
        entry = self._entries.get(key)
        return entry.value if entry else ""

    def _refuse(self, key: str, accepted: str) -> None:
        entry = self._entries[key]
        self._problems.error(entry.place, f"{key} {entry.value}: not supported", f"write {accepted}")

    def _number(self, key: str, *, least: int) -> int:
        value = self._value(key)
        if value.isdecimal() and int(value) >= least:
            return int(value)
        self._refuse(key, f"a number of at least {least}")
        return least

    def _policy(self) -> MultipathPolicy:
        grouping, selector = self._value("path_grouping_policy"), self._value("path_selector")
        policy = _SELECTORS.get(selector.split(" ")[0])
        if grouping != "failover" and grouping not in _ALL_PATHS:
            self._refuse("path_grouping_policy", f"failover, {', '.join(_ALL_PATHS)}")
        if policy is None:
            self._refuse("path_selector", '"round-robin 0", "queue-length 0" or "service-time 0"')
            return "round_robin"
        if selector.startswith("historical"):
            self._note("path_selector", "read as service-time")
        # A group of one path leaves the selector nothing to choose.
        if grouping == "failover":
            return "failover_only"
        # Groups by priority are ranks of paths: those of the best rank share the I/O.
        return "round_robin_subset" if policy == "round_robin" and grouping != "multibus" else policy

    def _ios_per_path(self) -> int:
        if "rr_min_io" in self._entries:
            if not self._entries["rr_min_io_rq"].place.line:
                self._note("rr_min_io", "read as rr_min_io_rq, which today's kernels follow")
                return self._number("rr_min_io", least=1)
            self._note("rr_min_io", "left out; rr_min_io_rq is followed, as today's kernels do")
        return self._number("rr_min_io_rq", least=1)

    def _failback(self) -> Literal["immediate", "manual"] | float:
        value = self._value("failback")
        if value == "immediate":
            return "immediate"
        if value == "manual":
            return "manual"
        if value.isdecimal():
            return float(value)
        self._refuse("failback", "immediate, manual or a number of seconds")
        return "manual"

    def _no_path_queue_s(self, polling_s: int) -> float | None:
        value, given = self._value("no_path_retry"), self._entries["no_path_retry"].place.line
        if value == "queue" or (not given and "queue_if_no_path" in self._value("features")):
            return None
        if value == "fail":
            return 0.0
        return float(self._number("no_path_retry", least=0) * polling_s)

    def _check_rest(self) -> None:
        for key, accepted in self._rest():
            self._refuse(key, accepted)

    def _rest(self) -> Iterator[tuple[str, str]]:
        if self._value("rr_weight") not in ("", "uniform"):
            yield "rr_weight", "rr_weight uniform, or use paths with weights and the policy weighted_paths"
        if self._value("prio") not in ("", *_PRIOS):
            yield "prio", f"{' or '.join(_PRIOS)}: an array's ALUA states are followed anyway"
        features = self._value("features").split()
        if [word for word in features if not word.isdecimal() and word != "queue_if_no_path"]:
            yield "features", '"0" or "1 queue_if_no_path"'

    def _note(self, key: str, message: str) -> None:
        self._problems.notice(self._entries[key].place, f"{key}: {message}")


@dataclass(frozen=True, slots=True)
class ConfText:
    """Lines of a multipath.conf, and the fields that it cannot say, each with the reason."""

    lines: tuple[str, ...]
    refused: Mapping[str, str]


def conf_text(fields: Mapping[str, Any]) -> ConfText:
    """A multipath.conf that asks for these fields of a `MultipathSpec` and leaves all others alone.

    The keys go into overrides, so that they also hold for arrays of which multipath-tools has a table.
    """
    keys: dict[str, str] = {}
    refused: dict[str, str] = {}
    polling_s = float(_DEFAULTS["polling_interval"])
    for name, value in sorted(fields.items()):  # the interval of the checker comes before what counts in it
        try:
            keys |= _keys(name, value, polling_s)
        except ValueError as error:
            refused[name] = str(error)
        else:
            polling_s = value if name == "checker_interval_s" else polling_s
    sections: dict[str, list[str]] = {"defaults": [], "overrides": []}
    for key, text in keys.items():
        section = "defaults" if key == "polling_interval" else "overrides"
        sections[section].append(f'    {key} "{text}"' if " " in text else f"    {key} {text}")
    lines = [line for name, own in sections.items() if own for line in (f"{name} {{", *own, "}")]
    return ConfText(tuple(lines), refused)


def _keys(name: str, value: Any, polling_s: float) -> dict[str, str]:
    """The keys of one field. Raises ValueError with the reason where there is none."""
    if name == "policy":
        if value not in _WRITTEN_POLICIES:
            raise ValueError("multipath-tools has no such policy")
        grouping, selector = _WRITTEN_POLICIES[value]
        return {"path_grouping_policy": grouping, **({"path_selector": f"{selector} 0"} if selector else {})}
    if name == "ios_per_path":
        return {"rr_min_io_rq": str(value)}
    if name == "failback":
        return {"failback": value if isinstance(value, str) else _whole(value, 0, "s")}
    if name == "path_timeout_s":
        return {"fast_io_fail_tmo": _whole(value, 1, "s")}
    if name == "checker_interval_s":
        return {"polling_interval": _whole(value, 1, "s")}
    if name == "no_path_queue_s":
        if not value:
            return {"no_path_retry": "queue" if value is None else "fail"}
        return {"no_path_retry": _whole(value / polling_s, 1, f"times polling_interval ({polling_s:g} s)")}
    raise ValueError("multipath-tools counts I/Os, not bytes")


def _whole(value: float, least: int, unit: str) -> str:
    if value < least or value != int(value):
        raise ValueError(f"multipath.conf takes whole numbers here, and this would be {value:g} {unit}")
    return str(int(value))
