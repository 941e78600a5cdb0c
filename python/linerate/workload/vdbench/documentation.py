"""docs/vdbench.md: what the readers do with a parameter file, with tables made from `tables`.

`python -m linerate.workload.vdbench.documentation > docs/vdbench.md` writes it; a test holds the page
against it.
"""

from __future__ import annotations

import sys

from linerate.workload.vdbench.tables import TABLES, Block, Effect, Keyword

_HEAD = """\
# vdbench parameter files

Linerate runs vdbench parameter files for block storage (HD, SD, WD, RD) and for file systems (FSD, FWD, RD; see
[File system workloads](#file-system-workloads)). This page says what each keyword does here,
how a file is read, and where the meaning of a word needs care. It is made from the reader's own tables.

```
linerate run oltp.vdb                                      # volumes as the file's lun= say
linerate run oltp.vdb --map '*=iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}'
linerate run base.vdb runs.vdb                             # read as one file, in order
linerate run sweep.vdb threads=16                          # $threads and !threads in the file
```

## Where the volumes are

`lun=` takes a path, a block device, `iscsi://[user%secret@]host[:port]/target/lun`,
`smb://user@host/share/file` or `null:8g`. `--map NAME=TARGET` puts an SD elsewhere without an edit: by its
name (`sd1`), by its lun (`\\\\.\\PhysicalDrive1`) or by a pattern with one `*`. In the target `{n}` is the number
at the end of the SD's name, or of its lun if the name has none; `{n-1}` counts from 0. A Windows device must be
mapped. A `--map` that means no SD is refused.

A file that does not exist is made if the SD has a `size=`, and never in `/dev`: a device that is missing stays missing.
[Targets](workload.md#targets) and [what a run overwrites](workload.md#what-a-run-overwrites) apply here too.
All loops together may have up to 10,000 runs.

## Strict and lenient reading

Strict reading is vdbench's own, surprises included. All text after the first blank of a line is a comment, and a line
that then ends with a comma goes on in the next line: `wd=wd1, sd=sd1` is `wd=wd1,` glued to the line below. Parameter
files in papers often have blanks after their commas and would not run as printed.

Lenient reading keeps what was meant. It accepts these, each with a warning that names the line and says what vdbench
would do:

| in the file | vdbench | lenient reading |
| --- | --- | --- |
| `wd=wd1, sd=sd1` | drops `sd=sd1`, goes on in the next line | keeps `sd=sd1` |
| `sd=sd1 , lun=x` | takes `, lun=x` as a comment | keeps it |
| `sd=(sd1, sd2)` | drops `sd2)`, goes on in the next line | keeps `sd2` |
| `wd=wd1 rdpct=50` | takes `rdpct=50` as a comment | keeps it, since `rdpct` is a keyword |
| a TAB between parameters | part of a word | a blank |
| `elapsed=30s` | not a number | 30 seconds |
| `forrdpct=(100-0,50)` | 100 alone | 100, 50, 0 |
| `forthreads=(64-16,-16)` | fails | 64, 48, 32, 16 |
| `forxfersize=(64k-4k,/4)` | fails | 64k, 16k, 4k |
| `$name` without a value in a comment | an error | ignored |

By default a file is read strictly, unless a line has parameters behind a blank that strict reading would silently drop
(the first three rows), or strict reading fails and lenient reading does not. `--strict` never reads leniently.

## How a line is read

- `$name` and `!name` are replaced first, everywhere. A `$name` without a value is an error, and so is a value that
  nothing uses.
- A line that starts with `/`, `#` or `*` is a comment; one that starts with `eof` ends its file.
- `include=FILE` reads a file in place: beside the including file first, then the current directory. No nesting.
- Keywords may be shortened to any prefix of two letters or more; the first fitting row of the tables below wins.
- Numbers take `k`, `m`, `g`, `t` (1024-based, `b` may follow), `h` (3600) and `%`. For `elapsed`, `interval`, `warmup`
  and `pause` `m` means minutes.
- In parentheses `(sd1-sd8)` is a range of names, `(10-100,10)` of numbers with a step, `(1-64,d)` doubles, `(64-1,d)`
  halves. Loops over whole numbers leave fractions out: `forthreads=(100-1,d)` has 100, 50, 25, 12, 6, 3, 1.
- Double quotes hide blank, comma, `=` and `-`.
- `name=default` sets defaults for the instances of its block that follow.
- `$host` and `#host` repeat an SD, FSD, WD or FWD for every HD.
- The text is UTF-8, UTF-16 with its mark, or Windows-1252. A line has at most 2^20 characters.

## What needs care

- **threads** are outstanding I/Os per SD, over all WDs that use it. Eight SDs with `threads=5` have 40 in flight.
- **Averages.** Without `warmup` the first interval is left out and `elapsed` includes it: `elapsed=3,interval=1` gives
  `avg_2-3`. With `warmup=15,elapsed=60` the elapsed time follows: `avg_16-75`.
- **The two maxima.** `iorate=max` without skew is uncontrolled: every thread loops freely. With skew (or priority) it
  is controlled: the shares hold on every SD, so the slowest SD gates the run. A TOML file has a third kind, shares kept
  in total.
- **skew.** WDs without one share evenly what is left of 100; the sum must be 100.
- **A rate** is an open loop: I/Os start when they are due, by default at random (exponential) times. Response times
  count from the intended start and service times from the real one; vdbench reports service time only.
- **iorate=curve** runs at the maximum first, then at each percentage of what that run achieved: rounded up to
  hundreds above 1000, else to tens. Without skew the WDs keep the shares that they had at the maximum.
- **iorate=50%** is half of the last maximum, so an RD with `max` or `curve` must come before it.
- **For loops** nest in their order of appearance; rates are innermost.
- **Raw devices** (iSCSI LUNs and block devices): the first block is never touched.
- **Random places** repeat with the seed; vdbench takes them from the time of day.
- **Hosts.** Without `hd=`, or with one that is this machine, this process makes the load. See [Hosts](#hosts).

## Hosts

```
hd=default,user=tester,shell=ssh
hd=one,system=10.0.0.21
hd=two,system=10.0.0.22
sd=sd1,lun=/dev/sdb,host=one,lun=/dev/sdc,host=two
```

The hosts load together, as with `--hosts` ([many hosts](cluster.md)), and each needs Linerate
(`linerate hosts install`). SSH reaches them as `user@system`, with the keys, ports and other names of
`~/.ssh/config`. A host whose system is `localhost` or this machine's name needs no SSH: it is a process here.
`linerate run FILE --dry-run` shows what each host gets and asks none of them. `--hosts` beside hosts of the file is
refused, and so is `--virtual-time`.

- **Who runs what.** A WD runs on its hosts (`host=`), on those of its SDs that the host uses. An SD that none of the
  WD's hosts uses is left out; a WD without any SD is an error. An RD has no `host=` in vdbench, nor here.
- **Threads** of an SD are dealt one by one to the hosts that use it, in the order of the `hd=` lines. The next SD goes
  on where the last one ended: 3 SDs with `threads=1` on two hosts are 2 threads on the first and 1 on the second.
- **Rates, skew and maxdata** of a WD are divided evenly over its pairs of SD and host, not by threads. A pair without
  threads is left out.
- **A sequential WD** (`seekpct` 0, `seq` or `eof`) has one host for each SD: the first that it names and that uses the
  SD. With `validate=yes` this holds for every WD. If that host gets none of the SD's threads, the run is refused;
  vdbench would leave the WD out there. `streams=` on several hosts is refused.
- **Paths** of other machines are not looked at here: `/dev/...` is a device, all else a file.
- **Wildcards**: one `*` at the end (`host=h*`). An SD's `host=` may also name systems.

vdbench's guide says that each WD runs on each of its hosts and a sequential one on one. About threads and rates it
says nothing; the rules above are those of its source (5.04.06).

## File system workloads

```
create_anchors=yes
fsd=fsd1,anchor=/mnt/share/test,depth=2,width=8,files=100,sizes=(64k,90,1m,10)
fwd=fwd1,fsd=fsd1,operation=read,fileio=random,fileselect=random,xfersize=8k,threads=16
fwd=fwd2,fsd=fsd1,operation=getattr,threads=4
rd=rd1,fwd=fwd*,fwdrate=max,format=yes,elapsed=60,interval=1
```

An anchor is a folder of this host, or of a share of another one: `anchor=smb://user@nas/share/folder`
([its rules](smb.md#structures-of-files)). A share that is mounted is a folder of this host. Several
hosts (`hd=`) have [rules of their own](#file-system-workloads-on-several-hosts). Each thread of the file is a thread
that waits for its operation.

- **The structure** is vdbench's: `vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file`, in its order, with its sizes (the same
  random numbers), also those of `totalsize` and `workingsetsize`. A structure made by the one can be used by the other.
  Linerate looks at the files themselves and keeps no `vdb_control.file`; it removes vdbench's when a run may change
  the structure.
- **A format** is a run of its own before each pass of the RD's loops, `format_for_rd1`: it removes the old structure,
  makes the folders, and makes and fills the files. It has 8 threads per FSD and blocks of 128k; `threads=`,
  `openflags=` and the first `xfersize=` of `fwd=format` change that.
- **What is removed.** Only names that a structure has, and nothing behind a symbolic link. A run that writes asks first
  if the anchor holds anything, and `--overwrite FSD` says yes; other names stay in any case.
- **Threads** of an FWD are divided by the number of its FSDs and of the RD's operations, at least one each.
- **fwdrate=max** keeps the shares: with several workloads none gets more than 2000 operations ahead of its skew, so
  the slowest gates the run. A rate is an open loop, as with `iorate`.
- **A file** is open from its first block to its last: the size of the file, or `stopafter`. A block at the end of a
  file is shorter if it must be. With `openflags=o_direct` sizes must then suit the device.
- **copy and move** carry a file under its name into the FSD of `target=`: with `xfersize` each block is read and then
  written. A file that has the name there is deleted first, and after a move the source is deleted; a move is no rename,
  as in vdbench. Both FSDs need the same structure. With `fileselect=sequential` each file is copied once. An RD's
  format does not make the target's files; folders that it lacks are made before the run. `fwd1 copy` counts files, and
  the reads, writes, opens, closes, creates and deletes of a copy have streams of their own.
- **validate=yes**, or `--verify`: each block that a run or a format writes carries its file, its offset and the number
  of its write, and a read is compared with them. What no run of this command has written is not compared. A difference
  names the file, the offset, what was expected and what was found, and ends the run as failed. A file that is shorter
  than what was written into it ends a run before it starts. Sizes of blocks must be multiples of 512, and
  `fileio=(random,shared)` is refused. A block is as large as fits all sizes of the file, at most 4k. It takes 4 bytes
  of memory, and a file 48.
- **compratio and dedupratio** hold for files too. For duplicates the files of an FSD are one volume, one after the
  other.
- **A thread ends** when nothing is left to do: all files are deleted, `fileselect=once` has had each one, or it found
  nothing that suits in a long search (an event says so). When all have ended, so does the run.
- **Results.** Each operation of an FWD is a stream of the run: `fwd1 read`, `fwd1 open`. The rate of a run counts all
  of them, the opens and closes too. `--vdbench-output` has vdbench's columns, where `rate` counts what was asked for.
- **Not supported**, and refused: `fileio=(sequential,delete)`, skewed file selection, `stopafter` with sequential
  files, `format=complete`, `fwdrate=curve` or n%, SDs in the same file.

### File system workloads on several hosts

```
hd=one,system=10.0.0.21
hd=two,system=10.0.0.22
fsd=fsd1,anchor=/mnt/share/test,depth=2,width=8,files=100,sizes=64k,shared=yes
fwd=fwd1,fsd=fsd1,operation=read,xfersize=8k,threads=16
rd=clean,fwd=fwd1,fwdrate=max,format=(clean,only)
rd=make,fwd=fwd1,fwdrate=max,format=(restart,only)
rd=rd1,fwd=fwd1,fwdrate=max,elapsed=60,interval=1
```

The hosts are those of [Hosts](#hosts): they start together, counts and rates in the results are of all of them, and
each structure has a part for each host (`one/fsd1`). A host that writes looks at its anchor before, and asks.

- **Who runs what.** An FWD runs on all of its hosts (`host=`), on all of its FSDs. Two hosts use one FSD in an RD only
  if it has `shared=yes`. Without, each host has an FSD of its own: `fsd=fsd_$host,anchor=/data/$host` and
  `fwd=fwd_$host,fsd=fsd_$host,host=$host`.
- **A shared FSD** of n hosts is divided by files: a host makes, reads, writes and deletes every n-th file and no other,
  in the order of the `hd=` lines. `totalsize` and `workingsetsize` are divided by n. These are the hosts that use the
  FSD in the RD; in vdbench they are all hosts of the file, and files of hosts without work are left out.
- **Folders** of a shared FSD are made by the host that comes first, and counted there. For `rmdir` hosts divide the
  folders of the first level with all below. Files and folders that other hosts make or remove during a run are not
  known: an `rmdir` of a folder with such a file fails, and is an error.
- **A format** of a shared FSD either removes or makes, as in vdbench: `format=(clean,only)`, then
  `format=(restart,only)`. With `clean` hosts divide the folders as for `rmdir`. Each host has the format's threads.
- **Threads** of an FWD are divided by its hosts too, rounded down. If a host would get none, the file is refused;
  vdbench gives it one.
- **fwdrate** is divided evenly by the hosts that have an FWD in the RD. With `skew=` all FWDs need the same hosts.
- **copy and move** carry a host's own files: both FSDs are used by the same hosts.
- **validate=yes**: each host checks what it wrote itself, so an FSD has the same hosts in all RDs.
- **`--hosts`** beside a file without `hd=`: every host runs all FWDs with all of their threads, and FSDs need
  `shared=yes`.

vdbench's guide asks for `shared=yes`, for the two formats, and says that each host has its own files. The rest is in
its source (5.04.06).

## Reports in vdbench's form

`--vdbench-output DIR` of `run` and `report` writes the files of vdbench 5.04.06: `summary.html`, `totals.html`,
`flatfile.html`, `histogram.html`, `logfile.html`, `parmfile.html`, one for each SD or FSD, and these:

- `status.html`: times and states, separated by tabs. The file is written from the stored run, so it is there once the
  run has ended. Its slaves are the load generator.
- `skew.html`: for each RD the shares of its WDs, asked for and seen, and the figures of its SDs or FSDs. A table of
  one line is left out. There are no tables of hosts and slaves.
- The index at the top of a report leads to its RDs.
"""

