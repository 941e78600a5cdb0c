"""From the flat stream of parameters to blocks: one general block, then HDs, SDs or FSDs, WDs or FWDs, RDs by name.

`hd=`, `sd=`, `fsd=`, `wd=`, `fwd=` or `rd=` NAME starts an instance, which owns every parameter up to the next start,
regardless of lines. The blocks come in this order, so the same word can start a block early in a file
and be a plain parameter later: `sd=` starts an SD until the first `wd=`, and names SDs from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.lexer import Parameter, unhide
from linerate.workload.vdbench.tables import (
    REFUSED_BLOCKS,
    Block,
    Effect,
    Keyword,
    blocks_with,
    find,
    nearest,
)
from linerate.workload.vdbench.values import Value, read_value

LOCAL_HOST = "localhost"

_STARTS: dict[Block, tuple[Block, ...]] = {
    Block.GENERAL: (Block.HD, Block.SD, Block.WD, Block.FSD, Block.FWD, Block.RD),
    Block.HD: (Block.HD, Block.SD, Block.WD, Block.FSD, Block.FWD, Block.RD),
    Block.SD: (Block.SD, Block.WD, Block.FSD, Block.FWD, Block.RD),
    Block.WD: (Block.WD, Block.FSD, Block.FWD, Block.RD),
    Block.FSD: (Block.FSD, Block.FWD, Block.RD),
    Block.FWD: (Block.FWD, Block.RD),
    Block.RD: (Block.RD,),
}
"""Which blocks a start keyword can open while a block is being read; elsewhere the word is a parameter."""

_NOT_IN_DEFAULT = ("lun", "format")
_HOST_FIELD = re.compile(r"#hosts|[$!#]host")
_MOST_COPIES = 10_240
_MOST_CLIENTS = 1024


@dataclass(slots=True)
class Instance:
    """A named HD, SD, FSD, WD, FWD or RD, or the general block: its values by canonical keyword, in order of
    appearance."""

    block: Block
    name: str
    place: SourceLocation
    values: dict[str, Value] = field(default_factory=dict)
    luns: tuple[tuple[Value, Value], ...] = ()
    """Of an SD with several `lun=`: each with its `host=`."""


@dataclass(slots=True)
class Blocks:
    """A file's instances, defaults applied, SD copies made."""

    general: Instance
    by_block: dict[Block, list[Instance]]
    defaults: dict[Block, Instance]

    def __getitem__(self, block: Block) -> list[Instance]:
        return self.by_block[block]


@dataclass(slots=True)
class _Raw:
    """An instance before its values are read."""

    block: Block
    start: Parameter | None
    parameters: list[Parameter] = field(default_factory=list)


def read_blocks(parameters: Sequence[Parameter], problems: Problems, *, lenient: bool) -> Blocks:
    """Sorts the parameters into instances and reads their values; what is wrong is noted in `problems`."""
    return _BlockReader(problems, lenient).read(parameters)


def _cut_into_raw(parameters: Sequence[Parameter], problems: Problems) -> Iterator[_Raw]:
    current = _Raw(Block.GENERAL, None)
    refused = False
    for parameter in parameters:
        start = next((b for b in _STARTS[current.block] if b.value == parameter.keyword), None)
        if parameter.keyword == "host" and current.block in (Block.GENERAL, Block.HD):
            start = Block.HD  # the spelling of older versions, which vdbench still reads
        if start is not None:
            yield current
            current, refused = _Raw(start, parameter), False
        elif parameter.keyword in REFUSED_BLOCKS and current.block is not Block.RD:
            if not refused:
                problems.error(parameter.place, f"{parameter.text}: {REFUSED_BLOCKS[parameter.keyword]}")
            refused = True
        elif not refused:
            current.parameters.append(parameter)
    yield current


