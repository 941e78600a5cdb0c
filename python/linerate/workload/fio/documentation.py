"""docs/fio.md: what the reader does with a job file, with tables made from `tables` and `refused`.

`python -m linerate.workload.fio.documentation > docs/fio.md` writes it; a test holds the page against it.
"""

from __future__ import annotations

import sys

from linerate.workload.fio.refused import ASYNCHRONOUS, ENTRY_OPERATIONS, REFUSED_ENGINES, SYNCHRONOUS
from linerate.workload.fio.tables import KEYWORDS, JobEffect, JobKeyword

_HEAD = """\
# fio job files

Linerate runs job files of fio unchanged. A file is one if it ends with `.fio` or `.job`, or if its first line that is
no comment is a section such as `[global]`. This page says what each keyword does here, and which are refused and why.
It is made from the reader's own tables. The reader follows fio 3.33.

```
linerate run randread.fio                                  # files and devices as the job file says
linerate run randread.fio --map '*=iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}'
linerate run randread.fio DISK=/dev/sdb                    # ${DISK} in the file; else from the environment
linerate run randread.fio --dry-run                        # what it would do
```

A keyword that changes the load and is not supported is refused with its line and the reason; nothing is ignored in
silence but what concerns fio's own output, clocks and buffers.

## Where the volumes are

The files of all jobs are the volumes `file1`, `file2`, .. in the order of the job file. `--map NAME=TARGET` puts one
elsewhere: by its name, by the text of its `filename=`, or by a pattern with one `*`. In the target `{n}` is the
number of the volume; `{n-1}` counts from 0. `filename=iscsi://host:port/target/lun` is a LUN itself.

A file that does not exist is made if `size=` or `filesize=` gives its bytes, and never in `/dev`. It is made
unwritten: fio would fill a file first that is read. [Targets](workload.md#targets) and [what a run
overwrites](workload.md#what-a-run-overwrites) apply here too: a job that writes asks before it overwrites.

## How a file is read

- `[global]` sets defaults for the jobs below it. It may come again and then adds to what was there.
- Section names may repeat. A name that begins with `global` is `[global]`, with a notice.
- `#` and `;` begin a comment anywhere in a line, as in fio: `filename=a#b` is `a`. There is no quoting.
- A keyword may stand alone where fio allows it (`time_based`, `stonewall`).
- If a keyword comes twice in a section, the later one counts.
- `include FILE` reads a file in place, from the current folder or else from beside the including file. An included
  file has no sections. Files that include each other in a circle are refused.
- `${NAME}` is the value given as `NAME=VALUE` after the file, else that of the environment. fio takes an empty text
  for a name without a value inside a longer text; here it is an error. `$ncpus`, `$pagesize` and `$mb_memory` are
  numbers of this host.
- A number may be an expression in parentheses: `(4*1024)`. (Debian's fio is built without.)
- Sizes take k, m, g, t and p, with 1024 or `kb_base`. `4k`, `4kb` and `4ki` are the same; `4kib` has the other base,
  as in fio. A fraction such as `1.5k` is refused: fio reads it as 1.
- Of several amounts with colons between them (`size=1g:2g`) the last one counts, as in fio.
- Blanks around `=` are left out. fio keeps those before a text.
- All whole numbers take these letters: `iodepth=1k` is 1024. `50%%` is `50%`. Where no comma separates values for
  reads and writes, a colon or else a minus sign does: `bs=4k-64k` are reads of 4k and writes of 64k.
- Lines have at most 8192 bytes. The text is UTF-8, UTF-16 with its mark, or Windows-1252; CRLF and tabs are fine.

## Jobs and runs

- **Jobs at the same time** are one run, each a stream. `stonewall` begins the next run. `new_group` only concerns
  fio's output.
- **iodepth** is per copy of a job (`numjobs`), and a volume has the sum: `iodepth=16`, `numjobs=4` on one file are 64
  I/Os in flight. With several files, a copy's I/Os are shared evenly among them. Where they do not go into the files
  (`iodepth=1`, `nrfiles=4`), the files of a copy have one queue, and the file of each I/O is drawn; not with a rate, a
  pause, `fsync` or `verify`.
- **numjobs.** Copies that go to random places are one stream. Sequential copies are a stream each, and all go through
  the same blocks from the start, as in fio; a cache then answers most of them. `offset_increment` separates them.
- **Several jobs on one file.** fio has a queue for each job. Equal jobs, and jobs whose reads and writes all have a
  rate, share a volume. Other jobs on one file have a volume each: `file1.a` and `file1.b` are file1 for the jobs a
  and b.
- **Directions.** `rw=rw` reads and writes in sequence, each from a place of its own, as in fio. `bs=4k,8k` gives writes
  a size of their own.
- **Numbers behind rw.** `rw=read:64k` leaves 64k out between two I/Os, here also before the first.
  `rw=randread:8` makes eight I/Os, one behind the other, at each random place.
- **End.** With `time_based` a run ends after `runtime`. Without it each job ends by itself, as in fio: sequential jobs
  with their part of the file, others when they have moved `size` or `io_size` (times `loops`), or as many bytes as
  their part of the file or device has; `runtime` ends them earlier. The run ends with the last of them. `time_based`
  without `runtime` has no effect.
- **Times of their own.** Jobs of one run may differ in `runtime`, `time_based` and `startdelay`: each begins and ends
  at its own time, and the run ends with the last. Their rates are averages over the whole run then, but for those in
  fio's JSON. They have the same `ramp_time`; with one, also the same `startdelay`. `exitall` is refused then.
- **Warm-up.** What is moved during `ramp_time` is not measured, but it is part of the amount, as in fio. A job that
  has moved all before the end of its `ramp_time` has no result: the run is void. fio reports all of it then.
- **Rates.** `rate_iops` and `rate` are open loops: I/Os start when they are due. Response times count from the
  intended start. fio limits reads and writes of a job each by itself: `rate_iops=400,100` are 400 reads and 100 writes
  per second, `rate_iops=400` are 400 of each, and `rwmixread` does not matter then. A direction without a rate goes as
  fast as it can.
- **Pauses.** With `thinktime=500` each copy waits 500 us after its I/O before the next one; with `thinktime_blocks=8`
  after every eighth. A copy has one I/O in flight then; with more in flight fio waits for all of them first, and
  Linerate refuses.
- **Checks of data.** `verify=crc32c` or another checksum turns verify mode on: each written block has a stamp with its
  address, and each read of a block that the run has written is compared. The first wrong block ends the run. fio reads
  all back after an amount was written; so does Linerate, at the same places in the same order, for jobs that only
  write. With `time_based` or `do_verify=0`, fio reads nothing back, and neither does Linerate. Checks of what an
  earlier run wrote are refused.
- **Random places** may repeat before all blocks have been used, as with `norandommap`. They follow from the seed
  (`randseed`, `--seed`), so two runs use the same ones, as with fio's `randrepeat=1`.
- **Areas.** `random_distribution=zoned:50/5:30/15:20/` gives 50 % of the random I/Os to the first 5 % of the used part,
  30 % to the next 15 %, and 20 % to the rest. `zoned_abs` has sizes instead of percentages. Areas behind the end of a
  device are left out; fio ends with an error there. zipf, pareto and normal are refused.
- **Flushes.** `fsync=8` flushes after every eighth write of a copy, as in fio: fdatasync of a file, SYNCHRONIZE CACHE
  of a LUN, FLUSH of a file of a share. A flush is in the place of an I/O and is counted apart (`sync` in fio's JSON).
  While one runs, the copy starts no I/O, except with engines that queue flushes (`io_uring`, `posixaio`). Copies with
  one I/O in flight each count their writes together, so there may be one flush more per copy at the end. Refused for
  jobs with several files: fio flushes the next of them. `sync=1` makes each write durable instead.
- **direct=0** is fio's default: files and block devices then go through the page cache of the host.
- **Errors.** The first I/O error ends a run unless `continue_on_error` says otherwise.
- **First block.** Devices are used from their first byte, as in fio. (A vdbench file leaves it out.)

## Results as fio's JSON

`--fio-json FILE` of `run` and of `report` writes the results as `fio --output-format=json+` would (fio 3.33), for
fio-plot, `fio_jsonplus_clat2csv` and other programs. It works for every workload, not only for job files. An existing
FILE is replaced after a question, or with `--overwrite FILE` of `run`, `--overwrite` of `report`.

- One entry of `jobs` is a job with all its copies, as with `group_reporting`. Of other workloads it is a stream of a
  step. `groupid` counts the runs.
- `job options` are all options of the job, also those of `[global]`; `rw`, `bs`, `iodepth` and `numjobs` are always
  there.
- `clat_ns` is service time: submit to complete. `lat_ns` is response time: intended start to complete. They differ for
  jobs with a rate. `slat_ns` is 0.
- Percentiles come from the run's histograms (0.1 % wide), at those of `percentile_list` if the job has it. `bins` are
  fio's.
- `bw` is KiB per second. Its smallest, largest and mean values are over the intervals of the run.
- The CPU time of the load is divided among the jobs of a run by their I/Os.
- Warm-up is left out. What is not counted is 0: `iodepth_level`, `ctx`, `majf`, `minf`, `short_ios`.

## Engines

The I/O is always Linerate's own. The engine says only whether `iodepth` counts:

- `iodepth` I/Os in flight: {asynchronous}.
- One I/O in flight for each copy: {synchronous}.

### Files made, looked up and removed

A job with {entries} is a [file system workload](vdbench.md): one operation on each of its files, by
as many threads as `numjobs` says. The files of all copies are in one folder, as in fio, but with vdbench's names:
`DIRECTORY/NAME/vdb.1_1.dir/vdb_f0001.file`, where NAME is `filename_format` without its `$`.

- `filecreate` removes files of an earlier run first, so that each file is made. `filestat` and `filedelete` make
  the files that are missing first and fill those that are not whole, as fio does, unless `create_on_open=1` is there.
- Without `time_based` each file has its turn once. With it, `filestat` goes round the files for `runtime`.
- Several such jobs run at the same time if they have the same engine, `numjobs`, `nrfiles` and times, and files of
  their own. No other job runs with them: write `stonewall` in the next one.
- fio counts the blocks of the files as I/Os. Linerate counts operations, as fio's `clat` does.

Refused:

{engines}
"""


