"""A virtual machine: QEMU as a process of ours, by KVM where it works and by emulation elsewhere."""

from __future__ import annotations

import base64
import json
import os
import platform
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import need
from tests.vm import network
from tests.vm.image import Image

QEMU = "qemu-system-x86_64"
ADAPTERS = {
    network.CONTROL: "virtio-net-pci",
    network.SAN_A: "e1000e",
    network.SAN_B: "virtio-net-pci,mq=on,vectors=6",
    network.ADMIN: "virtio-net-pci",
}
"""The model of each: Intel's driver has the settings of a card, virtio has queues."""
_MEMORY_MIB = 1536
_CPUS = 2
_PROBE_TIMEOUT_S = 10.0
_QMP_TIMEOUT_S = 20.0
_END_TIMEOUT_S = 10.0
# What the emulated board has and nothing here uses: each costs seconds of emulation.
_UNUSED = "kvm_amd,kvm_intel,ccp,ahci,iTCO_wdt,i2c_i801,lpc_ich,pcspkr,evdev,button,serio_raw,loop,fuse,drm"


class Machine:
    """A running guest. What it writes to its disk is kept as long as it runs, also through a reboot of the guest."""

    def __init__(
        self, image: Image, second_disk: Path | None, folder: Path, files: Mapping[str, tuple[str, str]]
    ) -> None:
        """Starts it. `folder` gets its console and its control socket; `files`: path -> (mode and owner, text).

        The second disk can only be read.
        """
        self.folder = folder
        self.console = folder / "console.log"
        self.accelerator = accelerator(image)
        self._second_disk = second_disk
        command = [*self._command(image), "-smbios", f"type=11,value={_credential(files)}"]
        with (folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )

    def _command(self, image: Image) -> list[str]:
        words = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-M", "q35"]
        words += ["-accel", self.accelerator, "-cpu", self._cpu, "-smp", str(_CPUS), "-m", str(_MEMORY_MIB)]
        words += ["-kernel", str(image.kernel), "-initrd", str(image.initrd)]
        words += [
            "-append",
            f"root=/dev/vda ro console=ttyS0 quiet mitigations=off modprobe.blacklist={_UNUSED}",
        ]
        # Writes go to a file without a name, in TMPDIR; it is gone with the process.
        words += ["-drive", f"file={image.disk},if=virtio,format=raw,snapshot=on,cache=unsafe"]
        if self._second_disk is not None:
            words += ["-drive", f"file={self._second_disk},if=virtio,format=raw,readonly=on"]
        words += ["-device", "virtio-rng-pci", "-serial", f"file:{self.console}"]
        words += ["-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off"]
        for net, model in ADAPTERS.items():
            name = f"net{net}"
            queues = f",queues={network.QUEUES[net]}" if net in network.QUEUES else ""
            words += ["-netdev", f"tap,id={name},ifname={network.tap(net)},script=no,downscript=no{queues}"]
            words += ["-device", f"{model},id=nic{net},netdev={name},mac={network.mac(net)}"]
        return words

    @property
    def _cpu(self) -> str:
        """Emulated string instructions go byte by byte: the guest copies in other ways if they are not called fast."""
        return "max" if self.accelerator == "kvm" else "max,erms=off,fsrm=off,la57=off"

    @property
    def running(self) -> bool:
        """Whether QEMU is there."""
        return self._process.poll() is None

    def said(self) -> str:
        """The end of the console, and what QEMU said: for messages."""
        files = (self.console, self.folder / "qemu.log")
        return "\n".join(file.read_text(errors="replace")[-1500:] for file in files if file.exists())

    def cable(self, net: int, *, plugged: bool) -> None:
        """Pulls or plugs the cable of an adapter: the guest sees its carrier go or come."""
        self._ask("set_link", name=f"nic{net}", up=plugged)

    def reset(self) -> None:
        """Restarts it without a warning to its system, as a power cut does. Its disk is as it was at that moment."""
        self._ask("system_reset")

    def _ask(self, verb: str, **words: object) -> Any:
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(_QMP_TIMEOUT_S)
            end.connect(str(self.folder / "qmp"))
            lines = end.makefile("rw", encoding="utf-8")
            json.loads(lines.readline())
            for order in ({"execute": "qmp_capabilities"}, {"execute": verb, "arguments": words}):
                lines.write(json.dumps(order) + "\n")
                lines.flush()
                while "event" in (answer := json.loads(lines.readline())):
                    pass
                assert "return" in answer, answer
            return answer["return"]

    def close(self) -> None:
        """Ends it, as a power cut does."""
        self._process.terminate()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _credential(files: Mapping[str, tuple[str, str]]) -> str:
    """systemd takes lines of tmpfiles.d from the firmware, and writes these files before sshd starts."""
    lines = (
        f"f~ {path} {owner} - {base64.b64encode(text.encode()).decode()}"
        for path, (owner, text) in files.items()
    )
    content = base64.b64encode("\n".join(lines).encode() + b"\n").decode()
    return f"io.systemd.credential.binary:tmpfiles.extra={content}"


def accelerator(image: Image) -> str:
    """`kvm` if this kernel boots with it here: a device that is there does not always work."""
    if platform.machine() == "x86_64" and os.access("/dev/kvm", os.R_OK | os.W_OK) and _boots_by_kvm(image):
        return "kvm"
    return "tcg,thread=multi"


def _boots_by_kvm(image: Image) -> bool:
    words = [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-M",
        "q35",
        "-accel",
        "kvm",
        "-cpu",
        "max",
    ]
    words += ["-m", "512", "-kernel", str(image.kernel), "-append", "console=ttyS0 earlyprintk=ttyS0"]
    with subprocess.Popen(
        [need.tool(QEMU), *words, "-no-reboot", "-serial", "stdio"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as probe:
        assert probe.stdout is not None
        os.set_blocking(probe.stdout.fileno(), False)
        heard = b""
        deadline = time.monotonic() + _PROBE_TIMEOUT_S
        while b"Linux version" not in heard and time.monotonic() < deadline and probe.poll() is None:
            heard += probe.stdout.read() or b""
            time.sleep(0.05)
        probe.kill()
    return b"Linux version" in heard
