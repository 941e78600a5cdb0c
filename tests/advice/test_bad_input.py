"""Files of others: cut off, wrong, hostile or huge. They give a user error, or facts; never a crash or a hang."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from linerate.advice import advice_lines
from linerate.advice.documents.facts_file import read_facts
from linerate.advice.documents.image import read_image
from linerate.advice.linux.read import read_linux
from linerate.advice.switch.read import read_switch
from linerate.errors import LinerateError, UserError

from tests.advice.linux_host import LinuxHost
from tests.advice.outcomes import judged
from tests.advice.windows_host import windows_facts

CONFIGS = Path(__file__).with_name("configs")
_SECONDS_MAX = 20.0
_SEED = 20
_STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "\x1b[2J",
    "nan",
    [],
    {},
    [[]],
    [{}],
    {"a": [None]},
    "9" * 400,
)


def _spoiled(value: Any, chance: random.Random) -> Any:
    """A copy in which some parts are something else."""
    if chance.random() < 0.04:
        return chance.choice(_STRANGE)
    if isinstance(value, dict):
        return {key: _spoiled(one, chance) for key, one in value.items()}
    if isinstance(value, list):
        return [_spoiled(one, chance) for one in value]
    return value


@pytest.mark.parametrize("seed", range(_SEED, _SEED + 40))
def test_spoiled_facts_of_windows_are_judged_or_refused(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    spoiled = _spoiled(windows_facts(), random.Random(seed))
    path.write_text(json.dumps(spoiled))
    try:
        result = judged(read_facts(path))
    except UserError:
        assert not isinstance(spoiled, dict) or spoiled.get("schema") != "linerate.windows-facts/1"
    else:
        assert all(line.isprintable() for _, line in advice_lines(result))


@pytest.mark.parametrize("seed", range(_SEED, _SEED + 40))
def test_spoiled_answers_of_commands_are_judged(seed: int, tmp_path: Path) -> None:
    host, chance = LinuxHost(), random.Random(seed)
    host.commands = {words: _spoiled(answer, chance) for words, answer in host.commands.items()}
    host.files = {
        path: "\x00\x1b[31m" + "9" * 50 if chance.random() < 0.1 else text
        for path, text in host.files.items()
    }
    result = judged(read_linux(host.source(tmp_path)))
    assert all(line.isprintable() for _, line in advice_lines(result))


@pytest.mark.parametrize("kind", ["dell", "ios", "nxos", "eos"])
@pytest.mark.parametrize("seed", range(_SEED, _SEED + 10))
def test_a_configuration_that_is_cut_and_shuffled_is_read_or_refused(
    kind: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    lines = (CONFIGS / f"{kind}.txt").read_text().splitlines()
    chance.shuffle(lines)
    path = tmp_path / "switch.txt"
    path.write_text("\n".join(lines[: chance.randrange(len(lines))]))
    with suppress(UserError):
        result = judged(read_switch(f"{kind}:{path}"))
        assert {one.system for one in result.sheet.subjects} == {kind}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": "linerate.facts/1"}',
        b'{"schema": "linerate.facts/1", "subjects": [{"kind": "moon", "name": "x", "system": "linux"}]}',
        b'{"schema": "linerate.facts/1", "subjects": [{"kind": "port", "name": 1, "system": "linux"}]}',
        b'{"schema": "other"}',
        b"[" * 100_000,
        b'{"schema": ' + b"9" * 10_000 + b"}",
        b"\xff\xfe{",
        b"\xff\xfe\xd8\x00",
        b"\x80\x81",
    ],
    ids=lambda data: repr(data[:30]),
)
def test_a_file_that_holds_no_facts_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(data)
    with pytest.raises(UserError) as error:
        read_facts(path)
    assert "--show-facts" in error.value.hint


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 100,
        b"\xff" * 100_000,
        b"interface " * 100_000,
        b"!\n" * 100_000,
        b" " * 8_000_000,
        b"x" * 9_000_000,
    ],
)
def test_a_file_that_is_no_configuration_is_refused_at_once(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "switch.txt"
    path.write_bytes(data)
    start = time.monotonic()
    with pytest.raises(UserError) as error:
        read_switch(str(path))
    assert error.value.hint
    assert time.monotonic() - start < _SECONDS_MAX


@pytest.mark.long
def test_a_configuration_of_many_ports_is_read_in_time(tmp_path: Path) -> None:
    path = tmp_path / "switch.txt"
    ports = "".join(f"interface Ethernet1/{number}\n  mtu 9216\n" for number in range(100_000))
    path.write_text("feature lacp\n" + ports + "  switchport trunk allowed vlan " + "1," * 200_000 + "\n")
    start = time.monotonic()
    result = judged(read_switch(str(path), vlan=None))
    assert time.monotonic() - start < _SECONDS_MAX
    assert 1000 <= len(list(result.sheet.of("switch_port"))) <= 1024


@pytest.mark.parametrize("seed", range(_SEED, _SEED + 20))
def test_images_of_random_bytes_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    path = tmp_path / "image"
    image = bytearray(b"vhdxfile" + bytes((192 << 10) - 8) + b"regi" + chance.randbytes(70_000))
    if seed % 2:
        image[(192 << 10) + 16 : (192 << 10) + 32] = bytes.fromhex("06a27c8b90479a4bb8fe575f050f886e")
    path.write_bytes(image)
    (found,) = read_image(path).subjects
    assert found.facts["format"] == "vhdx"


@pytest.mark.parametrize("reader", [read_facts, read_image, lambda path: read_switch(str(path))])
def test_a_folder_is_refused(reader: Any, tmp_path: Path) -> None:
    with pytest.raises(LinerateError):
        reader(tmp_path)
