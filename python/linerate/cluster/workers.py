"""Cluster: the worker processes of all hosts, a scheduler in this process, and an agent on each worker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import dask
from distributed import Client, Scheduler, SpecCluster, Status
from distributed.deploy.spec import ProcessInterface

from linerate import _core
from linerate.cluster.agent import TOPIC, LoadAgent
from linerate.cluster.clock import Offset
from linerate.cluster.deal import deal
from linerate.cluster.deal_files import divide_files
from linerate.cluster.divide import Divided, Volumes, divide, loading, named, unnamed
from linerate.cluster.hosts import Endpoint
from linerate.cluster.load import ClusterLoad, PendingAnswer, ask_all, measured_offset
from linerate.cluster.ports import PortRange, try_to_listen
from linerate.cluster.tls import Assignment, Membership
from linerate.cluster.wire import run_text
from linerate.cluster.worker import CONFIG, NO_PAGES
from linerate.errors import HostError, UserError
from linerate.filename import file_names
from linerate.host import HostTarget, inside
from linerate.volumes import Cleared, Look
from linerate.workload import RunSpec
from linerate.workload.files import FilesLoadSpec
from linerate.workload.hosts import LoadHosts

_UP_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 30.0
_LOOK_S = 0.5
_ENDED = "its worker has ended"


class _WorkerProcess(ProcessInterface):
    """A worker on its host, as dask starts and closes it."""

    def __init__(
        self,
        scheduler: str,
        name: str,
        place: Endpoint,
        log: Path,
        members: Membership,
        ports: PortRange | None,
    ) -> None:
        super().__init__(scheduler=scheduler, name=name)  # type: ignore[no-untyped-call]
        own = members.issue(name)
        self._assignment = Assignment(
            scheduler,
            name,
            place.address,
            str(ports) if ports is not None else None,
            members.certificate,
            own.private_key,
            own.certificate,
        )
        self._place = place
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        place = self._place
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                place.command("linerate.cluster.worker", place.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process: it stops the load, then fetches what there is
            )
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and `failure` says why
                self._process.stdin.write(self._assignment.line())
                self._process.stdin.flush()
        self.status = Status.running

    @property
    def failure(self) -> str:
        """The last line of what the process wrote, if it has ended."""
        if self._process is None or self._process.poll() is None:
            return ""
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with code {self._process.returncode}"

    @property
    def pid(self) -> int:
        """Of the process that was started here."""
        return self._process.pid if self._process else 0

    def kill(self) -> None:
        """Ends it at once, if it has not ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def close(self) -> None:
        """Closing its input ends the worker; one that does not end is killed."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            loop = asyncio.get_running_loop()
            try:
                await asyncio.wait_for(loop.run_in_executor(None, self._process.wait), _END_TIMEOUT_S)
            except TimeoutError:
                self.kill()
        await super().close()  # type: ignore[no-untyped-call]


class _Answer:
    """An answer of an agent, or of none: dask speaks of its actors where a worker has ended."""

    def __init__(self, asked: Callable[[], PendingAnswer]) -> None:
        self._pending: PendingAnswer | None = None
        with contextlib.suppress(RuntimeError):  # dask knows already that the worker is gone
            self._pending = asked()

    def result(self, timeout: float | None = None) -> Any:
        """Waits for it. Raises ConnectionError if the worker has ended, and what the agent raises."""
        if self._pending is None:
            raise ConnectionError(_ENDED)
        try:
            return self._pending.result(timeout)
        except (OSError, RuntimeError) as error:
            if "Actor" in str(error):
                raise ConnectionError(_ENDED) from error
            raise


class _Agent:
    """A host's LoadAgent, asked directly."""

    def __init__(self, client: Client, name: str) -> None:
        key = f"agent-{name}-{uuid.uuid4().hex[:8]}"
        self._future = client.submit(
            LoadAgent, name, actor=True, workers=[name], allow_other_workers=False, pure=False, key=key
        )
        try:
            self._actor = self._future.result(_ANSWER_TIMEOUT_S)
        except (OSError, RuntimeError, TimeoutError) as error:
            raise HostError(
                f"host {name}: its worker does not answer: {error}", "look at the host, then try again"
            ) from error

    def ask(self, method: str, *arguments: object) -> PendingAnswer:
        return _Answer(lambda: getattr(self._actor, method)(*arguments))

    @property
    def alive(self) -> bool:
        return bool(self._future.status == "finished")