def page() -> str:
    """The whole page."""
    head = (
        _HEAD.replace("{asynchronous}", _words(ASYNCHRONOUS))
        .replace("{synchronous}", _words(SYNCHRONOUS))
        .replace("{entries}", _words(tuple(ENTRY_OPERATIONS)))
        .replace("{engines}", "\n".join(_engines()))
    )
    return "\n".join([head, "## Keywords", "", *_supported(), "", *_unless(), "", *_by_reason()])


def _words(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _engines() -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in REFUSED_ENGINES.items():
        reasons.setdefault(reason, []).append(name)
    return [f"- {_words(names)}: {reason}." for reason, names in reasons.items()]


def _supported() -> list[str]:
    rows = [row for row in KEYWORDS if row.effect is JobEffect.DOES]
    lines = ["| keyword | accepted | default | what it does |", "| --- | --- | --- | --- |"]
    return lines + [f"| {_names(row)} | {row.accepted} | {row.default} | {row.meaning} |" for row in rows]


def _unless() -> list[str]:
    rows = [row for row in KEYWORDS if row.effect is JobEffect.UNLESS]
    head = [
        "### Accepted with these values only",
        "",
        "| keyword | accepted | why not others |",
        "| --- | --- | --- |",
    ]
    return head + [f"| {_names(row)} | {row.accepted} | {row.meaning} |" for row in rows]


def _by_reason() -> list[str]:
    lines: list[str] = []
    for title, effect in (("Refused", JobEffect.REFUSED), ("Accepted without effect", JobEffect.NONE)):
        reasons: dict[str, list[str]] = {}
        for row in KEYWORDS:
            if row.effect is effect:
                reasons.setdefault(row.meaning, []).append(row.name)
        lines += [
            f"### {title}",
            "",
            *(f"- {_words(names)}: {reason}." for reason, names in reasons.items()),
            "",
        ]
    return lines


def _names(row: JobKeyword) -> str:
    return _words([row.name, *row.aliases])


if __name__ == "__main__":
    sys.stdout.write(page())
