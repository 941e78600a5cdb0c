"""docs/vdbench.md: what the readers do with a parameter file, with tables made from `tables`.

`python -m linerate.workload.vdbench.documentation > docs/vdbench.md` writes it; a test holds the page
against it.
"""

from __future__ import annotations

import sys

from linerate.workload.vdbench.tables import TABLES, Block, Effect, Keyword

_HEAD = """\
# vdbench parameter files

Linerate runs vdbench parameter files for block storage (HD, SD, WD, RD). This page says what each keyword does here,
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
  halves. Double quotes hide blank, comma, `=` and `-`.
- `name=default` sets defaults for the instances of its block that follow.
- `$host` and `#host` repeat an SD or WD for every HD.

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
"""

_TITLES = {
    Block.GENERAL: ("General parameters", "Before the first `hd=`, `sd=`, `wd=` or `rd=`."),
    Block.HD: ("Host definition: hd=name", ""),
    Block.SD: ("Storage definition: sd=name", ""),
    Block.WD: ("Workload definition: wd=name", ""),
    Block.RD: ("Run definition: rd=name", ""),
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
