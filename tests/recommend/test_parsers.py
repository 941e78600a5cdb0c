"""Texts of forms, read by the programs that they are for, where these are installed; nothing outside is changed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from linerate.advice import facts_script
from linerate.host import catalogue, windows_refusals
from linerate.host.windows.script import apply_script, undo_script
from linerate.recommend import configuration_text
from linerate.setting import Choice, Number, OnOff, Value

from tests.recommend.planted import configuration
from tests.recommend.test_forms import EVERYTHING
from tests.support import need

ADAPTERS = ("SAN 1", "O'Neil $x `y")


def _text(form: str, ports: tuple[str, ...] = ("p0", "p1")) -> str:
    return configuration_text(configuration(EVERYTHING), form, ports)


# ---- PowerShell ----


@pytest.fixture(scope="module")
def faults() -> Callable[[str], list[str]]:
    """What a parser of PowerShell cannot read in a script."""
    grammar = need.optional_module("tree_sitter_powershell")
    library = need.optional_module("tree_sitter")
    parser = library.Parser(library.Language(grammar.language()))

    def found(script: str) -> list[str]:
        return [
            f"line {node.start_point[0] + 1}: {node.text.decode()[:80]}"
            for node in _nodes(parser.parse(script.encode()).root_node)
            if node.type == "ERROR" or node.is_missing
        ]

    return found


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def _values() -> Iterator[tuple[str, Value]]:
    """Each value of a choice, and the ends of a range."""
    for name, setting in catalogue().items():
        match setting.kind:
            case OnOff():
                yield from ((name, setting.parse(text)) for text in ("on", "off"))
            case Choice(options=options):
                yield from ((name, setting.parse(option)) for option in options)
            case Number(least=least, most=most):
                yield from ((name, setting.parse(number)) for number in (least, most))


def test_a_script_that_is_wrong_is_noticed(faults: Callable[[str], list[str]]) -> None:
    for script in ("if ($x { Get-Date }", "$a = @{ b = }", "foreach ($x in { }", "'open", "function f( {}"):
        assert faults(script), script


def test_the_facts_script_is_powershell(faults: Callable[[str], list[str]]) -> None:
    assert faults(facts_script()) == []


def test_the_recommended_script_is_powershell(faults: Callable[[str], list[str]]) -> None:
    assert faults(_text("powershell", ADAPTERS)) == []


def test_the_scripts_of_every_value_are_powershell(faults: Callable[[str], list[str]]) -> None:
    written = 0
    for name, value in _values():
        if windows_refusals({name: value}):
            continue
        for write in (apply_script, undo_script):
            assert faults(write({name: value}, ADAPTERS)) == [], (name, value)
            written += 1
    assert written > 80


# ---- udev, multipath-tools, Ansible ----


def _in_namespace(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell text whose mounts no other process sees."""
    command = [*need.unshare("--mount"), "sh", "-euc", script, "sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def _udev(rules: Path) -> list[str]:
    """What udev says of a file of rules. The device does not matter: all rules are read before it is looked at."""
    script = """mount -t tmpfs none /run
mkdir -p /run/udev/rules.d
cp "$1" /run/udev/rules.d
"$2" test --action=add /sys/class/net/lo || true
"""
    done = _in_namespace(script, str(rules), need.optional_tool("udevadm"))
    lines = (done.stdout + done.stderr).splitlines()
    assert f"Reading rules file: /run/udev/rules.d/{rules.name}" in lines, lines
    return [line for line in lines if f"{rules.name}:" in line]


def test_udev_reads_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "60-san.rules"
    path.write_text(_text("udev"))
    assert _udev(path) == []
    path.write_text(_text("udev").replace("RUN+=", "RUN+", 1))
    assert len(_udev(path)) == 1


def _multipath(path: Path) -> tuple[str, str]:
    """The whole configuration as multipath-tools has it, and its complaints."""
    script = 'mount -t tmpfs none /etc; cp "$1" /etc/multipath.conf; "$2" -t'
    done = _in_namespace(script, str(path), need.optional_tool("multipath"))
    assert done.returncode == 0, done.stderr
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "multipath.conf" in line)


def test_multipath_tools_take_the_sections(tmp_path: Path) -> None:
    path = tmp_path / "multipath.conf"
    path.write_text(_text("multipath"))
    shown, complaints = _multipath(path)
    assert complaints == ""
    given = re.findall(r"^    (\S+ .+)$", path.read_text(), re.MULTILINE)
    assert len(given) >= 5
    ours = {line.replace('"', "").strip() for line in shown.splitlines()}
    assert {line.replace('"', "") for line in given} <= ours
    path.write_text("defaults {\n    nosuch 5\n}\n")
    assert "invalid keyword" in _multipath(path)[1]


@pytest.mark.long
def test_ansible_takes_the_tasks(tmp_path: Path) -> None:
    """As a trial run on this machine, which changes nothing. `ansible.posix` is a stand-in that does nothing."""
    run = need.optional_tool("ansible-playbook")
    modules = tmp_path / "collections/ansible_collections/ansible/posix/plugins/modules"
    modules.mkdir(parents=True)
    (modules / "sysctl.py").write_text(
        "from ansible.module_utils.basic import AnsibleModule\n"
        "names = ('name', 'value', 'sysctl_file', 'reload')\n"
        "module = AnsibleModule({name: {'required': True} for name in names}, supports_check_mode=True)\n"
        "module.exit_json(changed=True)\n"
    )
    (tmp_path / "tasks.yml").write_text(_text("ansible"))
    play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.import_tasks: tasks.yml\n"
    (tmp_path / "play.yml").write_text(play)
    call = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    places = {"ANSIBLE_HOME": "home", "ANSIBLE_LOCAL_TEMP": "home", "ANSIBLE_COLLECTIONS_PATH": "collections"}
    variables = {name: str(tmp_path / place) for name, place in places.items()}
    variables["ANSIBLE_PYTHON_INTERPRETER"] = sys.executable
    words = ["env", *(f"{name}={value}" for name, value in variables.items()), run, "play.yml", "-c", "local"]
    done = call([*words, "-i", "localhost,", "--check", "--diff"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed=0" in done.stdout
    assert '+ACTION=="add", SUBSYSTEM=="net", KERNEL=="p0|p1", RUN+=' in done.stdout
    assert "+    polling_interval 2" in done.stdout