class _BlockReader:
    def __init__(self, problems: Problems, lenient: bool) -> None:
        self._problems = problems
        self._lenient = lenient

    def read(self, parameters: Sequence[Parameter]) -> Blocks:
        place = parameters[0].place if parameters else SourceLocation("", 0)
        defaults = {block: Instance(block, "default", place) for block in Block}
        blocks = Blocks(Instance(Block.GENERAL, "", place), {block: [] for block in Block}, defaults)
        for raw in _cut_into_raw(parameters, self._problems):
            for one in self._per_host(raw, blocks):
                self._add(one, blocks)
        return blocks

    def _per_host(self, raw: _Raw, blocks: Blocks) -> Iterator[_Raw]:
        """An SD, FSD, WD or FWD that mentions $host or #host, once per host."""
        everything = [p for p in (raw.start, *raw.parameters) if p is not None]
        mentions = any(_HOST_FIELD.search(p.value) for p in everything)
        if raw.block in (Block.GENERAL, Block.HD, Block.RD) or not mentions:
            yield raw
            return
        labels = [hd.name for hd in blocks[Block.HD]] or [LOCAL_HOST]
        for index, label in enumerate(labels):
            fill = {"#hosts": str(len(labels)), "#host": str(index), "$host": label, "!host": label}

            def filled(parameter: Parameter, fill: dict[str, str] = fill) -> Parameter:
                value = _HOST_FIELD.sub(lambda match: fill[match.group()], parameter.value)
                return replace(parameter, value=value)

            start = filled(raw.start) if raw.start else None
            yield _Raw(raw.block, start, [filled(p) for p in raw.parameters])

    def _add(self, raw: _Raw, blocks: Blocks) -> None:
        if raw.start is None:
            self._fill(blocks.general, raw.parameters)
            return
        name, system = self._name(raw.start)
        instance = Instance(raw.block, name, raw.start.place)
        instance.values.update(blocks.defaults[raw.block].values)
        if system is not None:
            instance.values["system"] = system
        own = self._fill(instance, raw.parameters)
        if name == "default":
            for keyword in _NOT_IN_DEFAULT:
                if keyword in own:
                    self._problems.error(own[keyword].place, f"{own[keyword].shown}: not in {raw.start.text}")
            blocks.defaults[raw.block] = instance
            return
        copies = self._copies(instance)
        taken = {other.name: other for other in blocks[raw.block]}
        for copy in copies:
            if copy.name in taken:
                first = taken[copy.name].place
                self._problems.error(
                    copy.place, f"{raw.block.value}={copy.name}: named twice, first at {first}"
                )
        blocks[raw.block].extend(copies)

    def _name(self, start: Parameter) -> tuple[str, Value | None]:
        """The instance's name, and the system of an old style hd=(address,label)."""
        text = unhide(start.value)
        if not text.startswith("("):
            if start.keyword == "sd" and text == "concat":
                self._problems.error(
                    start.place, "sd=concat: a name that vdbench keeps for itself", "use another"
                )
            return text, None
        parts = text.strip("()").split(",")
        if start.keyword in ("hd", "host") and len(parts) == 2:
            return parts[1], Value(start.place, start.text, texts=(parts[0],))
        self._problems.error(start.place, f"{start.text}: one name expected", f"write {start.keyword}=name")
        return text, None

    def _fill(self, instance: Instance, parameters: Sequence[Parameter]) -> dict[str, Value]:
        """Reads the parameters into the instance; returns those that were its own."""
        own: dict[str, Value] = {}
        pairs: dict[str, list[Value]] = {"lun": [], "host": []}
        for parameter in parameters:
            keyword = find(instance.block, parameter.keyword)
            if keyword is None:
                self._unknown(instance.block, parameter)
                continue
            if instance.block is not Block.GENERAL and (keyword.name, parameter.value) == ("dedupratio", "1"):
                self._problems.notice(parameter.place, f"{parameter.text}: no effect, 1 means no duplicates")
                continue
            if instance.block is Block.GENERAL and (keyword.name, parameter.value) == ("journal", "no"):
                self._problems.notice(parameter.place, f"{parameter.text}: no effect, nothing is journalled")
                continue
            if keyword.effect is Effect.REFUSED:
                shown = f"{parameter.text}: {_full_name(parameter, keyword)}is not supported"
                self._problems.error(parameter.place, f"{shown}: {keyword.meaning}")
                continue
            if keyword.canonical == "wd" and "wd" in own:
                self._problems.error(parameter.place, f"{parameter.text}: given twice", "list them: wd=(a,b)")
                continue
            if keyword.effect is Effect.NONE:
                self._problems.notice(parameter.place, f"{parameter.text}: no effect, {keyword.meaning}")
                continue
            value = read_value(parameter, keyword, self._problems, lenient=self._lenient)
            if value is not None:
                own[keyword.canonical] = value
                if keyword.canonical in pairs:
                    pairs[keyword.canonical].append(value)
        if instance.block is Block.SD:
            instance.luns = self._pairs(instance.name, pairs["lun"], pairs["host"])
        for name in own:
            instance.values.pop(
                name, None
            )  # what a default had moves to the end: the order of loops, as in vdbench
        instance.values.update(own)
        return own

    def _pairs(self, name: str, luns: list[Value], hosts: list[Value]) -> tuple[tuple[Value, Value], ...]:
        """An SD's luns with the hosts of each; nothing if it has one lun, for all its hosts."""
        if len(luns) < 2 and len(hosts) < 2:
            return ()
        if len(luns) != len(hosts):
            what = f"sd={name}: {len(luns)} lun= and {len(hosts)} host=: several luns go with a host each"
            self._problems.error((*luns, *hosts)[-1].place, what, "write lun=a,host=h1,lun=b,host=h2")
            return ()
        return tuple(zip(luns, hosts, strict=True))

    def _unknown(self, block: Block, parameter: Parameter) -> None:
        shown = f"{parameter.text}: no keyword {parameter.keyword!r}"
        others = [other for other in blocks_with(parameter.keyword) if other is not block]
        if others:
            names = " or ".join(other.title for other in others)
            order = "general, hd, sd or fsd, wd or fwd, rd, in this order"
            self._problems.error(
                parameter.place,
                f"{shown} in the {block.title} block",
                f"it belongs to the {names} block; {order}",
            )
            return
        close = nearest(block, parameter.keyword)
        hint = f"did you mean {close}?" if close else f"see docs/vdbench.md for the keywords of {block.title}"
        self._problems.error(parameter.place, f"{shown} in the {block.title} block", hint)

    def _copies(self, instance: Instance) -> list[Instance]:
        """The copies that count=(start,n) or an HD's clients=n asks for, or the instance itself."""
        if instance.block is Block.HD:
            return self._clients(instance)
        value = instance.values.pop("count", None)
        if value is None:
            return [instance]
        numbers = value.numbers
        if (
            len(numbers) != 2
            or any(n != int(n) or n < 0 for n in numbers)
            or not 0 < numbers[1] <= _MOST_COPIES
        ):
            self._problems.error(
                value.place, f"{value.shown}: not a start and a number of copies", "count=(1,8)"
            )
            return [instance]
        start, copies = map(int, numbers)
        return [_numbered(instance, number) for number in range(start, start + copies)]

    def _clients(self, instance: Instance) -> list[Instance]:
        """An HD as the hosts that clients=n simulates: all of them are its system."""
        value = instance.values.pop("clients", None)
        if value is None:
            return [instance]
        count = value.numbers[0] if len(value.numbers) == 1 else 0
        if not 1 <= count <= _MOST_CLIENTS or count % 1:
            what = f"{value.shown}: not a number of clients, 1 to {_MOST_CLIENTS}"
            self._problems.error(value.place, what, "write clients=n")
            return [instance]
        system = instance.values.get("system") or Value(value.place, value.shown, texts=(instance.name,))
        return [
            replace(
                instance, name=f"{instance.name}_cl{number}", values={**instance.values, "system": system}
            )
            for number in range(int(count))
        ]


def _full_name(parameter: Parameter, keyword: Keyword) -> str:
    return "" if parameter.keyword == keyword.name else f"{keyword.name} "


def _numbered(instance: Instance, number: int) -> Instance:
    values = dict(instance.values)
    if lun := values.get("lun"):
        values["lun"] = _numbered_lun(lun, number)
    if anchor := values.get("anchor"):
        values["anchor"] = replace(anchor, texts=tuple(f"{text}{number}" for text in anchor.texts))
    luns = tuple((_numbered_lun(lun, number), host) for lun, host in instance.luns)
    return replace(instance, name=_with_number(instance.name, number), values=values, luns=luns)


def _numbered_lun(lun: Value, number: int) -> Value:
    return replace(lun, texts=tuple(_with_number(text, number) for text in lun.texts))


def _with_number(text: str, number: int) -> str:
    """`number` in place of a printf field (%d, %04d) or of *, else at the end."""
    if match := re.search(r"%(0?)([1-9]?)d", text):
        width = int(match.group(2) or 0)
        digits = str(number).zfill(width) if match.group(1) else str(number).rjust(width)
        return text[: match.start()] + digits + text[match.end() :]
    return text.replace("*", str(number), 1) if "*" in text else f"{text}{number}"
