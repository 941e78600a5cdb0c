"""vdbench parameter files, read as vdbench reads them or, where that was plainly not meant, leniently.

Open this file first. The stages, each in a file of its own: `lexer` (lines to `keyword=value`), `tables` (the
keywords as data), `values` (numbers, lists, ranges), `blocks` (instances with defaults), `hosts` (what HDs are),
`settings` (typed and checked), `volumes` and `streams` (what SDs and WDs become) and `expand` (RDs, loops and
rates to the steps of a plan). The folder `fsd` has the last stages of file system workloads.
docs/vdbench.md says which keywords do what; `documentation` makes its tables from `tables`.

Automatic reading is strict unless a line has parameters behind a blank that strict reading would silently
drop, or strict reading fails and lenient reading does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RunPlan
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.blocks import Blocks, read_blocks
from linerate.workload.vdbench.expand import Workload, expand
from linerate.workload.vdbench.fsd import FileWorkload, expand_files, read_file_rd, read_fsd, read_fwd
from linerate.workload.vdbench.hosts import HostDefinitions, read_hosts
from linerate.workload.vdbench.lexer import has_lenient_patterns, parameters, read_lines
from linerate.workload.vdbench.settings import read_general, read_rd, read_sd, read_wd
from linerate.workload.vdbench.tables import Block, is_keyword

__all__ = ["load_vdbench"]


def load_vdbench(
    paths: Sequence[Path],
    *,
    substitutions: Mapping[str, str] | None = None,
    lenient: Literal["auto"] | bool = "auto",
    overrides: Overrides | None = None,
) -> RunPlan:
    """The plan of parameter files read as one. Raises UserError with everything that is wrong."""
    given = dict(substitutions or {})
    wanted = overrides or Overrides()
    if lenient != "auto":
        return _load(paths, given, wanted, lenient=lenient)
    if has_lenient_patterns(read_lines(paths, given, Problems(), lenient=True), is_keyword):
        return _load(paths, given, wanted, lenient=True)
    try:
        return _load(paths, given, wanted, lenient=False)
    except UserError as strict_error:
        try:
            return _load(paths, given, wanted, lenient=True)
        except UserError:
            raise strict_error from None


def _load(
    paths: Sequence[Path], substitutions: Mapping[str, str], overrides: Overrides, *, lenient: bool
) -> RunPlan:
    problems = Problems()
    lines = read_lines(paths, substitutions, problems, lenient=lenient)
    problems.raise_if_any()
    stream = parameters(lines, is_keyword, problems, lenient=lenient)
    blocks = read_blocks(stream, problems, lenient=lenient)
    hosts = read_hosts(blocks, problems)
    where = SourceLocation(", ".join(map(str, paths)), 0)
    if blocks[Block.FSD] or blocks[Block.FWD]:
        return _load_files(paths[0].stem, blocks, hosts, overrides, problems, where)
    workload = Workload(
        general=read_general(blocks.general, problems),
        hosts=hosts,
        sds={sd.name: read_sd(sd, hosts, problems) for sd in blocks[Block.SD]},
        wds={wd.name: read_wd(wd, hosts, problems) for wd in blocks[Block.WD]},
        default_wd=read_wd(blocks.defaults[Block.WD], hosts, problems),
        rds=[read_rd(rd, problems) for rd in blocks[Block.RD]],
    )
    for block, form in ((Block.SD, "sd=sd1,lun=/dev/sdb"), (Block.RD, "rd=rd1,wd=wd1,elapsed=30")):
        if not blocks[block] and not problems.errors:
            problems.error(where, f"no {block.value}= in the file", f"write for example {form}")
    if not problems.errors:
        luns = [
            (sd.name, lun or "") for sd in workload.sds.values() for lun in dict.fromkeys(sd.luns.values())
        ]
        overrides.luns.check(luns)
    steps, load_hosts = ([], None) if problems.errors else expand(workload, overrides, problems)
    problems.raise_if_any()
    plan = RunPlan(
        paths[0].stem,
        steps,
        problems.notices,
        start_commands=workload.general.start_commands,
        end_commands=workload.general.end_commands,
        hosts=load_hosts,
    )
    return overrides.apply(plan)


def _load_files(
    name: str,
    blocks: Blocks,
    hosts: HostDefinitions,
    overrides: Overrides,
    problems: Problems,
    where: SourceLocation,
) -> RunPlan:
    """The plan of a file with FSDs. Raises UserError."""
    for block in (Block.SD, Block.WD):
        for instance in blocks[block][:1]:
            what = f"{block.value}={instance.name}: SDs and WDs do not go with FSDs and FWDs"
            problems.error(instance.place, what, "write two files")
    for block, form in (
        (Block.FSD, "fsd=fsd1,anchor=/mnt/share"),
        (Block.FWD, "fwd=fwd1,fsd=fsd1,operation=read"),
        (Block.RD, "rd=rd1,fwd=fwd1,fwdrate=max,elapsed=30"),
    ):
        if not blocks[block] and not problems.errors:
            problems.error(where, f"no {block.value}= in the file", f"write for example {form}")
    workload = FileWorkload(
        general=read_general(blocks.general, problems),
        hosts=hosts,
        fsds=[read_fsd(fsd, problems) for fsd in blocks[Block.FSD]],
        fwds=[read_fwd(fwd, hosts, problems) for fwd in blocks[Block.FWD]],
        rds=[read_file_rd(rd, problems) for rd in blocks[Block.RD]],
    )
    problems.raise_if_any()
    steps = expand_files(workload, overrides, problems)
    problems.raise_if_any()
    plan = RunPlan(
        name,
        steps,
        problems.notices,
        start_commands=workload.general.start_commands,
        end_commands=workload.general.end_commands,
        hosts=hosts.load_hosts({}, {}),
    )
    return overrides.apply(plan)
