"""docs/diskspd.md: what the reader does with a command, with tables made from `tables`.

`python -m linerate.workload.diskspd.documentation > docs/diskspd.md` writes it; a test holds the page against it.
"""

from __future__ import annotations

import sys

from linerate.workload.diskspd.profile import ELEMENTS
from linerate.workload.diskspd.tables import OPTIONS, OptionEffect, ToolName, ValueForm

_HEAD = """\
# Commands of diskspd and sqlio

Linerate runs command lines of diskspd (2.2) and of sqlio (1.5, and `-T` of sqlio2) unchanged: behind `--`, or in a
script (`.cmd`, `.bat`, `.ps1`, or a text with such lines). This page says what each option does here, and what is
refused and why. Its tables are made from the reader's own.

```
linerate run diskspd --target /dev/sdb -- -b8K -d60 -o32 -t4 -r -w30 -Sh E:\\io.dat   # one command
linerate run tests.cmd --map disk1=iscsi://10.0.0.5/iqn.2026-11.lab:disks/0    # all commands of a script, in order
linerate run tests.cmd DURATION=60 --target null:8g --dry-run                         # what it would do
linerate run tests.cmd --target null:8g --diskspd-xml results.xml                     # results as diskspd writes them
```

What changes the load and is not supported is refused with its line and the reason. Profiles of diskspd (XML) run too:
`linerate run FILE`, or a command with `-X`; [how they are read](#xml-profiles).

## Where the volumes are

The targets of all commands are the volumes `disk1`, `disk2`, .. in the order of the file. They are files and drives
of the host where the commands ran, so `--map NAME=TARGET` or `--target` says where each one is here: by its name,
by the text of the command (`E:\\io.dat`, `#1`), or by a pattern with one `*`. A target that is a path such as
/dev/sdb, or a URL, needs no `--map`. [Targets](workload.md#targets) and [what a run
overwrites](workload.md#what-a-run-overwrites) apply here too: a command that writes asks before it overwrites.

A file that does not exist is made if `-c`, `-f`, a size in sqlio's parameter file or `--size` gives its bytes, and
never in `/dev`. It is made unwritten: diskspd would fill its file first. On a volume that is there, these sizes are
the used part. Without a target sqlio uses `testfile.dat`.

Parameter files (`-F`) and profiles (`-X`) are found in any case of letters. One with a drive in its path is looked for
by its name in the folder of the script, with a notice.

## How a script is read

- A script is not run. Its commands are found line by line, and each one is a run, in the order of the file.
  `timeout`, `echo`, `copy` and all other lines are left out, and so is what comes behind `>`. A text that a script
  keeps in a name is a command where the name is.
- `^` (in `.ps1` a backquote) at the end of a line joins it with the next one.
- `for %%b in (8 64) do ..` and `for /l %%o in (1,1,8) do ..` in one line are unrolled. Values that `set NAME=..` or
  `$name = ..` gave in earlier lines are filled in, and so are those of `NAME=VALUE` behind the file. A word whose
  value only a running script would know is refused.
- A command behind `if exist ..` or `if (..)` runs in any case, also in a block of several lines; one in a loop that is
  not unrolled, or before a `goto` back, runs once; those of all branches of a `switch` run. Notices say so. A command
  beside an `else` is refused.
- Lines behind `rem`, `::`, `#` and `echo` are comments. The text is UTF-8, UTF-16 with its mark, or Windows-1252.

## The load

- **Threads.** `-t` threads with `-o` I/Os each have their product in flight on each target. `-F` counts them for
  all targets together; each thread has `-o` I/Os on every target. With `-O` beside `-F` a thread has `-O` I/Os on all
  targets together, and each one goes to a random target. All threads then share one queue, which one thread of the
  load generator serves; threads with positions of their own have a queue each.
- **Sequential I/O.** Each thread has a position of its own: `disk1.t2` is disk1 for the second thread. Without `-T`
  all threads go through the same blocks, and a cache then answers most of them; a notice says so. With `-T` a thread
  begins again at its own first byte, where one of diskspd goes on at that of the used part. With `-si` they share
  one position. Where the threads of sqlio begin is not documented; here they begin at the first byte.
- **Stripes of sqlio.** With `-f64`, or without `-f`, a file is a table: a stripe of 64 blocks is a row, `-i` counts the
  rows (64), and each thread has as many columns. It goes down a column, one I/O in each stripe, then down its next
  one, and begins again after its last. So `-b64 -t16` uses 256 MiB, and each thread four blocks of each stripe. `-f`
  must be a multiple of the threads. `-f1` is sequential; where its run is 64 GiB or more, to the end of the target.
- **Places.** Random places are multiples of the grid, counted from the first byte of the used part. They follow
  from the seed and are not those of diskspd. `-rd` divides the used part: `-rdpct90/10:0/10:5/20` gives 90 % of the
  random I/Os to its first tenth, none to the next, 5 % to the next fifth, and the rest to the rest. Parts of `-rdabs`
  are multiples of the grid; those behind the end are left out, and the others keep their proportion.
- **Bursts.** `-i` counts for all threads of a target, as in diskspd: with `-t4 -i10` each thread pauses after 2 I/Os.
- **Rates.** `-g` counts per thread and target. Here I/Os begin when they are due; a thread of diskspd would wait
  for its earlier ones.
- **Write data** repeats a pattern, as by default in diskspd: here it compresses 512:1, and no two pages are equal.
  With `-Zr` or `-Z1M` it does not compress.
- **Caching.** Without `-Sh`, `-Su` or `-Sr` files go through the page cache, as diskspd's do. LUNs have none.
- What diskspd 2.2 refuses is refused here: options behind a target, `-T` or `-si` with `-r`, `-i` without `-j`, `-rd`
  without `-r` or `-rs`, `-O` with `-g`.
  An option that is given twice counts as its last one says.
"""

