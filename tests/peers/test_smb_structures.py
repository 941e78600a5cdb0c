"""File system workloads on a share of Samba's server: what is on its disk, what is counted, what is refused."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.support.samba import PASSWORD, USER, Samba, samba, when_in_use

HEAD = """\
create_anchors=yes
fsd=fsd1,anchor=ANCHOR,depth=2,width=2,files=3,size=(4k,50,12k,50)
fwd=default,fsd=fsd1,xfersize=4k,fileselect=once,threads=1
"""
SHAPE = "depth=2,width=2,files=3,size=8k"
END = "fwdrate=max,elapsed=9,interval=1,warmup=0"
FORMAT = f"{HEAD}fwd=fwd1,operation=read\nrd=rd1,fwd=fwd1,format=only,{END}\n"
OPERATIONS = (
    *("read", "getattr", "setattr", "access", "open", "close", "delete", "create"),
    *("write", "delete", "rmdir", "mkdir"),
)
"""What the runs do one after the other."""
ALL = (
    HEAD
    + "".join(f"fwd={word},operation={word}\n" for word in dict.fromkeys(OPERATIONS))
    + "fwd=random,operation=read,rdpct=100,fileio=random,stopafter=2\n"
    + f"rd=first,fwd=random,format=yes,{END}\n"
    + "".join(f"rd=rd{index},fwd={word},{END}\n" for index, word in enumerate(OPERATIONS))
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samba]:
    """A server for most tests of this file."""
    with samba(tmp_path_factory.mktemp("samba")) as server:
        yield server


def _run(folder: Path, text: str, anchor: str, *words: str, password: str = PASSWORD) -> Done:
    folder.mkdir(exist_ok=True)
    (folder / "a.vdb").write_text(text.replace("ANCHOR", anchor), "ascii")
    options = ("--no-report", "--output", "run", *words)
    return linerate("run", "a.vdb", *options, cwd=folder, LINERATE_SMB_PASSWORD=password)


def _tree(folder: Path) -> dict[str, int | None]:
    """Paths below a folder with their sizes; folders have none."""
    return {
        str(path.relative_to(folder)): path.stat().st_size if path.is_file() else None
        for path in folder.rglob("*")
    }


def _counts(folder: Path) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Operations, bytes and errors by run and stream."""
    run = RunDirectory.open(folder / "run")
    sums = run.intervals.group_by("step", "stream").agg(
        pl.col("ios").sum(), pl.col("bytes").sum(), pl.col("errors").sum()
    )
    return {(step, stream): tuple(rest) for step, stream, *rest in sums.iter_rows()}


@pytest.mark.long
def test_every_operation_is_carried_out_as_often_as_on_a_local_folder(tmp_path: Path, server: Samba) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    local = _run(here, ALL, str(tmp_path / "anchor"))
    assert local.returncode == 0, local.stderr
    remote = _run(there, ALL, server.url("all/below"))
    assert remote.returncode == 0, remote.stderr
    assert _tree(server.path("all/below")) == _tree(tmp_path / "anchor")
    assert _counts(there) == _counts(here)
    assert sum(errors for _, _, errors in _counts(there).values()) == 0
    session = RunDirectory.open(there / "run").manifest.steps[0].facts["volumes"][0]["session"]
    assert (session["share"], session["path"], session["dialect"]) == ("share", "all/below", "3.1.1")
    stored = [file for file in (there / "run").rglob("*") if file.is_file()]
    assert not any(PASSWORD.encode() in file.read_bytes() for file in stored)