class Cluster:
    """Hosts that are ready to load volumes together. Use it in a `with` block: workers end at its end."""

    def __init__(
        self,
        places: Sequence[Endpoint],
        *,
        address: str | None = "127.0.0.1",
        namespace: str | None = None,
        ports: PortRange | None = None,
        urls: Volumes | None = None,
    ) -> None:
        """Starts a worker on every place and an agent on every worker.

        `address` is this machine's on the control network (None: the address of its name), `namespace` the
        network namespace in which it is, as a lab's `control`; None is that of this process. The scheduler here and
        each worker listen on a port of `ports`; None: the kernel chooses. `urls` says where hosts reach the same volume
        by different URLs. Raises HostError, naming the host, for one that does not come up in a minute, and UserError
        for one with another version of Linerate.
        """
        if not places:
            raise UserError("a cluster without hosts", "name at least one")
        self._places = {place.name: place for place in places}
        self._ports = ports
        self._urls = urls
        self._spool = uuid.uuid4().hex[:12]
        self._runs = 0
        self._cluster: SpecCluster | None = None
        self._client: Client | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="linerate-cluster-")
        dask.config.set({**CONFIG, "temporary-directory": self._scratch.name})
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            # The threads that dask starts inherit the namespace of the one that asks for them.
            client = inside(HostTarget("control", namespace=namespace), lambda: self._connect(address))
            self._await_workers(client)
            self._agents = {name: _Agent(client, name) for name in self._places}
            self._check_versions()
        except BaseException:
            self.close()
            raise

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts."""
        return tuple(self._places)

    @property
    def worker_pids(self) -> dict[str, int]:
        """Process ids on this machine of what was started for each host."""
        return {name: worker.pid for name, worker in self._workers().items()}

    def look(self, spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
        """Every host looks at the volumes that it will load; with `start` a `linerate.run.Loader`.

        Raises LinerateError, naming the host.
        """
        return self.look_at_parts(_divided(spec, self.hosts, self._urls), names)

    def look_at_parts(self, divided: Divided, names: Collection[str]) -> tuple[Look, ...]:
        """The same with a part for each host (`apportion`). Raises LinerateError."""
        parts, _ = divided
        asked = {
            host: (run_text(part), [named(host, name) for name in names]) for host, part in parts.items()
        }
        found = ask_all({host: self._agents[host] for host in parts}, "look", asked)
        return tuple(
            look.model_copy(update={"host": host, "volume": unnamed(look.volume)})
            for host, looks in found.items()
            for look in map(Look.model_validate, looks)
        )

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """See `linerate.run.Loader`."""
        return {volume.name: self.hosts for volume in spec.volumes}

    def start(self, cleared: Cleared) -> ClusterLoad:
        """Arms all hosts with the whole run and starts them at one instant. Raises LinerateError."""
        return self.start_parts(_divided(cleared.spec, self.hosts, self._urls), cleared)

    def first(self, count: int) -> FirstHosts:
        """Starts loads on the first so many hosts only."""
        return FirstHosts(self, self.hosts[:count], self._urls)

    def dealt(self, hosts: LoadHosts) -> DealtHosts:
        """Starts loads as a workload file deals them to these hosts, which are those of the cluster."""
        return DealtHosts(self, hosts)

    def start_parts(self, divided: Divided, cleared: Cleared) -> ClusterLoad:
        """The same with a part for each host (`apportion`) of the run that was cleared. Raises LinerateError."""
        self._runs += 1
        return ClusterLoad.start(
            self._agents,
            self._subscribe,
            divided,
            run_id=f"run{self._runs}",
            spool=self._spool,
            free=cleared.free,
        )

    def about(self) -> dict[str, dict[str, Any]]:
        """What each host says of itself: versions, and what its kernel gives."""
        return ask_all(self._agents, "about")

    def offsets(self) -> dict[str, Offset]:
        """How far each host's clock is from this one's, measured now."""
        return {name: measured_offset(name, agent) for name, agent in self._agents.items()}

    def close(self) -> None:
        """Ends the workers. Twice is once."""
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        if client is not None:
            with contextlib.suppress(TimeoutError):  # the workers end without its message
                client.close(timeout=_END_TIMEOUT_S)
        if cluster is not None:
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=_CLOSE_TIMEOUT_S)
            for worker in cluster.workers.values():
                worker.kill()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, address: str | None) -> Client:
        logs = Path(self._scratch.name)
        files = file_names(self._places)
        members = Membership()
        shared = {"members": members, "ports": self._ports}
        workers = {
            name: {
                "cls": _WorkerProcess,
                "options": {**shared, "place": place, "log": logs / f"{files[name]}.log"},
            }
            for name, place in self._places.items()
        }
        options = {
            "host": address,
            "port": self._port(address),
            "protocol": "tls://",
            "security": members.security,
            "dashboard": False,
            "dashboard_address": NO_PAGES,
        }
        self._cluster = SpecCluster(
            workers=workers,
            scheduler={"cls": Scheduler, "options": options},
            security=members.security,
            name="linerate",
            silence_logs=logging.CRITICAL,
        )
        self._client = Client(self._cluster, direct_to_workers=True)
        return self._client

    def _port(self, address: str | None) -> int:
        """Where the scheduler listens; 0: the kernel chooses. Asked first: dask would tell, but leave sockets open."""
        try:
            try_to_listen(address)
        except OSError as error:
            raise HostError(
                f"cannot listen on {address}: {error.strerror or error}",
                "give an address that this machine has",
            ) from error
        return self._ports.free(address) if self._ports is not None else 0

    def _workers(self) -> dict[str, _WorkerProcess]:
        return dict(self._cluster.workers) if self._cluster is not None else {}

    def _await_workers(self, client: Client) -> None:
        until = time.monotonic() + _UP_TIMEOUT_S
        while missing := self._places.keys() - self._present(client):
            for name in missing:
                if failure := self._workers()[name].failure:
                    raise HostError(
                        f"host {name}: the worker did not start: {failure}",
                        "`linerate hosts check` says what is missing there, `linerate hosts install` brings Linerate",
                    )
            if time.monotonic() > until:
                raise HostError(
                    f"no worker on {', '.join(sorted(missing))} after {_UP_TIMEOUT_S:g} s",
                    "can these hosts reach this machine on the control network?",
                )
            with contextlib.suppress(TimeoutError):
                client.wait_for_workers(len(self._places), timeout=_LOOK_S)

    @staticmethod
    def _present(client: Client) -> set[str]:
        return {worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}

    def _check_versions(self) -> None:
        for name, about in self.about().items():
            if about["linerate"] != _core.__version__:
                raise UserError(
                    f"host {name} has Linerate {about['linerate']}, this machine {_core.__version__}",
                    "`linerate hosts install` brings this version there",
                )

    def _subscribe(self, listen: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        client = self._client
        if client is None:
            raise HostError("the cluster is closed", "start a new one")
        client.subscribe_topic(TOPIC, lambda event: listen(event[1]))
        return lambda: client.unsubscribe_topic(TOPIC)


def _divided(spec: RunSpec, hosts: Sequence[str], urls: Volumes | None) -> Divided:
    """A run that each of the hosts runs whole. Raises UserError."""
    return divide_files(spec, hosts) if isinstance(spec, FilesLoadSpec) else divide(spec, hosts, urls)


class FirstHosts:
    """Some hosts of a cluster, as a `linerate.run.Loader`; the others are idle."""

    def __init__(self, cluster: Cluster, hosts: Sequence[str], urls: Volumes | None) -> None:
        self._cluster = cluster
        self._hosts = hosts
        self._urls = urls

    def look(self, spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
        """See `linerate.run.Loader`."""
        return self._cluster.look_at_parts(_divided(spec, self._hosts, self._urls), names)

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """See `linerate.run.Loader`."""
        return {volume.name: self._hosts for volume in spec.volumes}

    def start(self, cleared: Cleared) -> ClusterLoad:
        """See `linerate.run.Loader`."""
        return self._cluster.start_parts(_divided(cleared.spec, self._hosts, self._urls), cleared)


class DealtHosts:
    """The hosts of a cluster with what a workload file deals to each (`deal`), as a `linerate.run.Loader`."""

    def __init__(self, cluster: Cluster, hosts: LoadHosts) -> None:
        self._cluster = cluster
        self._hosts = hosts

    def look(self, spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
        """See `linerate.run.Loader`."""
        return self._cluster.look_at_parts(deal(spec, self._hosts), names)

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """See `linerate.run.Loader`."""
        return loading(deal(spec, self._hosts))

    def start(self, cleared: Cleared) -> ClusterLoad:
        """See `linerate.run.Loader`."""
        return self._cluster.start_parts(deal(cleared.spec, self._hosts), cleared)
