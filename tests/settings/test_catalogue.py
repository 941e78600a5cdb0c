"""The catalogue of settings: complete, consistent, and in agreement with the models that it writes."""

from __future__ import annotations

from typing import get_args

import pytest
from linerate.backup import BackupJobSpec
from linerate.errors import UserError
from linerate.report.study.recommend import default_of, title_of, written
from linerate.san import Link, Nic, Storage, Switch, load_topology
from linerate.setting import Applier, Choice, Number, OnOff
from linerate.settings import (
    USER_FABRIC,
    SanSetting,
    applied_by,
    by_applier,
    catalogue,
    find,
    model_field,
    smb,
)
from linerate.settings.san_setting import AS_BUILT, AS_LOADED
from linerate.study.laboratory.settings import beyond_kernel_settings, check_setting
from linerate.workload import RunSpec, SmbSpec, VolumeSpec
from linerate.workload.spec import MultipathSpec, PathSpec
from pydantic import ValidationError

MODELS = {
    "link": Link,
    "nic": Nic,
    "switch": Switch,
    "storage": Storage,
    "run": RunSpec,
    "volume": VolumeSpec,
    "smb": SmbSpec,
    "backup": BackupJobSpec,
    "multipath": MultipathSpec,
    "path": PathSpec,
}
EXAMPLES = {
    "link.rate": "2.5gbit",
    "link.delay": "50us",
    "link.loss": "0.1%",
    "switch.buffer": "64k",
    "switch.schedule": "ets 3:70 0:30",
    "array.chunk": "64k",
    "array.disk_size": "600g",
    "multipath.paths": "h1.p0 -> a1.p0, h1.p1 -> a1.p1 standby",
    "multipath.failback": "5s",
    "multipath.path_timeout": "0.5s",
    "multipath.checker_interval": "2s",
    "multipath.no_path_queue": "forever",
    "faults": "cable h1.p0 at 3s for 4s; switch sw1 at 9s",
}
OF_SAN = [setting for setting in catalogue().values() if isinstance(setting, SanSetting)]


@pytest.mark.parametrize("setting", OF_SAN, ids=lambda setting: setting.name)
def test_an_entry_is_complete_and_its_field_exists(setting: SanSetting) -> None:
    assert setting.doc.endswith(".")
    assert len(setting.doc) > 30
    assert setting.title
    assert setting.default
    assert setting.range_text
    field = model_field(setting.name)
    assert field is None or field.name in MODELS[field.part].model_fields


def test_settings_of_smb_sessions_accept_what_the_sessions_accept() -> None:
    for setting in smb.SETTINGS:
        if setting.name == smb.SMB_TRANSPORT:  # no session has it
            continue
        assert setting.field is not None
        name = setting.field.name
        match setting.kind:
            case Choice(options=options):
                values: tuple[str | int | bool, ...] = options
            case Number(least=least, most=most):
                values = (least, most)
                for beyond in (least - 1, most + 1):
                    with pytest.raises(ValidationError):
                        SmbSpec.model_validate({name: beyond})
            case _:
                values = (True, False)
        for value in values:
            assert getattr(SmbSpec.model_validate({name: value}), name) == value
            check_setting(setting.name, value)
        with pytest.raises(ValidationError):
            SmbSpec.model_validate({name: "perhaps"})


@pytest.mark.parametrize(("name", "text"), EXAMPLES.items())
def test_a_value_with_a_notation_of_its_own_survives_being_read_and_written(name: str, text: str) -> None:
    setting = find(name)
    assert setting.text(setting.parse(text)) == text
    check_setting(name, text)


def test_every_applier_has_settings_and_every_setting_an_applier() -> None:
    assert set(by_applier()) == set(get_args(Applier))
    assert {applied_by(name) for name in catalogue()} == set(get_args(Applier))


def test_defaults_that_are_values_are_those_of_the_models() -> None:
    for setting in OF_SAN:
        field = model_field(setting.name)
        if setting.default in (AS_BUILT, AS_LOADED, "not used", "none") or field is None:
            continue
        if field.part == "smb":  # the client's own default, which is not asked for
            continue
        assert (
            field.convert(setting.meaning(setting.default))
            == MODELS[field.part].model_fields[field.name].default
        )


def test_the_user_fabric_is_named_where_it_is_needed() -> None:
    """A value other than the topology's own makes the kernel fabric lack something."""
    topology = load_topology("base-san")
    asked = {}
    for name, setting in catalogue().items():
        if applied_by(name) == "fabric" or name == "lso":
            value = setting.kind.options[-1] if isinstance(setting.kind, Choice) else EXAMPLES.get(name, 300)
            asked[name] = "on" if isinstance(setting.kind, OnOff) else value
    asked |= {"mtu": 9000, "flow_control": "on"}
    assert beyond_kernel_settings(topology, asked) == USER_FABRIC


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("link.dealy", "link.delay"), ("policy", "multipath.policy"), ("Jumbo frames", "mtu"), ("*RSS", "rss")],
)
def test_an_unknown_name_is_answered_with_similar_ones(wrong: str, right: str) -> None:
    with pytest.raises(UserError, match="there is no setting") as caught:
        find(wrong)
    assert right in caught.value.hint


def test_reports_name_default_and_unit_of_every_setting() -> None:
    assert default_of("multipath.policy") == "round_robin"
    assert default_of("link.delay") == AS_BUILT
    assert title_of("load.rate") == "I/O rate (load.rate)"
    assert written("load.rate", 500) == "500 I/Os per second"
    assert written("array.chunk", 65536) == "64k"
