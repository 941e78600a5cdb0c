"""An array over the network: planted faults and their clean twins, what stays unknown, our own array, wrong logins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from linerate.advice import AuditResult
from linerate.advice.iscsi.sheet import KnownNetworks, array_sheet
from linerate.array import ArrayConfig, Chap, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.errors import UserError
from linerate.workload.url import parse_iscsi_portal
from pydantic import SecretStr

from tests.advice.outcomes import all_broken, broken, judged, of_rule
from tests.cli.conftest import linerate

IQN = "iqn.2026-11.lab.linerate:audited"
SECRET = "a secret of host1"
_NETWORKS = KnownNetworks(("127.0.0.0/8", "10.0.1.0/24", "10.0.2.0/24"))
_ANSWERS = ("ups=yes", "vendor=dell", "replication=quiet", "load_percent=50")
Target = dict[str, Any]


def _lun(number: int, **told: Any) -> dict[str, Any]:
    """A LUN as `linerate discover --json` has it, without a fault."""
    return {
        "lun": number,
        "capacity_bytes": 1 << 30,
        "block_bytes": 512,
        "vendor": "DELL",
        "product": "disk",
        "serial": f"s{number}",
        "unit_id": f"naa.600000000000000{number}",
        "physical_block_bytes": 4096,
        "lowest_aligned_block": 0,
        "optimal_io_bytes": 1 << 20,
        "write_cache": True,
        "thin": True,
        "used_percent": 40,
        "alua": False,
        "failure": None,
        "blame": None,
        **told,
    }


def _target(**told: Any) -> Target:
    return {
        "iqn": IQN,
        "portals": ["10.0.1.5:3260,1", "10.0.2.5:3260,2"],
        "luns": [_lun(0), _lun(1)],
        "failure": None,
        "blame": None,
        "wrong_credentials": False,
        **told,
    }


def _audited(*targets: Target, answers: tuple[str, ...] = _ANSWERS) -> AuditResult:
    return judged(array_sheet("10.0.1.5:3260", targets, _NETWORKS), answers=answers)


def _states(result: AuditResult, number: int, what: str = "") -> set[str]:
    found = [one for one in of_rule(result, number) if what in one.check.what and one.subject]
    return {one.state for one in found}


def _first_lun(**told: Any) -> Callable[[Target], None]:
    def plant(target: Target) -> None:
        target["luns"][0] |= told

    return plant


def _portals(*portals: str) -> Callable[[Target], None]:
    def plant(target: Target) -> None:
        target["portals"] = list(portals)

    return plant


_FAULTS: list[tuple[int, Callable[[Target], None], str, tuple[str, ...]]] = [
    (
        21,
        _portals("10.0.1.5:3260,1"),
        "portals of the array that lead to it: 1; wanted: at least 2",
        _ANSWERS,
    ),
    (27, _portals("10.0.1.5:3260,1", "10.0.1.6:3260,2"), "subnets of its ports: 1; wanted: 2", _ANSWERS),
    (27, lambda _: None, "subnets of its ports: 2; wanted: 1", ("vendor=equallogic", *_ANSWERS[2:])),
    (37, _first_lun(), "a UPS protects the array: no; wanted: yes", ("ups=no", *_ANSWERS[1:])),
    (
        38,
        _first_lun(optimal_io_bytes=16384),
        "optimal I/O size: 16384 bytes; wanted: at least 65536",
        _ANSWERS,
    ),
    (39, _first_lun(used_percent=80), "used: 80 %; wanted: below 80", _ANSWERS),
    (40, _first_lun(lowest_aligned_block=7), "misses a physical block: 3584; wanted: 0", _ANSWERS),
    (40, _first_lun(physical_block_bytes=512), "sizes of disk sectors in one array: 2", _ANSWERS),
    (40, _first_lun(block_bytes=4096), "sizes of disk sectors in one array: 2", _ANSWERS),
    (49, _first_lun(), "busy hours, of the measured maximum: 90 %", ("load_percent=90", *_ANSWERS[:3])),
]


def test_a_clean_array_breaks_no_rule() -> None:
    result = _audited(_target())
    assert all_broken(result) == []
    for number in (21, 27, 37, 38, 39, 49):
        assert _states(result, number) == {"kept"}, number
    assert _states(result, 40, "sizes of disk sectors") == {"kept"}


@pytest.mark.parametrize(("number", "plant", "found", "answers"), _FAULTS)
def test_a_planted_fault_is_found(
    number: int, plant: Callable[[Target], None], found: str, answers: tuple[str, ...]
) -> None:
    target = _target()
    plant(target)
    result = _audited(target, answers=answers)
    assert found in "\n".join(broken(result, number))
    assert {one.rule.number for one in result.outcomes if one.state == "broken"} == {number}


def test_a_write_cache_without_an_answer_is_unknown_and_none_needs_no_ups() -> None:
    assert _states(_audited(_target(), answers=()), 37) == {"unknown"}
    target = _target(luns=[_lun(0, write_cache=False)])
    assert _states(_audited(target, answers=()), 37) == {"not needed"}


def test_what_an_array_does_not_tell_is_unknown_with_its_reason() -> None:
    names = (
        "physical_block_bytes",
        "lowest_aligned_block",
        "optimal_io_bytes",
        "write_cache",
        "used_percent",
    )
    result = _audited(_target(luns=[_lun(0), _lun(1, **dict.fromkeys(names))]))
    assert all_broken(result) == []
    reasons = {
        37: "caching mode page",
        38: "does not say its optimal I/O size",
        39: "does not say how full",
        40: "does not tell the physical block size",
    }
    for number, reason in reasons.items():
        texts = [
            one.text
            for one in of_rule(result, number)
            if one.subject and one.subject.name.startswith("LUN 1")
        ]
        assert any(reason in text for text in texts), number
        assert "unknown" in _states(result, number)
    assert _states(result, 40, "sizes of disk sectors") == {"unknown"}


def test_a_lun_that_failed_and_a_target_that_is_shut_are_unknown() -> None:
    broken_lun = _lun(1, failure="READ CAPACITY (10): target: MEDIUM ERROR", blame="peer", vendor="")
    shut = _target(
        iqn="iqn.2026-11.lab.linerate:shut", luns=[], failure="authentication failure", blame="user"
    )
    result = _audited(_target(luns=[_lun(0), broken_lun]), shut)
    assert all_broken(result) == []
    texts = [one.text for one in of_rule(result, 38) if one.state == "unknown"]
    assert any("MEDIUM ERROR" in text for text in texts)
    assert _states(result, 40, "sizes of disk sectors") == {"unknown"}
    assert result.sheet.notes == ("iqn.2026-11.lab.linerate:shut was not looked at: authentication failure",)


def test_what_is_no_disk_is_left_out() -> None:
    controller = _lun(0, failure="not a disk but the array's controller", blame="user")
    result = _audited(_target(luns=[controller, _lun(1)]))
    assert [one.name for one in result.sheet.of("volume")] == [f"LUN 1 of {IQN}"]


def test_a_volume_that_two_targets_show_is_one_with_the_portals_of_both() -> None:
    one = _target(portals=["10.0.1.5:3260,1"], luns=[_lun(0)])
    two = _target(iqn="iqn.2026-11.lab.linerate:two", portals=["10.0.2.5:3260,2"], luns=[_lun(0)])
    result = _audited(one, two)
    assert len(list(result.sheet.of("volume"))) == 1
    assert _states(result, 21) == {"kept"}
    alone = {**two, "luns": [_lun(0, unit_id="naa.7")]}
    assert _states(_audited(one, alone), 21) == {"broken"}


@pytest.mark.parametrize(
    ("portals", "known", "expected"),
    [
        (["10.0.1.5:3260,1", "10.0.9.5:3260,2"], _NETWORKS, 2),
        (["10.0.1.5:3260,1", "10.0.1.5:3261,1"], _NETWORKS, 1),
        (["10.0.8.5:3260,1"], _NETWORKS, 1),
        (["10.0.1.5:3260,1", "[fd00::5]:3260,1"], _NETWORKS, 1),
        (["10.0.8.5:3260,1", "10.0.9.5:3260,2"], _NETWORKS, "this host has no port there"),
        (
            ["10.0.1.5:3260,1", "10.0.2.5:3260,2"],
            KnownNetworks((), "ip is not installed"),
            "ip is not installed",
        ),
        (["10.0.1.5:3260,1", "array.lab:3260,2"], _NETWORKS, "array.lab is not known"),
        (["[fd00::5]:3260,1", "[fd00::6]:3260,1"], _NETWORKS, "fd00::5 is not known"),
    ],
)
def test_subnets_are_counted_only_where_their_prefix_is_known(
    portals: list[str], known: KnownNetworks, expected: int | str
) -> None:
    (array,) = array_sheet("10.0.1.5:3260", [_target(portals=portals)], known).of("array")
    if isinstance(expected, int):
        assert array.facts["subnets"] == expected
    else:
        assert expected in array.unknown["subnets"]


def test_an_array_that_redirects_is_not_said_to_have_one_portal() -> None:
    luns = [_lun(0, vendor="EQLOGIC")]
    result = _audited(_target(portals=["10.0.1.5:3260,1"], luns=luns), answers=("ups=yes", *_ANSWERS[2:]))
    assert all_broken(result) == []
    assert _states(result, 21) == {"unknown"}
    assert _states(result, 27) == {"kept"}


@contextmanager
def _served(*targets: TargetConfig, portals: tuple[str, ...] = ("127.0.0.1:0",)) -> Iterator[str]:
    with EmbeddedArray(ArrayConfig(portals=portals, targets=targets)) as array:
        yield "{}:{}".format(*array.portals[0])


def _volume(lun: int, **more: Any) -> VolumeConfig:
    return VolumeConfig.model_validate({"lun": lun, "name": f"v{lun}", "size_bytes": 16 << 20, **more})


def _advise(place: str, *answers: str, **env: str) -> tuple[int, dict[str, Any]]:
    """Exit code and outcomes of `linerate advise iscsi://PLACE`."""
    given = [word for one in answers for word in ("--answer", one)]
    done = linerate("advise", f"iscsi://{place}", "--json", *given, **env)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _found(report: dict[str, Any], number: int, state: str) -> list[str]:
    return [one["text"] for one in report["outcomes"] if one["rule"] == number and one["state"] == state]


def test_our_array_with_faults_and_without() -> None:
    faulty = TargetConfig(
        name=IQN, volumes=(_volume(0, write_cache=True), _volume(1, physical_sector_bytes=4096), _volume(2))
    )
    with _served(faulty) as place:
        code, report = _advise(place, "ups=no", "vendor=dell")
        assert code == 1
        assert _found(report, 37, "broken") == ["a UPS protects the array: no; wanted: yes"]
        assert _found(report, 40, "broken") == ["sizes of disk sectors in one array: 2; wanted: at most 1"]
        assert len(_found(report, 21, "broken")) == 3
        assert len(_found(report, 38, "kept")) == 3
    clean = TargetConfig(name=IQN, volumes=(_volume(0), _volume(1)))
    with _served(clean, portals=("127.0.0.1:0", "127.0.0.2:0")) as place:
        code, report = _advise(place, "ups=yes", "vendor=equallogic")
        assert code == 0
        assert report["rules"]["broken"] == 0
        for number in (21, 27, 38):
            assert _found(report, number, "kept"), number
        code, report = _advise(place, "vendor=dell")
        assert code == 1
        assert _found(report, 27, "broken") == [
            "subnets of its ports: 1; wanted: 2, as the other end or the system has it"
        ]


def test_a_target_without_luns_is_told() -> None:
    empty = TargetConfig(name=f"{IQN}.empty")
    with _served(empty, TargetConfig(name=IQN, volumes=(_volume(0),))) as place:
        _, report = _advise(place)
        assert report["notes"] == [f"{IQN}.empty shows no LUN to this host"]
        code, report = _advise(f"{place}/{IQN}.empty")
        assert code == 0
        assert "there is no volume" in _found(report, 38, "not looked at")
        _, report = _advise(f"{place}/{IQN}")
        assert report["notes"] == []


def test_the_secret_lets_in_and_is_shown_nowhere() -> None:
    chap = Chap(user="host1", secret=SecretStr(SECRET))
    with _served(TargetConfig(name=IQN, chap=chap, volumes=(_volume(0),))) as place:
        shown = ""
        for words in ((), ("--json",), ("--show-facts",)):
            done = linerate("advise", f"iscsi://host1%{SECRET}@{place}/{IQN}", *words)
            assert f"LUN 0 of {IQN}" in done.stdout, done.stderr
            shown += done.stdout + done.stderr
        env = {"LIBISCSI_CHAP_USERNAME": "host1", "LIBISCSI_CHAP_PASSWORD": SECRET}
        done = linerate("advise", f"iscsi://{place}", **env)
        assert f"LUN 0 of {IQN}" in done.stdout, done.stderr
        assert SECRET not in shown + done.stdout + done.stderr
        for login in ("", "host1%a wrong secret!@", f"nobody%{SECRET}@"):
            empty = {"LIBISCSI_CHAP_USERNAME": "", "LIBISCSI_CHAP_PASSWORD": ""}
            done = linerate("advise", f"iscsi://{login}{place}", **empty)
            assert done.returncode == 2
            assert "authentication failure" in done.stderr
            assert "LIBISCSI_CHAP_USERNAME" in done.stderr
            assert not done.stdout
            assert SECRET not in done.stderr
            assert "wrong secret" not in done.stderr


def test_a_portal_that_is_not_there_is_said_with_its_address() -> None:
    done = linerate("advise", "iscsi://joe%a secret of joe@127.0.0.1:1")
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
    assert "secret of joe" not in done.stderr
    done = linerate("advise", "iscsi://no-such-array.invalid")
    assert done.returncode in (1, 2)
    assert "no-such-array.invalid" in done.stderr


def test_a_target_that_is_not_shown_is_the_users_mistake() -> None:
    with _served(TargetConfig(name=IQN, volumes=(_volume(0),))) as place:
        done = linerate("advise", f"iscsi://{place}/iqn.2026-11.lab.linerate:other")
    assert done.returncode == 2
    assert "does not show this target" in done.stderr
    assert "linerate discover" in done.stderr


def test_facts_of_an_array_are_judged_alike_elsewhere(tmp_path: Any) -> None:
    with _served(TargetConfig(name=IQN, volumes=(_volume(0),))) as place:
        (tmp_path / "facts.json").write_text(linerate("advise", f"iscsi://{place}", "--show-facts").stdout)
        _, here = _advise(place)
    done = linerate("advise", "--facts", tmp_path / "facts.json", "--json")
    assert json.loads(done.stdout)["outcomes"] == here["outcomes"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iscsi://joe%hidden@h/iqn.2026-11.lab:x/0", "a LUN cannot be asked for alone"),
        ("iscsi://joe%hidden@h?header_digest=none", "nothing is known after ?"),
        ("iscsi://joe%hidden@h:0", "is not a port"),
        ("iscsi://joe%hidden@", "is not a host name"),
        ("iscsi://joe%hidden@h@i", "more than one @"),
        ("iscsi://joe@h", "user and secret go together"),
        ("iscsi://joe%hidden@h/disk", "is no iSCSI name"),
    ],
)
def test_a_url_that_names_no_portal_is_refused_without_its_secret(text: str, message: str) -> None:
    with pytest.raises(UserError, match="iscsi://") as caught:
        parse_iscsi_portal(text, {})
    assert message in caught.value.message.replace("''", "")
    assert "hidden" not in f"{caught.value.message} {caught.value.hint}"


def test_the_url_of_a_portal_has_its_parts() -> None:
    portal = parse_iscsi_portal("iscsi://joe%a/b@[::1]/IQN.2026-11.lab:x", {})
    assert (portal.place, portal.target) == ("[::1]:3260", "iqn.2026-11.lab:x")
    assert portal.shown == "iscsi://[::1]:3260/iqn.2026-11.lab:x"
    assert portal.url == "iscsi://joe%a/b@[::1]:3260/iqn.2026-11.lab:x"
    assert "a/b" not in repr(portal)
