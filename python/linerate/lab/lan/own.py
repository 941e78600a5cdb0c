"""Linerate's own bulk stream: two threads of this process, one in each node's network namespace."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from linerate import _core
from linerate.errors import HostError
from linerate.lab.lan import Flowing, StreamEnd
from linerate.lab.lan.wait import until_it_flows

if TYPE_CHECKING:
    from linerate.san import LanStream


class OwnFlow:
    """See `Flow`."""

    def __init__(self, stream: LanStream, source: StreamEnd, sink: StreamEnd) -> None:
        """Starts the stream and waits for its first bytes. Raises the LinerateError that keeps it from flowing."""
        self._name = stream.name
        self._sink = _core.BulkSink.start(
            json.dumps({"address": f"{sink.address}:0", "netns": sink.namespace})
        )
        self._source: _core.BulkSource | None = None
        try:
            host, port = self._sink.address
            order = {
                "address": f"{host}:{port}",
                "netns": source.namespace,
                "source_address": source.address,
                "connections": stream.connections,
                "rate_bits_per_s": stream.rate_bits_per_s,
            }
            self._source = _core.BulkSource.start(json.dumps(order))
            until_it_flows(stream.name, self.count)
        except BaseException:
            self.close()
            raise

    def count(self) -> Flowing:
        """See `Flow`."""
        assert self._source is not None
        sent = self._source.stats()
        if sent["lost"] is not None:
            raise HostError(
                f"the LAN stream {self._name} lost a connection: {sent['lost']}",
                "see whether its link was pulled or its host has gone",
            )
        return Flowing(
            clock_s=time.monotonic(),
            bytes_received=self._sink.stats()["bytes_received"],
            segments_sent=sent["segments_sent"],
            segments_retransmitted=sent["segments_retransmitted"],
        )

    def close(self) -> None:
        """See `Flow`."""
        # The sink first: what the source still holds is then thrown away instead of sent.
        self._sink.stop()
        if self._source is not None:
            self._source.stop()
