"""Array files: the example works, sizes and secrets come from where they may, mistakes name file, line and key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, Portal, example_names, example_text, load_array_file, parse_array_text
from linerate.errors import UserError

TARGET = '[[targets]]\nname = "iqn.2026-11.lab.linerate:t"\n'
VOLUME = '[[targets.volumes]]\nlun = 0\nname = "v"\n'


def test_example_is_a_working_array() -> None:
    config = parse_array_text(example_text())
    assert config.portals == ("127.0.0.1:3260",)
    assert [volume.size_bytes for volume in config.targets[0].volumes] == [1 << 30]


def test_example_shows_every_key_with_its_default() -> None:
    """Uncommented, the defaults of the example are the defaults of the model."""
    text = example_text()
    for table in (ArrayConfig, type(ArrayConfig.model_fields["limits"].default)):
        for key in table.model_fields:
            assert f"{key} = " in text or f"[{key}]" in text or f"[[{key}]]" in text, key


PORTALS = """
portals = ["10.1.0.10:3260", { address = "10.2.0.10:3260", group = 2 }, { interface = "p1", group = 3 }]
[[portal_groups]]
tag = 2
alua = "standby"
"""


def test_portals_have_groups_and_groups_have_states() -> None:
    text = f"{PORTALS}{TARGET}{VOLUME}size = '1m'\nalua = {{ 3 = 'unavailable' }}\n"
    config = parse_array_text(text)
    first, second, third = config.portals
    assert first == "10.1.0.10:3260"
    assert isinstance(second, Portal)
    assert isinstance(third, Portal)
    assert (second.group, third.interface, third.port) == (2, "p1", 3260)
    seam = json.loads(config.seam_json())
    assert seam["portals"][0] == "10.1.0.10:3260"
    assert seam["portal_groups"] == [{"tag": 2, "alua": "standby"}]
    assert seam["targets"][0]["volumes"][0]["alua"] == {"3": "unavailable"}


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [("512", 512), ("1k", 1024), ("1.5m", 3 << 19), ("2G", 2 << 30), ("1 TiB", 1 << 40)],
)
def test_sizes_are_text(size: str, size_bytes: int) -> None:
    config = parse_array_text(f'{TARGET}{VOLUME}size = "{size}"\n')
    assert config.targets[0].volumes[0].size_bytes == size_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TARGET}{VOLUME}size = 'big'\n", "lab.toml:6: targets[0].volumes[0].size: 'big' is not a size"),
        (
            f"{TARGET}{VOLUME}size = '1g'\ncolour = 1\n",
            "lab.toml:7: targets[0].volumes[0].colour: no such key",
        ),
        (f"{TARGET}{VOLUME}", 'lab.toml:3: targets[0].volumes[0]: a volume of kind "memory" needs a size'),
        (f"{TARGET}{VOLUME}size = '1000'\n", "no multiple of the sector size 512"),
        (
            f"{TARGET}{VOLUME}size = '1g'\n{VOLUME}size = '1g'\n",
            "lab.toml:8: targets[0].volumes[1].lun: LUN used twice: 0",
        ),
        (
            f"{TARGET}{VOLUME}size = '1g'\n{VOLUME.replace('0', '1')}size = '1g'\n",
            'lab.toml:9: targets[0].volumes[1].name: the target has a volume "v" already',
        ),
        (f"{TARGET}{TARGET}", "lab.toml:4: targets[1].name: target named twice"),
        (f"{TARGET}{TARGET.replace(':t', ':T')}", "lab.toml:4: targets[1].name: target named twice"),
        (f"{TARGET}[target.chap]\nuser = 'u'\n", "lab.toml:3: target: no such key"),
        (
            f"portals = ['10.1.0.1']\n{TARGET}",
            'lab.toml:1: portals[0]: "10.1.0.1" is not an address with a port',
        ),
        (
            f"portals = ['san1:3260']\n{TARGET}",
            'lab.toml:1: portals[0]: "san1:3260" is not an address with a port',
        ),
        (f"portals = ['[::1]:65536']\n{TARGET}", "lab.toml:1: portals[0]: "),
        (
            f"portals = [{{ address = '::1:3260' }}]\n{TARGET}",
            'lab.toml:1: portals[0].address: "::1:3260" is not an address with a port',
        ),
        (
            f"portals = ['10.1.0.1:3260', {{ address = '10.1.0.1:3260', group = 2 }}]\n{TARGET}",
            "lab.toml:1: portals[1]: the portal 10.1.0.1:3260 is listed twice",
        ),
        (
            f"portals = [\n  '10.1.0.1:3260', # ']'\n  {{ address = '10.1.0.1' }},\n]\n{TARGET}",
            'lab.toml:3: portals[1].address: "10.1.0.1" is not an address with a port',
        ),
        (f"limits.sessions = 0\n{TARGET}", "lab.toml:1: limits.sessions: must be more than 0"),
        (TARGET.replace(":t", ":t\\u00fc"), "lab.toml:2: targets[0].name: an iSCSI name is iqn."),
        (TARGET.replace("2026-11", "2026-13"), "lab.toml:2: targets[0].name: an iSCSI name is iqn."),
        (
            f"portals = [{{ address = '10.1.0.1:3260', colour = 1 }}]\n{TARGET}",
            "lab.toml:1: portals[0].colour: no such key",
        ),
        (f"portals = [{{ group = 2 }}]\n{TARGET}", "lab.toml:1: portals[0]: a portal needs either"),
        (f"portals = [7]\n{TARGET}", "lab.toml:1: portals[0]"),
        (
            f"{PORTALS}{TARGET}{VOLUME}size = '1m'\nalua = {{ 4 = 'standby' }}\n",
            "lab.toml:12: targets[0].volumes[0].alua: volume v: no portal is in portal group 4",
        ),
        (
            f"{TARGET}{VOLUME}size = '1m'\nalua = {{ 1 = 'offline' }}\n",
            "lab.toml:7: targets[0].volumes[0].alua",
        ),
        ("name = 'x'\n", "lab.toml:1: targets: must be given"),
        ("name = \n", "lab.toml: Invalid value (at line 1, column 8)"),
        (
            f"{TARGET}[targets.chap]\nuser = 'u'\nsecret_env = 'NO_SUCH_VARIABLE'\n",
            "NO_SUCH_VARIABLE is not set",
        ),
        (
            f"{TARGET}[targets.chap]\nuser = 'u'\nsecret_file = 'none'\n",
            "lab.toml:5: targets[0].chap.secret_file",
        ),
        (f"{TARGET}[targets.chap]\nuser = 'u'\nsecret = 'a'\nsecret_env = 'B'\n", "keep one of them"),
        (f"[limits]\nsessions = 0\n{TARGET}", "lab.toml:2: limits.sessions: must be more than 0"),
    ],
)
def test_mistakes_name_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_array_text(text, name="lab.toml")
    assert message in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


def test_secrets_come_from_files_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_SECRET", "the array's own one")
    (tmp_path / "host1.secret").write_text("a secret of host1\n", "ascii")
    (tmp_path / "host1.secret").chmod(0o600)
    chap = '[targets.chap]\nuser = "host1"\nsecret_file = "host1.secret"\n'
    chap += 'mutual_user = "lab"\nmutual_secret_env = "LAB_SECRET"\n'
    path = tmp_path / "lab.toml"
    path.write_text(f'{TARGET}{chap}{VOLUME}size = "1m"\n', "ascii")
    config = load_array_file(path)
    sent = json.loads(config.seam_json())["targets"][0]["chap"]
    assert (sent["secret"], sent["mutual_secret"]) == ("a secret of host1", "the array's own one")
    for shown in (repr(config), config.model_dump_json()):
        assert "a secret of host1" not in shown
        assert "the array's own one" not in shown


def test_paths_count_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(f'{TARGET}{VOLUME}kind = "file"\npath = "v.img"\nsize = "1m"\n', "ascii")
    assert load_array_file(path).targets[0].volumes[0].path == str(tmp_path / "v.img")


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_array_file(tmp_path / "none.toml")


@pytest.mark.parametrize("name", example_names())
def test_examples_are_arrays(name: str, tmp_path: Path) -> None:
    config = parse_array_text(example_text(name), name=name, folder=tmp_path)
    assert config.targets
    assert all(place.startswith("127.0.0.1:") for place in config.portals if isinstance(place, str))


def test_there_is_no_such_example() -> None:
    with pytest.raises(UserError, match="no example 'nonesuch'") as caught:
        example_text("nonesuch")
    assert "raid6" in caught.value.hint
