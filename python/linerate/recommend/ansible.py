"""A task file for Ansible: sysctls, udev rules for the ports, multipath.conf and the records of open-iscsi.

Every text is that of the other forms. Strings are written as JSON, which YAML reads alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from json import dumps

from linerate.filename import file_name
from linerate.host import HostSetting, iscsi_record
from linerate.recommend.configuration import Configuration, RecommendedSetting
from linerate.recommend.form import FormText, checked_ports, evidence_lines, host_settings
from linerate.recommend.multipath import multipath_form
from linerate.recommend.sysctl import sysctl_lines
from linerate.recommend.udev import adapter_settings, udev_rule

_MATCH = "{{ san_ports | join('|') }}"


def ansible_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The tasks. Without ports the variable `san_ports` must come from the playbook, and the first task says so."""
    name = f"60-linerate-{file_name(configuration.study)}"
    adapter, missing = adapter_settings(configuration)
    lines = _adapter_tasks(adapter, ports, f"/etc/udev/rules.d/{name}.rules")
    for sysctl, (value, users) in sysctl_lines(configuration).items():
        values = {"name": sysctl, "value": value, "sysctl_file": f"/etc/sysctl.d/{name}.conf", "reload": True}
        settings = [one for one, _ in users]
        lines += _task(settings, f"Sysctl {sysctl}", "ansible.posix.sysctl", values)
        missing = _without(missing, settings)
    multipath = multipath_form(configuration, ())
    of_multipath = [one for one in configuration.settings if one.setting.applier == "multipath"]
    missing |= {one.name: multipath.missing.get(one.name, "") for one in of_multipath}
    if multipath.lines:
        taken = [one for one in of_multipath if not missing[one.name]]
        place = f"/etc/multipath/conf.d/{name}.conf"
        lines += _copy_tasks(taken, "Multipath settings", place, multipath.lines, "multipathd reconfigure")
        missing = _without(missing, taken)
    for one, setting in host_settings(configuration):
        if setting.where == "session" and (record := iscsi_record(setting, one.value)):
            command = f"iscsiadm -m node -o update -n '{record[0]}' -v {record[1]}"
            title = f"open-iscsi {record[0]}, from the next login on"
            lines += _task([one], title, "ansible.builtin.command", {"cmd": command})
            missing = _without(missing, [one])
    return FormText(lines, missing)


def _without(missing: dict[str, str], settings: Iterable[RecommendedSetting]) -> dict[str, str]:
    names = {one.name for one in settings}
    return {name: why for name, why in missing.items() if name not in names}


def _adapter_tasks(
    settings: Sequence[tuple[RecommendedSetting, HostSetting]], ports: Sequence[str], place: str
) -> list[str]:
    if not settings:
        return []
    if ports:
        given = {"san_ports": list(checked_ports(ports))}
        first = _task([], "Ports to the SAN", "ansible.builtin.set_fact", given)
    else:
        asked = {"that": "san_ports is defined", "fail_msg": "give san_ports, such as [eth2, eth3]"}
        first = _task([], "Ports to the SAN", "ansible.builtin.assert", asked)
    rules = [udev_rule(one, setting, _MATCH) for one, setting in settings]
    then = (
        "sh -c 'udevadm control --reload && udevadm trigger --settle --action=add --subsystem-match=net"
        "{% for port in san_ports %} --sysname-match={{ port }}{% endfor %}'"
    )
    taken = [one for one, _ in settings]
    return [*first, *_copy_tasks(taken, "Adapter settings", place, rules, then)]


def _copy_tasks(
    settings: Iterable[RecommendedSetting], title: str, place: str, content: Iterable[str], then: str
) -> list[str]:
    """Writes a file, and runs a command when it has changed.

    Comments stay out of the content: Ansible replaces {{ }} in it, and texts of a study may hold anything.
    """
    variable = f"linerate_{title.split()[0].lower()}"
    lines = [line for line in content if line and not line.startswith("#")]
    task = _task(settings, title, "ansible.builtin.copy", {"dest": place, "mode": "0644"})
    task += ["    content: |", *(f"      {line}" for line in lines), f"  register: {variable}"]
    apply = _task([], f"{title}: put in force", "ansible.builtin.command", {"cmd": then})
    return [*task, *apply, f"  when: {variable} is changed"]


def _task(
    settings: Iterable[RecommendedSetting], title: str, module: str, values: Mapping[str, object]
) -> list[str]:
    comments = [line for one in settings for line in evidence_lines(one)]
    arguments = [f"    {name}: {dumps(value)}" for name, value in values.items()]
    return ["", *comments, f"- name: {dumps(title)}", f"  {module}:", *arguments]