_PROFILES = """
## XML profiles

`linerate run FILE` runs a profile of diskspd, as `diskspd -Rpxml` writes one. Each time span is a run. Elements are
read as their options, so messages name these; a number of 0 is as without the element. Targets of a time span that
have the same options are a stream of the run. Those with other options are further streams, `diskspd.2`, as in the
profiles VDI and SQL of VM Fleet; a target that several of them have is a volume for each, `disk1.g2`, on the same
device. With `-O` such targets are refused. Templates of targets (`*1`) are mapped as others.

`diskspd -Xprofile.xml -d60 a.dat b.dat` runs a profile from a command, in a script or behind `--`: the path counts from
the folder of the script. `-d`, `-W`, `-C` and `-z` replace those of all its time spans, and the targets replace the
templates `*1` and `*2`. Other options are refused with `-X`, as in diskspd.

"""
_RESULTS = """
## Results as diskspd's XML

`--diskspd-xml FILE` of `run` and of `report` writes the results as `diskspd -Rxml -L -D` does (diskspd 2.2), for
programs that read its XML. It works for every workload. An existing FILE is replaced after a question, or with
`--overwrite FILE` of `run`, `--overwrite` of `report`.

- Each step is a `TimeSpan`, once in `Profile` and once behind it. A script with several commands makes one file.
- A `Thread` is a queue: a volume of a stream. Threads of a command that share a queue (random I/O, `-si`) are one
  `Thread`, and its `RequestCount` has the I/Os of all of them. `Path` is where the volume is here.
- Times are service times, from submit to complete, in ms. Percentiles come from the run's histograms (0.1 % wide).
- CPU is that of the load host over all its CPUs; single CPUs are not taken, so there is no `CPU` element.
- Intervals are those of the run. Their smallest latencies are not kept, so `Bucket` has no such attribute, and the
  intervals of single targets are left out: only their standard deviations are there.
- `BlockSize` of a workload with several sizes is their mean. Errors are not in diskspd's form; `linerate report`
  shows them. Warm-up is left out.
"""


def page() -> str:
    """The whole page."""
    tables = [f"\n## Options of {tool}\n\n{_table(tool)}\n" for tool in ("diskspd", "sqlio")]
    return _HEAD + "".join(tables) + _PROFILES + _element_table() + _RESULTS


def _element_table() -> str:
    words = {"none": "no effect", "refused": "refused", "weight": "how often it is taken, with `-O`"}
    lines = ["| in | element | read as |", "| --- | --- | --- |"]
    for row in ELEMENTS:
        shown = words.get(row.form) or (f"`-{row.option}`" if row.option else "its parts")
        lines.append(f"| `{row.parent}` | `{row.name}` | {shown} |")
    return "\n".join(lines) + "\n"


def _table(tool: ToolName) -> str:
    words = {OptionEffect.DOES: "", OptionEffect.NONE: "no effect: ", OptionEffect.REFUSED: "refused: "}
    lines = ["| option | value | what it does |", "| --- | --- | --- |"]
    for row in OPTIONS:
        if row.tool == tool:
            value = "" if row.form is ValueForm.ANYTHING else row.form.value
            lines.append(f"| `-{row.letters}` | {value} | {words[row.effect]}{row.meaning} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