@pytest.mark.long
def test_files_are_copied_to_a_share_and_moved_back_and_their_data_are_checked(
    tmp_path: Path, server: Samba
) -> None:
    here = tmp_path / "anchor"
    text = (
        f"create_anchors=yes\nvalidate=yes\nfsd=fsd1,anchor={here},{SHAPE}\nfsd=fsd2,anchor=ANCHOR,{SHAPE}\n"
        "fwd=default,xfersize=4k,threads=2,fileselect=once\n"
        "fwd=out,fsd=fsd1,operation=copy,target=fsd2\nfwd=check,fsd=fsd2,operation=read\n"
        "fwd=back,fsd=fsd2,operation=move,target=fsd1\n"
        f"rd=first,fwd=out,format=yes,{END}\nrd=second,fwd=check,{END}\n"
    )
    out = _run(tmp_path / "out", text, server.url("copies"))
    assert out.returncode == 0, out.stderr
    copied = server.path("copies")
    files = [path for path in here.rglob("*") if path.is_file()]
    assert len(files) == 12
    assert [(copied / path.relative_to(here)).stat().st_size for path in files] == [8192] * 12
    counts = _counts(tmp_path / "out")
    assert (counts["first", "out copy"][0], counts["second", "check read"][0]) == (12, 24)
    back = text[: text.index("rd=first")] + f"rd=third,fwd=back,{END}\n"
    moved = _run(tmp_path / "back", back, server.url("copies"), "--overwrite", "all")
    assert moved.returncode == 0, moved.stderr
    assert not [path for path in copied.rglob("*") if path.is_file()]
    assert len([path for path in here.rglob("*") if path.is_file()]) == 12


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # dask leaves some closing to the garbage collector
def test_two_hosts_make_use_and_remove_one_structure(tmp_path: Path, server: Samba) -> None:
    """What one of them has made or removed is no error of the other, and is counted once."""
    operations = ("read", "delete", "rmdir", "mkdir", "create", "write")
    general, fsd, _ = HEAD.splitlines()
    text = f"{general}\nhd=one,system=localhost\nhd=two,system=localhost\n{fsd},shared=yes\n"
    text += "fwd=default,fsd=fsd1,xfersize=4k,threads=4\n"
    for word in operations:
        once = ",fileselect=once" if word in ("read", "write") else ""
        text += f"fwd={word},operation={word}{once}\n"
    text += f"rd=clean,fwd=read,format=(clean,only),{END}\nrd=make,fwd=read,format=(restart,only),{END}\n"
    text += "".join(f"rd={word},fwd={word},{END}\n" for word in operations)
    local = _run(tmp_path / "here", FORMAT, str(tmp_path / "anchor"))
    assert local.returncode == 0, local.stderr
    done = _run(tmp_path / "there", text, server.url("hosts"))
    assert done.returncode == 0, done.stderr
    assert _tree(server.path("hosts")) == _tree(tmp_path / "anchor")
    counts = _counts(tmp_path / "there")
    assert sum(errors for _, _, errors in counts.values()) == 0
    made = [counts["format_for_make", f"format {word}"][0] for word in ("mkdir", "create")]
    used = [counts[word, f"{word} {word}"][0] for word in ("delete", "rmdir", "mkdir", "create")]
    assert (made, used) == ([6, 12], [12, 6, 6, 12])
    size = sum(bytes_ or 0 for bytes_ in _tree(tmp_path / "anchor").values())
    assert counts["read", "read read"][1] == counts["write", "write write"][1] == size


def test_a_format_makes_on_the_share_what_was_asked_and_leaves_the_rest(
    tmp_path: Path, server: Samba
) -> None:
    local = _run(tmp_path / "here", FORMAT, str(tmp_path / "anchor"))
    assert local.returncode == 0, local.stderr
    url = server.url("format", login=f"WORKGROUP;{USER}")
    options = ("--set", "smb.encryption=on", "--set", "smb.max_io=4k")
    made = _run(tmp_path / "one", FORMAT, url, *options)
    assert made.returncode == 0, made.stderr
    tree = _tree(server.path("format"))
    assert tree == _tree(tmp_path / "anchor")
    assert sorted({size for size in tree.values() if size}) == [4096, 12288]
    facts = RunDirectory.open(tmp_path / "one" / "run").manifest.steps[0].facts
    assert facts["volumes"][0]["session"]["encryption"] == "aes-128-gcm"
    mine = server.path("format/mine.txt")
    mine.write_text("mine")
    refused = _run(tmp_path / "two", FORMAT, url)
    assert refused.returncode == 2
    assert "holds mine.txt" in refused.stderr
    again = _run(tmp_path / "three", FORMAT, url, "--overwrite", "fsd1")
    assert again.returncode == 0, again.stderr
    assert _tree(server.path("format")) == {**tree, "mine.txt": 4}
    counts = _counts(tmp_path / "three")
    removed = {stream: ios for (_, stream), (ios, _, _) in counts.items()}
    assert (removed["format delete"], removed["format rmdir"]) == (12, 6)


