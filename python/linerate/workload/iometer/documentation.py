"""docs/iometer.md: what the reader does with a configuration, with tables made from `tables`.

`python -m linerate.workload.iometer.documentation > docs/iometer.md` writes it; a test holds the page against it.
"""

from __future__ import annotations

import sys

from linerate.workload.iometer.tables import FIELDS, LABELS, TESTS, IcfEffect, IcfPart

_HEAD = """\
# Iometer configurations

Linerate runs configurations of Iometer (`.icf`) unchanged, of all versions from 1998 to 1.1.0. A file is one if it
ends with `.icf`, or if it begins with Iometer's version line. This page says what each label does here, and what is
refused and why. Its tables are made from the reader's own. The reader follows Iometer 1.1.0.

```
linerate run disks.icf --target 'iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}'    # all targets of the file, in order
linerate run disks.icf --map disk1=/dev/sdb --map disk2=/dev/sdc                  # one by one
linerate run disks.icf --target null:8g --dry-run                                 # what it would do
linerate run disks.icf --target null:8g --iometer-csv results.csv                 # results as Iometer writes them
```

What changes the load and is not supported is refused with its line and the reason. Nothing is ignored in silence but
what concerns Iometer's screen and result file, addresses of managers, and how many workers a new manager would get.

## Where the volumes are

The targets of all workers are the volumes `disk1`, `disk2`, .. in the order of the file. They are disks of the host
where Iometer ran, so `--map NAME=TARGET` or `--target` says where each one is here: by its name, by the text of the
file (`PHYSICALDRIVE:1`), or by a pattern with one `*`. In the target `{n}` is the number of the volume; `{n-1}`
counts from 0. A target that is a path such as /dev/sdb, or a URL, needs no `--map`. Of `C: "System"` the drive alone
counts.

A file that does not exist is made if `'Disk maximum size` or `--size` gives its bytes, and never in `/dev`. It is
made unwritten: Iometer would fill its file first. [Targets](workload.md#targets) and [what a run
overwrites](workload.md#what-a-run-overwrites) apply here too: a worker that writes asks before it overwrites.

## How a file is read

- A line that begins with `'` is a label. The lines below it are its values. Labels have any case.
- Some labels list the names of their values: `'size,% of size,..`. Values are read by these names. Older versions
  list fewer, and the values that are not there have Iometer's defaults.
- A label line that is not known, below a label without values, is a comment: `'hours minutes seconds`.
- Sections come in any order. A section that comes twice is refused; so is one without its `'END`, except a test
  setup of a version before 1999.02.17.
- Access specifications without names, of versions before 1998.05.21, get Iometer's names: `2 KiB random 67% reads`.
  If no worker has a specification assigned there, all workers do all of them.
- The text is UTF-8, UTF-16 with its mark, or Windows-1252 (ANSI). CRLF and tabs are fine. NUL bytes, and lines of
  more than 1024 characters are refused.

## Workers and runs

- **Access specifications** that are assigned to a worker are its runs, one after the other, each with the ramp up
  time as its warm-up. Workers run their n-th ones together. A worker with fewer of them, without targets, or with
  Idle makes no load in that run. A run in which all are idle is left out.
- **Outstanding I/Os** are per worker and target, as in Iometer: 4 workers with 16 I/Os on each of 2 targets are 128
  in flight. Workers that do the same on a target share its volume, and their I/Os take even turns in its queue.
  Workers that differ have a volume each: `disk1.w2` is disk1 for the second worker of the file.
- **Positions.** Each worker has a position of its own on each target, for reads and writes together. Several
  sequential workers on one target go through the same blocks, as in Iometer; a cache then answers most of them.
  Every run begins at the first sector of the used part.
- **Lines.** A line is drawn for each I/O by the shares of the lines. It says size, direction, whether the place is
  random, and its grid. An I/O that is not random follows the last one, of whatever line, at the next multiple of
  `align`: `All in one`, which Iometer brings along, runs so. Lines that differ in `delay` are refused. Lines of 0 %
  are left out.
- **Alignment.** `align` is the grid of places, counted from the first byte of the target. `align` 0 means sectors,
  which are 512 bytes. Then most random I/Os of 4 KiB are off the 4096-byte blocks inside of the storage, as with
  Iometer; a notice says so. A volume whose own sectors have 4096 bytes refuses such a run at its start, with the
  reason: write 4096 as `align`. Sequential I/Os need no grid, and run there if their size is a multiple of 4096.
- **Delay and burst.** With `delay` 10 and `burst` 4 a worker pauses 10 ms before each four I/Os. A worker of Iometer
  pauses as a whole, so a delay needs a worker with one I/O in flight: one target, one outstanding I/O. Others are
  refused.
- **Write data** repeats one byte with data pattern 0, the default. Here it compresses 512:1, and no two pages are
  equal.
- **Random places** follow from the seed (`fixed seed value`, else 1; `--seed`). They are not those of Iometer.
- **Test connection rate.** A worker opens a target, does so many I/Os on it (`transactions per connection`), waits
  until none is in flight, closes it, and begins again. Sequential I/Os begin at the start of the used part each time,
  as in Iometer. A file or a device is closed and opened; to close a disk sends no command to a LUN, so its session
  stays. Several such workers on one target have a volume each. How long opening takes is not measured.
- **Managers.** The workers of all managers make their load on this host, at the same time. Their disks are numbered
  on: `PHYSICALDRIVE:1` of the second manager is another disk than that of the first. With `--hosts` as many hosts as
  managers make the load: the first that of the first manager, and so on; of a file with one manager every host does
  all of it.
- **Errors** of I/Os are counted, and the run goes on, as in Iometer.

## Test types

`'Worker Cycling`, `'Disk Cycling` and `'Queue Depth Cycling` have start, step and step type. LINEAR adds the step,
and EXPONENTIAL multiplies by it; a step of 1 always adds. A cycle goes on while a number brings in more targets, or
up to its end. Each access specification goes through all its runs before the next one begins. In
CYCLE_WORKERS_AND_TARGETS a worker step of 1 makes the targets grow by addition too, as in Iometer 1.1.0.

{tests}

## Labels

{labels}

### Values of an access specification

{lines}

### Values of a worker

{worker}

## Results as Iometer's CSV

`--iometer-csv FILE` of `run` and of `report` writes the results as Iometer 1.1.0 does, for programs that read its
result files. It works for every workload. An existing FILE is replaced after a question, or with `--overwrite FILE`
of `run`, `--overwrite` of `report`. (Iometer adds to it.)

- Rows are ALL, MANAGER, WORKER and DISK. A worker is a stream, and a disk is one of its volumes, with the name that
  the configuration has for it. PROCESSOR rows are left out: times of single CPUs are not taken.
- Times are service times, from submit to complete, in ms. Raw times are in ns, so `Processor Speed`, their clock, is
  10^9.
- MiBps counts 2^20 bytes, MBps 10^6. `Starting Sector` and `Maximum Size` are in 512 bytes.
- `% CPU Utilization`, `% User Time` and `% Privileged Time` are those of the load host. `Segments
  Retransmitted/Second` are those of the load's own connections.
- Latency bins come from the run's histograms (0.1 % wide) and end where their names say. (Iometer ends that of 4.7 s
  at 4 s, and counts nothing from 10 s on.) They are empty in a DISK row if several workers share several disks.
- 0 stands for what is not counted: DPC and interrupt time, interrupts, packets, connections. -1 stands for what
  disks do not have in common, and for transactions per connection, as in Iometer.
- Warm-up is left out. Lines are CRLF, the text is UTF-8, and commas in names become blanks.
"""

