"""The shell script runs for real: on ports of a namespace, and against stand-ins for ethtool and iscsiadm."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.host import catalogue, read
from linerate.recommend import configuration_text
from linerate.setting import Value

from tests.host.conftest import Namespace
from tests.host.test_namespace import EVERYWHERE
from tests.recommend.planted import configuration
from tests.support import need

PORTS = ("p0", "p1")

CARD = r"""#!/bin/sh
# A card with rings, pause frames, coalescing and paired queues; what is set is kept in files below $STATE.
now() { cat "$STATE/$1" 2>/dev/null || echo "$2"; }
way=$1 device=$2
shift 2
while [ $# -gt 1 ] && [ "$way" != "${way#-[GACL]}" ]; do
    [ "$1" != "$REFUSED" ] || { echo "netlink error: Operation not supported" >&2; exit 1; }
    printf '%s' "$2" > "$STATE/$1"
    shift 2
done
case $way in
-g) printf 'Ring parameters for %s:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t8192\n' "$device"
    printf 'Current hardware settings:\nRX:\t\t%s\nTX:\t\t%s\n' "$(now rx 512)" "$(now tx 512)" ;;
-a) printf 'Pause parameters for %s:\nAutonegotiate:\ton\nRX:\t\t%s\nTX:\t\t%s\nRX negotiated: on\n' \
    "$device" "$(now rx on)" "$(now tx off)" ;;
-c) printf 'Coalesce parameters for %s:\nAdaptive RX: %s  TX: n/a\n\nrx-usecs:\t%s\nrx-usecs-irq:\tn/a\n' \
    "$device" "$(now adaptive-rx on)" "$(now rx-usecs 3)" ;;
-l) printf 'Channel parameters for %s:\nPre-set maximums:\nRX:\t\tn/a\nCombined:\t16\n' "$device"
    printf 'Current hardware settings:\nRX:\t\tn/a\nCombined:\t%s\n' "$(now combined 8)" ;;
esac
"""
OPEN_ISCSI = r"""#!/bin/sh
# Records of two portals; what is set is kept in a file for each.
case "$*" in
"-m node -o show")
    for portal in 10.0.1.5 10.0.2.5; do
        printf '# BEGIN RECORD 2.1.9\nnode.name = iqn.2026-11.lab:a\nnode.conn[0].address = %s\n' $portal
        printf 'node.conn[0].port = 3260\nnode.session.iscsi.ImmediateData = %s\n# END RECORD\n' \
            "$(cat "$STATE/$portal:3260" 2>/dev/null || echo $portal | sed 's/10.0.1.5/Yes/; s/10.0.2.5/No/')"
    done ;;
