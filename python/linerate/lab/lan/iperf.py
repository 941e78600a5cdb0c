"""iperf3 as a LAN stream: a server in the sink, a client in the source, counted by the kernels of both."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import TYPE_CHECKING

from linerate.errors import HostError
from linerate.host import HostTarget, inside
from linerate.host.linux.tcp_sockets import ESTABLISHED, LISTEN, tcp_sockets
from linerate.lab.lan import Flowing, StreamEnd
from linerate.lab.lan.wait import until, until_it_flows

if TYPE_CHECKING:
    from linerate.san import LanStream

_STOP_TIMEOUT_S = 2.0


class IperfFlow:
    """See `Flow`."""

    def __init__(self, stream: LanStream, source: StreamEnd, sink: StreamEnd) -> None:
        """Starts the stream and waits for its first bytes. Raises HostError when it does not flow."""
        self._name = stream.name
        self._source, self._sink = _target(source), _target(sink)
        self._processes: list[subprocess.Popen[str]] = []
        try:
            self._port = inside(self._sink, lambda: _free_port(sink.address))
            port = str(self._port)
            # Its output is read at its end: a report per second would fill the pipe, and it would stop.
            server = ["iperf3", "--server", "--bind", sink.address, "--port", port, "--interval", "0"]
            self._start(sink, server)
            until(
                self._listens,
                f"the LAN stream {stream.name}: iperf3 does not listen",
                "see whether iperf3 works here, or let Linerate's own streams carry LAN traffic",
            )
            rate = stream.rate_bits_per_s
            each = str(round(rate / stream.connections)) if rate else "0"
            client = ["iperf3", "--client", sink.address, "--port", port, "--bind", source.address]
            client += ["--parallel", str(stream.connections), "--bitrate", each, "--time", "0"]
            self._start(source, [*client, "--interval", "0"])
            until_it_flows(stream.name, self.count)
        except BaseException:
            self.close()
            raise

    def _start(self, end: StreamEnd, command: list[str]) -> None:
        self._processes.append(
            subprocess.Popen(
                end.inside(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,  # Ctrl-C is for the process that started it
            )
        )

    def _listens(self) -> bool:
        self._check()
        return any(inside(self._sink, lambda: list(tcp_sockets(LISTEN, "idiag_sport", self._port))))

    def count(self) -> Flowing:
        """See `Flow`."""
        self._check()
        arrived, clock_s = inside(
            self._sink,
            lambda: (list(tcp_sockets(ESTABLISHED, "idiag_sport", self._port)), time.monotonic()),
        )
        sent = inside(self._source, lambda: list(tcp_sockets(ESTABLISHED, "idiag_dport", self._port)))
        return Flowing(
            clock_s=clock_s,
            bytes_received=sum(one.info["tcpi_bytes_received"] for one in arrived),
            segments_sent=sum(one.info["tcpi_data_segs_out"] for one in sent),
            segments_retransmitted=sum(one.info["tcpi_total_retrans"] for one in sent),
        )

    def _check(self) -> None:
        for process in self._processes:
            if process.poll() is not None:
                assert process.stdout is not None
                told = process.stdout.read().strip().splitlines()
                raise HostError(
                    f"the LAN stream {self._name} has ended: {told[-1] if told else 'iperf3 was killed'}",
                    "see whether its link was pulled or its host has gone",
                )

    def close(self) -> None:
        """See `Flow`."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _target(end: StreamEnd) -> HostTarget:
    return HostTarget(end.node, (), end.namespace)


def _free_port(address: str) -> int:
    """A free port, in the namespace of the calling thread."""
    with socket.create_server((address, 0)) as server:
        port: int = server.getsockname()[1]
        return port