_TITLES = {
    IcfPart.SETUP: "`'TEST SETUP`",
    IcfPart.DISPLAY: "`'RESULTS DISPLAY`",
    IcfPart.SPECIFICATIONS: "`'ACCESS SPECIFICATIONS`",
    IcfPart.MANAGERS: "`'MANAGER LIST`",
}
_WORDS = {
    IcfEffect.DOES: "",
    IcfEffect.NONE: "no effect: ",
    IcfEffect.UNLESS: "others are refused: ",
    IcfEffect.REFUSED: "refused: ",
}


def page() -> str:
    """The whole page."""
    tests = [
        "| test type | number | runs of each access specification |",
        "| --- | --- | --- |",
        *(f"| `{test.name}` | {test.number} | {test.meaning} |" for test in TESTS),
    ]
    lines = _fields("size")
    worker = _fields("Number of outstanding IOs") + _fields("Disk maximum size")[2:]
    return (
        _HEAD.replace("{tests}", "\n".join(tests))
        .replace("{labels}", "\n".join(_labels()))
        .replace("{lines}", "\n".join(lines))
        .replace("{worker}", "\n".join(worker))
    )


def _labels() -> list[str]:
    lines = ["| section | label | values | what it does |", "| --- | --- | --- | --- |"]
    for part, title in _TITLES.items():
        for row in LABELS:
            if row.part is part and not row.name.startswith("End "):
                spellings = ", ".join(f"`'{name}`" for name in (row.text, *row.older))
                lines.append(
                    f"| {title} | {spellings} | {row.accepted} | {_WORDS[row.effect]}{row.meaning} |"
                )
    return lines


def _fields(label: str) -> list[str]:
    rows = [field for field in FIELDS if field.label == label]
    return [
        "| value | accepted | what it does |",
        "| --- | --- | --- |",
        *(f"| `{row.name}` | {row.accepted} | {_WORDS[row.effect]}{row.meaning} |" for row in rows),
    ]


if __name__ == "__main__":
    sys.stdout.write(page())
