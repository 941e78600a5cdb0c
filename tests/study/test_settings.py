"""Every setting of a study has an applier, and changes what its name says."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.host import catalogue
from linerate.san import Storage, Topology, load_topology
from linerate.settings import applied_by, is_of_topology
from linerate.study import Study
from linerate.study.laboratory import shares
from linerate.study.laboratory.settings import (
    beyond_kernel_settings,
    changed_topology,
    check_on,
    check_setting,
    loaded,
    topology_values,
)
from linerate.study.laboratory.shares import NO_LUN, NO_SHARE, unfit_for
from linerate.workload import RunSpec, SmbSpec, StreamSpec, VolumeSpec
from linerate.workload.spec import OpenArrival

CHECKED = {"toe": "on", "isoe": "on", "rss_profile": "numa", "mtu": 9000, "delayed_ack": "off"}


@pytest.mark.parametrize(("name", "value"), CHECKED.items())
def test_settings_of_the_catalogue_are_known(name: str, value: str | int) -> None:
    check_setting(name, value)
    assert applied_by(name) in ("host", "fabric")


def test_every_host_setting_has_an_applier() -> None:
    appliers = {name: applied_by(name) for name in catalogue()}
    assert {name for name, applier in appliers.items() if applier == "fabric"} == {
        "mtu", "flow_control", "interrupt_moderation_us", "rx_ring_frames", "tx_ring_frames", "rsc",
    }  # fmt: skip
    assert appliers["nagle"] == appliers["header_digest"] == appliers["outstanding"] == "load"
    assert appliers["lso"] == appliers["delayed_ack"] == appliers["congestion_control"] == "host"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mtu", 50, "mtu: 50"),
        ("rx_ring_frames", "many", "rx_ring_frames"),
        ("interrupt_moderation_us", "adaptive", "write a time"),
        ("switch.schedule", "ets", "switch.schedule"),
        ("switch.schedule", "wrr 1:2", "switch.schedule"),
        ("switch.flow_control", "on", "none, pause, pfc"),
        ("link.delay", "far", "link.delay"),
        ("link.colour", "red", "there is no setting"),
        ("load.session", "many", "load.session"),
        ("load.volumes", 0, "load.volumes"),
        ("load.rate", "slow", "100000000 I/Os per second"),
        ("array.replication", "sometimes", "write on or off"),
        ("load.lan", "much", "write on or off"),
        ("array.disk_size", "large", 'for example "600g"'),
        ("array.disks", "many", "1 to 1024 disks"),
        ("array.raid_level", "raid3", "raid0, raid1"),
        ("array.disk_model", "floppy", "sas_10k_2_5"),
        ("array.sector_bytes", 520, "512, 4096"),
        ("array.chunk", "large", 'for example "64k"'),
        ("jumbo", 9000, "there is no setting"),
    ],
)
def test_what_a_setting_cannot_be_is_told(name: str, value: str | int, message: str) -> None:
    with pytest.raises(UserError) as caught:
        check_setting(name, value)
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_network_settings_change_the_topology_everywhere_they_should() -> None:
    topology = load_topology("base-san")
    changed = changed_topology(
        topology,
        {
            "mtu": 9000,
            "rx_ring_frames": "max",
            "flow_control": "on",
            "switch.schedule": "ets 3:70 0:30",
            "link.delay": "50us",
            "nagle": "on",
        },
    )
    assert {link.mtu for link in changed.links.values()} == {9000}
    assert {link.delay_us for link in changed.links.values()} == {50.0}
    assert {port.nic.rx_ring_frames for port in changed.hosts[0].ports} == {4096}
    assert changed.arrays[0].ports[0].nic == topology.arrays[0].ports[0].nic
    assert {switch.flow_control for switch in changed.switches} == {"pause"}
    assert changed.switches[0].schedule.shares == {3: 70.0, 0: 30.0}
    assert changed_topology(topology, {}) == topology


STORAGE = Storage(disks=14, raid_level="raid50", spares=2)


def with_disks() -> Topology:
    topology = load_topology("base-san")
    (array,) = topology.arrays
    volumes = (array.volumes[0],)
    return topology.model_copy(
        update={"arrays": (array.model_copy(update={"storage": STORAGE, "volumes": volumes}),)}
    )


def test_settings_of_the_array_change_its_disks() -> None:
    asked = {
        "array.raid_level": "raid6", "array.spares": 1, "array.chunk": "256k", "array.disk_model": "nvme_ssd",
        "array.sector_bytes": 4096, "array.initialise": "background", "array.disks": 13, "array.disk_size": "6g",
    }  # fmt: skip
    for name, value in asked.items():
        check_setting(name, value)
        assert applied_by(name) == "array"
        assert is_of_topology(name)
    storage = changed_topology(with_disks(), asked).arrays[0].storage
    assert storage == Storage(
        disks=13, raid_level="raid6", spares=1, chunk_bytes=256 << 10, model="nvme_ssd", sector_bytes=4096,
        initialise="background", disk_bytes=6 << 30,
    )  # fmt: skip
    assert not beyond_kernel_settings(with_disks(), asked)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"array.raid_level": "raid10", "array.spares": 1}, "even number; these are 13"),
        ({"array.disks": 4, "array.spares": 0}, "do not divide into 2 groups of at least 3"),
    ],
)
def test_disks_that_form_no_such_sets_are_refused(settings: dict[str, str | int], message: str) -> None:
    with pytest.raises(UserError, match=r"the disks of a1") as caught:
        check_on(with_disks(), settings, 10.0)
    assert message in caught.value.message


def test_replication_needs_two_pools() -> None:
    check_on(load_topology("two-pools"), {"array.replication": "on"}, 10.0)
    with pytest.raises(UserError, match=r"no two arrays with pools"):
        check_on(with_disks(), {"array.replication": "on"}, 10.0)
    check_on(with_disks(), {"array.replication": "off"}, 10.0)


def test_an_array_in_memory_has_no_disks_to_set() -> None:
    with pytest.raises(UserError, match=r"no array of base-san has disks"):
        check_on(load_topology("base-san"), {"array.raid_level": "raid5"}, 10.0)


def test_only_what_the_kernel_lacks_asks_for_the_user_fabric() -> None:
    topology = load_topology("base-san")
    asked = {
        "mtu": 9000, "flow_control": "off", "switch.buffer": "1m", "delayed_ack": "off",
        "rsc": "on", "link.loss": "1%", "tx_ring_frames": "max", "switch.flow_control": "pfc",
    }  # fmt: skip
    wanted = {"rsc", "link.loss", "tx_ring_frames", "switch.flow_control"}
    assert beyond_kernel_settings(topology, asked) == wanted


def test_values_are_shown_as_the_network_has_them() -> None:
    asked = {"mtu": "9000", "rx_ring_frames": "max", "flow_control": "on", "link.delay": "1ms", "lso": "on"}
    assert topology_values(asked) == {
        "mtu": 9000, "rx_ring_frames": 4096, "flow_control": "pause", "link.delay": "1ms",
    }  # fmt: skip


def test_session_and_load_settings_reach_the_run(study: Study) -> None:
    spec = study.workload("seqread").spec
    assert spec is not None
    asked = {
        "nagle": "on",
        "header_digest": "crc32c",
        "outstanding": 3,
        "load.session": "shared",
        "mtu": 9000,
    }
    volumes = loaded(spec, asked).volumes
    assert {(v.outstanding, v.session, v.iscsi.nodelay, v.iscsi.header_digest) for v in volumes} == {
        (3, "shared", False, "crc32c")
    }
    fewer = loaded(spec, {"load.volumes": 2, "load.workers": 1})
    assert ([v.name for v in fewer.volumes], fewer.workers) == (["sd1", "sd2"], 1)
    assert {stream.volumes for stream in fewer.streams} == {("sd1", "sd2")}


def test_a_rate_makes_a_load_one_that_is_paced(study: Study) -> None:
    spec = study.workload("seqread").spec
    assert spec is not None
    arrival = loaded(spec, {"load.rate": 20}).arrival
    assert isinstance(arrival, OpenArrival)
    assert arrival.rate_iops == 20
    assert loaded(spec, {}).arrival == spec.arrival


def test_settings_of_shares_change_the_sessions_of_every_volume_and_nothing_else() -> None:
    spec = RunSpec(
        name="r",
        volumes=(VolumeSpec(name="v1", url="smb://nas:445/share/f", smb=SmbSpec(command_timeout_s=5.0)),),
        streams=(StreamSpec(name="s", volumes=("v1",)),),
    )
    changed = loaded(spec, {"smb.signing": True, "smb.encryption": "aes-128-gcm", "smb.max_io": "64k"})
    wanted = SmbSpec(signing="on", encryption="aes-128-gcm", max_io=65_536, command_timeout_s=5.0)
    assert changed.volumes[0].smb == wanted
    assert loaded(spec, {}) == spec
    assert changed.volumes[0].model_copy(update={"smb": spec.volumes[0].smb}) == spec.volumes[0]


def test_settings_that_volumes_cannot_have_are_refused_with_the_reason() -> None:
    assert unfit_for([False], {"load.other_session": "idle"}) == {"load.other_session": NO_SHARE}
    asked = {
        "smb.signing": "on",
        "nagle": "on",
        "multipath.policy": "round_robin",
        "outstanding": 4,
        "mtu": 9000,
    }
    assert unfit_for([False], asked) == {"smb.signing": NO_SHARE}
    assert unfit_for([True, False], asked) == {}
    assert unfit_for([True], asked) == {"nagle": NO_LUN, "multipath.policy": NO_LUN}


@pytest.mark.parametrize(
    ("devices", "said"), [([], "this machine has none"), (["mlx5_0"], "has mlx5_0: mount")]
)
def test_smb_direct_is_not_applicable_with_the_true_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: list[str], said: str
) -> None:
    for device in devices:
        (tmp_path / device).mkdir()
    monkeypatch.setattr(shares, "RDMA_DEVICES", str(tmp_path))
    assert said in unfit_for([True], {"smb.transport": "rdma"})["smb.transport"]
    assert unfit_for([True], {"smb.transport": "tcp"}) == {}
    assert unfit_for([False], {"smb.transport": "rdma"}) == {"smb.transport": NO_SHARE}