_TITLES = {
    Block.GENERAL: ("General parameters", "Before the first `hd=`, `sd=`, `wd=` or `rd=`."),
    Block.HD: ("Host definition: hd=name", ""),
    Block.SD: ("Storage definition: sd=name", ""),
    Block.WD: ("Workload definition: wd=name", ""),
    Block.FSD: ("File system definition: fsd=name", ""),
    Block.FWD: ("File system workload definition: fwd=name", "`fwd=format` is for formats alone."),
    Block.RD: ("Run definition: rd=name", "`fwd` to `format` and loops over structures go with FWDs."),
}


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, "## Keywords", "", *(line for block in Block for line in _table(block))])


def _table(block: Block) -> list[str]:
    title, note = _TITLES[block]
    rows = [row for row in TABLES[block] if row.effect is not Effect.REFUSED]
    refused: dict[str, list[str]] = {}
    for row in TABLES[block]:
        if row.effect is Effect.REFUSED:
            refused.setdefault(row.meaning, []).append(f"`{row.name}`")
    lines = [f"### {title}", "", *([note, ""] if note else [])]
    lines += ["| keyword | accepted | default | what it does |", "| --- | --- | --- | --- |"]
    lines += [_row(row) for row in rows]
    if refused:
        lines += ["", "Refused by name:", ""]
        lines += [f"- {', '.join(names)}: {reason}." for reason, names in refused.items()]
    return [*lines, ""]


def _row(row: Keyword) -> str:
    meaning = f"no effect: {row.meaning}" if row.effect is Effect.NONE else row.meaning
    return f"| `{row.name}` | {row.accepted} | {row.default} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