*" -p "*) printf '%s' "${12}" > "$STATE/$6" ;;
*) for portal in 10.0.1.5 10.0.2.5; do printf '%s' "$8" > "$STATE/$portal:3260"; done ;;
esac
"""


def _script(folder: Path, values: Mapping[str, Value], ports: tuple[str, ...] = PORTS) -> Path:
    path = folder / "settings.sh"
    path.write_text(configuration_text(configuration(values), "linux", ports))
    return path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for ethtool and iscsiadm come first; the folder of what they keep."""
    folder, state = tmp_path / "bin", tmp_path / "kept"
    folder.mkdir()
    state.mkdir()
    for name, text in (("ethtool", CARD), ("iscsiadm", OPEN_ISCSI), ("id", "#!/bin/sh\necho 0\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", str(state))
    return state


def _run(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | variables,
    )


def _now(namespace: Namespace, names: Mapping[str, Value]) -> dict[tuple[str, str], Value | None]:
    return {(one.setting.name, one.device): one.value for one in read(namespace.target, names)}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_script_of_every_setting_is_shell(shell: str, tmp_path: Path) -> None:
    values: dict[str, Value] = {}
    for setting in catalogue().values():
        kind = setting.kind
        values[setting.name] = getattr(kind, "most", None) or getattr(kind, "options", ("off",))[-1]
    script = _script(tmp_path, values)
    subprocess.run([shell, "-n", str(script)], check=True)
    text = script.read_text()
    for setting in catalogue().values():
        said = f"\nread_{setting.name}() {{\n" in text or f"#   {setting.name} = " in text
        assert said, setting.name


@pytest.mark.long
def test_settings_are_applied_and_put_back_on_a_real_kernel(namespace: Namespace, tmp_path: Path) -> None:
    need.tool("ethtool")
    script = _script(tmp_path, {**EVERYWHERE, "rss_queues": 2})
    names = {**EVERYWHERE, "rss_queues": 2}
    before = _now(namespace, names)
    routes = namespace.run("ip", "-4", "route", "show", "table", "all")
    told = namespace.run("sh", str(script))
    assert "mtu of p0: 9000 (was 1500)\n" in told
    assert "ecn: 1 (was 2)\n" in told
    after = _now(namespace, names)
    for (name, device), value in after.items():
        assert value == names[name], (name, device)
    assert set(before) == set(after)
    assert sum(before[place] != value for place, value in after.items()) > 20
    told = namespace.run("sh", str(script), "undo")
    assert "mtu of p1: back at 1500\n" in told
    assert _now(namespace, names) == before
    assert namespace.run("ip", "-4", "route", "show", "table", "all") == routes
    assert [path.name for path in tmp_path.iterdir()] == ["settings.sh"]


def test_routes_of_one_port_keep_their_place_among_rivals(namespace: Namespace, tmp_path: Path) -> None:
    script = _script(tmp_path, {"delayed_ack": "off"}, ports=("p0",))
    show = ("ip", "-4", "route", "show", "table", "all", "type", "unicast")
    namespace.run(
        "ip", "route", "add", "192.168.7.0/24", "nexthop", "via", "10.9.0.8", "nexthop", "via", "10.9.0.9"
    )
    before = namespace.run(*show)
    namespace.run("sh", str(script))
    marked = namespace.run(*show)
    assert marked.replace(" quickack 1", "") == before
    assert [line for line in marked.splitlines() if "dev p0" in line and "quickack 1" not in line] == [
        line for line in marked.splitlines() if "nexthop" in line and "dev p0" in line
    ]
    assert "quickack 1" not in "".join(line for line in marked.splitlines() if "dev p1" in line)
    namespace.run("sh", str(script), "undo")
    assert namespace.run(*show) == before


def test_a_refused_setting_puts_the_others_back(namespace: Namespace, tmp_path: Path) -> None:
    script = _script(tmp_path, {"mtu": 9000, "ecn": "on", "congestion_control": "nosuch"})
    before = _now(namespace, {"mtu": 0, "ecn": 0})
    with pytest.raises(subprocess.CalledProcessError) as error:
        namespace.run("sh", str(script))
    assert "congestion_control: refused by this host; putting everything back" in error.value.stderr
    assert "mtu of p0: back at 1500" in error.value.stdout
    assert _now(namespace, {"mtu": 0, "ecn": 0}) == before
    assert [path.name for path in tmp_path.iterdir()] == ["settings.sh"]


def test_what_a_host_lacks_stops_the_script_before_anything_is_changed(
    namespace: Namespace, tmp_path: Path
) -> None:
    script = _script(tmp_path, {"mtu": 9000}, ports=("p0", "p9"))
    with pytest.raises(subprocess.CalledProcessError) as error:
        namespace.run("sh", str(script))
    assert "mtu of p9: not on this host; nothing was changed. SKIP=mtu leaves it out." in error.value.stderr
    assert set(_now(namespace, {"mtu": 0}).values()) == {1500}


def test_a_second_run_does_not_lose_the_first_values(namespace: Namespace, tmp_path: Path) -> None:
    script = _script(tmp_path, {"mtu": 9000})
    namespace.run("sh", str(script))
    with pytest.raises(subprocess.CalledProcessError) as error:
        namespace.run("sh", str(script))
    assert "settings.sh.saved exists: undo the earlier change first" in error.value.stderr
    namespace.run("sh", str(script), "undo")
    assert set(_now(namespace, {"mtu": 0}).values()) == {1500}


def test_only_root_may_run_it(tmp_path: Path, tools: Path) -> None:
    (tools.parent / "bin/id").write_text("#!/bin/sh\necho 1000\n")
    done = _run(_script(tmp_path, {"ecn": "on"}))
    assert done.returncode == 1
    assert done.stderr.startswith("Only root may change these settings: sudo sh ")


def test_without_ports_it_asks_for_them(tmp_path: Path, tools: Path) -> None:
    done = _run(_script(tmp_path, {"rx_ring_frames": 1024}, ports=()))
    assert done.returncode == 1
    assert "Name the ports to the SAN in PORTS, at the top of this file" in done.stderr
    assert list(tools.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "was", "now"),
    [
        ("rx_ring_frames", 1024, "512", "1024"),
        ("rx_ring_frames", "max", "512", "4096"),
        ("tx_ring_frames", "max", "512", "8192"),
        ("flow_control", "on", "rx on tx off", "rx on tx on"),
        ("interrupt_moderation_us", "off", "adaptive-rx on rx-usecs 3", "adaptive-rx off rx-usecs 0"),
        ("rss_queues", "max", "combined 8", "combined 16"),
        ("rss", "off", "combined 8", "combined 1"),
    ],
)
def test_a_card_s_own_settings(
    name: str, value: Value, was: str, now: str, tmp_path: Path, tools: Path
) -> None:
    script = _script(tmp_path, {name: value}, ports=("eth2",))
    done = _run(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"{name} of eth2: {now} (was {was})"
    back = _run(script, "undo")
    assert (back.returncode, back.stdout) == (0, f"{name} of eth2: back at {was}\n")


def test_a_driver_without_adaptive_moderation_takes_the_time_alone(tmp_path: Path, tools: Path) -> None:
    (tools / "adaptive-rx").write_text("n/a")
    script = _script(tmp_path, {"interrupt_moderation_us": 0}, ports=("eth2",))
    done = _run(script, REFUSED="adaptive-rx")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("interrupt_moderation_us of eth2: rx-usecs 0 (was rx-usecs 3)\n")


def test_what_cannot_be_put_back_stays_saved(tmp_path: Path, tools: Path) -> None:
    script = _script(tmp_path, {"rx_ring_frames": 1024, "rss_queues": 4}, ports=("eth2",))
    assert _run(script).returncode == 0
    back = _run(script, "undo", REFUSED="combined")
    assert back.returncode == 1
    assert back.stdout == "rx_ring_frames of eth2: back at 512\n"
    assert "rss_queues of eth2: is combined 4, not combined 8 again" in back.stderr
    assert Path(f"{script}.saved").read_text() == "rss_queues eth2 combined 8\n"
    assert _run(script, "undo").stdout == "rss_queues of eth2: back at combined 8\n"
    assert not Path(f"{script}.saved").exists()


def test_records_of_open_iscsi_get_back_their_own_values(tmp_path: Path, tools: Path) -> None:
    script = _script(tmp_path, {"immediate_data": "off"}, ports=())
    done = _run(script)
    assert (done.returncode, done.stderr) == (0, "")
    target = "iqn.2026-11.lab:a"
    assert done.stdout.startswith(
        f"immediate_data: {target}|10.0.1.5:3260|No {target}|10.0.2.5:3260|No "
        f"(was {target}|10.0.1.5:3260|Yes {target}|10.0.2.5:3260|No)\n"
    )
    back = _run(script, "undo")
    assert (back.returncode, back.stderr) == (0, "")
    assert (tools / "10.0.1.5:3260").read_text() == "Yes"
    assert (tools / "10.0.2.5:3260").read_text() == "No"


def test_a_name_that_is_no_device_is_refused() -> None:
    with pytest.raises(UserError, match="is not the name of a network device"):
        configuration_text(configuration({"mtu": 9000}), "linux", ["eth2; rm x"])