def test_what_the_server_refuses_is_said_with_the_way_out(tmp_path: Path, server: Samba) -> None:
    server.path("refused").mkdir()
    missing = server.url("refused", share="missing")
    readonly = server.url("refused", share="readonly")
    for name, anchor, password, words in (
        ("password", server.url("refused"), "wrong", "wrong user name or password"),
        ("share", missing, PASSWORD, "the server has no share missing"),
        ("readonly", readonly, PASSWORD, "is read-only for this user; permit it on the server"),
        ("folder", server.url("no/such/folder"), PASSWORD, "write create_anchors=yes"),
    ):
        done = _run(tmp_path / name, FORMAT.replace("create_anchors=yes\n", ""), anchor, password=password)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr, done.stderr
        assert PASSWORD not in done.stderr
    without = _run(tmp_path / "secret", FORMAT, server.url("refused"), password="")
    assert without.returncode == 2
    assert f"the password of {USER} is missing" in without.stderr
    channels = _run(tmp_path / "channels", FORMAT, server.url("refused"), "--set", "smb.channels=2")
    assert "use more threads" in channels.stderr
    assert not list(server.path("refused").iterdir())


def test_a_share_that_is_only_read_need_not_be_writable(tmp_path: Path, server: Samba) -> None:
    assert _run(tmp_path / "made", FORMAT, server.url("read")).returncode == 0
    text = f"{HEAD}fwd=fwd1,operation=read\nrd=rd1,fwd=fwd1,{END}\n".replace("create_anchors=yes\n", "")
    done = _run(tmp_path / "read", text, server.url("read", share="readonly"))
    assert done.returncode == 0, done.stderr
    (found,) = [counts for (_, stream), counts in _counts(tmp_path / "read").items() if stream == "fwd1 read"]
    assert found[1:] == (sum(size or 0 for size in _tree(server.path("read")).values()), 0)


def test_a_full_share_asks_for_room(tmp_path: Path) -> None:
    with samba(tmp_path / "samba", limit_bytes=1 << 20) as server:
        done = _run(tmp_path, FORMAT.replace("size=(4k,50,12k,50)", "size=1m"), server.url("full"))
    assert done.returncode not in (0, 2), done.stderr
    assert "the share has no space left (STATUS_DISK_FULL)" in done.stderr
    assert "make room on the share" in done.stderr


@pytest.mark.long
def test_a_lost_connection_is_restored_and_every_operation_is_done(tmp_path: Path) -> None:
    text = (
        HEAD.replace("files=3", "files=1000")
        + f"fwd=fwd1,operation=read\nrd=rd1,fwd=fwd1,format=only,{END}\n"
    )
    with samba(tmp_path / "samba") as server:

        def drop() -> None:
            for process in _connections(server.pid):
                os.kill(process, signal.SIGKILL)

        dropping = when_in_use(tmp_path / "run", drop)
        done = _run(tmp_path, text, server.url("lost"), "--interval", "0.2")
        dropping.join()
        assert done.returncode == 0, done.stderr
        tree = _tree(server.path("lost"))
    events = RunDirectory.open(tmp_path / "run").events
    kinds = [event.kind for event in events]
    assert kinds.count("session_lost") == kinds.count("session_back") > 0, events
    assert len(tree) == 6 + 4 * 1000
    assert sorted({size for size in tree.values() if size is not None}) == [4096, 12288]


def _connections(server: int) -> list[int]:
    """The processes of smbd that serve a connection."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        is_of_server = int(rest.split()[2]) == server and int(process.name) != server
        if is_of_server and name.startswith("smbd") and not name.startswith("smbd-"):
            found.append(int(process.name))
    return found
