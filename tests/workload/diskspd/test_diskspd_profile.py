"""XML profiles of diskspd: their time spans as runs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload.foreign import kind_of_file

from .conftest import ReadScript, command

TARGET = """
      <Target>
        <Path>{path}</Path>
        <BlockSize>8192</BlockSize>
        <BaseFileOffset>0</BaseFileOffset>
        <SequentialScan>false</SequentialScan>
        <DisableOSCache>true</DisableOSCache>
        <WriteThrough>true</WriteThrough>
        <WriteBufferContent><Pattern>random</Pattern>
          <RandomDataSource><SizeInBytes>1048576</SizeInBytes></RandomDataSource></WriteBufferContent>
        <ParallelAsyncIO>false</ParallelAsyncIO>
        <FileSize>1073741824</FileSize>
        <Random>4096</Random>
        <ThreadStride>0</ThreadStride>
        <MaxFileSize>0</MaxFileSize>
        <RequestCount>16</RequestCount>
        <WriteRatio>30</WriteRatio>
        <Throughput{unit}>{rate}</Throughput>
        <ThreadsPerFile>4</ThreadsPerFile>
        <IOPriority>3</IOPriority>
        <Weight>1</Weight>
      </Target>"""
PROFILE = """<Profile>
  <Progress>0</Progress>
  <ResultFormat>xml</ResultFormat>
  <TimeSpans>
    <TimeSpan>
      <Duration>60</Duration>
      <Warmup>0</Warmup>
      <ThreadCount>0</ThreadCount>
      <RandSeed>7</RandSeed>
      <Targets>{targets}</Targets>
    </TimeSpan>
  </TimeSpans>
</Profile>
"""


def one(path: str = "*1", rate: int = 0, unit: str = "") -> str:
    return TARGET.format(path=path, rate=rate, unit=unit)


def profile(targets: str = "") -> str:
    return PROFILE.format(targets=targets or one())


def test_a_profile_is_read_as_its_command(script: ReadScript) -> None:
    text = profile(one("*1") + one("E:\\a file.dat"))
    (run,) = script(text, name="p.xml").steps()
    line = "diskspd -d60 -W0 -z7 -b8192 -Suw -c1G -r4096 -o16 -w30 -t4 -Z1M *1 E:\\a_file.dat"
    (expected,) = command(line).steps()
    assert run.spec == expected.spec
    assert run.source == "p.xml:5"


def test_rates_have_their_unit(script: ReadScript) -> None:
    for target in (one(rate=8192), one(rate=1000, unit=' unit="IOPS"')):
        (step,) = script(profile(target), name="p.xml").plain_steps
        assert (step.rate.kind, step.rate.value) == ("fixed", 4000)


def test_sequential_targets(script: ReadScript) -> None:
    stride = "<StrideSize>8192</StrideSize><InterlockedSequential>{}</InterlockedSequential>"
    for interlocked, volumes in (("true", 1), ("false", 4)):
        text = profile().replace("<Random>4096</Random>", stride.format(interlocked))
        (run,) = script(text, name="p.xml").steps()
        assert len(run.spec.volumes) == volumes
        assert run.spec.streams[0].random_percent == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(script: ReadScript, encoding: str) -> None:
    text = f'<?xml version="1.0"?>\r\n<!-- gr\xf6\xdfe --> <!-- b -->\r\n{profile()}'
    (run,) = script(text.encode(encoding), name="p.xml").steps()
    assert run.source == "p.xml:7"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</Profile>", "", "p.xml:35: no XML: no element found"),
        ("<BlockSize>", "<Blocksize>", "p.xml:13: no XML: mismatched tag"),
        ("<Progress>0", "<!DOCTYPE x><Progress>0", "no XML"),
        ("<Duration>60</Duration>", "<Length>60</Length>", "p.xml:6: TimeSpan has no element Length"),
        ("<TimeSpans>", "<TimeSpans><Span/>", "p.xml:4: TimeSpans has no element Span"),
        ("<Path>*1</Path>", "", "a target without a path"),
        ("<Duration>60", "<Duration>1m", "p.xml:5: diskspd: duration s '1m'"),
        ("<RequestCount>16", "<Distribution/><RequestCount>16", "p.xml:25: Distribution needs one element"),
        ("<RequestCount>16", "<FlushType>x</FlushType><RequestCount>16", "FlushType (-N) is not supported"),
        ("<Weight>1", "<Weight>-1", "Weight -1"),
        ("<Path>*1", "<Path>*0", "*0: no template"),
        ("<Path>*1", "<Path>*x", "*x: no template"),
        ("<DisableOSCache>true", "<DisableOSCache>yes", "DisableOSCache yes"),
        ("<Pattern>random", "<Pattern>odd", "Pattern odd"),
        ("<Path>*1", "<Path>" + "<a>" * 20, "too deep"),
        ("<Path>*1", "<Path>" + "x" * 10_000_000, "more than 32,768 characters"),
        ("<Progress>0", "<Progress>0" + "<ETW/>" * 100_000, "more than 100,000 elements"),
    ],
)
def test_bad_profiles(script: ReadScript, old: str, new: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        script(profile().replace(old, new, 1), name="p.xml")
    assert words in caught.value.message


def test_a_document_type_is_refused(script: ReadScript) -> None:
    text = '<?xml version="1.0"?><!DOCTYPE Profile [<!ENTITY a "b">]><Profile/>'
    with pytest.raises(UserError, match="an XML or HTML file"):
        script(text, name="p.xml")


def distribution(kind: str, *parts: tuple[object, object]) -> str:
    ranges = "".join(f'<Range IO="{share}">{length}</Range>' for share, length in parts)
    return f"<Distribution><{kind}>{ranges}</{kind}></Distribution>"


@pytest.mark.parametrize(
    ("element", "parts"),
    [
        # The distribution of VM Fleet's profile General, and how diskspd -Rpxml writes it.
        (distribution("Percent", (95, 5), (4, 10)), ((95, 5), (4, 10), (1, 85))),
        (distribution("Percent", (95, 5), (4, 10), (1, 85)), ((95, 5), (4, 10), (1, 85))),
        (distribution("Absolute", (90, 1 << 30)), ((90, 1 << 30), (10, 0))),
        (distribution("Absolute", (90, 1 << 30), (10, 0)), ((90, 1 << 30), (10, 0))),
        (distribution("Absolute", (100, 0)), None),
    ],
)
def test_a_distribution(
    script: ReadScript, element: str, parts: tuple[tuple[float, float], ...] | None
) -> None:
    (run,) = script(profile().replace("<ThreadStride>", f"{element}<ThreadStride>"), name="p.xml").steps()
    found = run.spec.streams[0].distribution
    assert (found and found.parts) == parts


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (distribution("Percent", (95, 5), (4, 95)), "99 % of the I/Os in 100 % of the target"),
        (distribution("Percent", ("", 5)), "no part of a distribution"),
        (distribution("Percent", (10, "x")), "no part of a distribution"),
        (distribution("Absolute", (10, 0), (90, 1 << 20)), "no part of a distribution"),
        (distribution("Other", (10, 5)), "needs one element Percent or Absolute"),
        (distribution("Percent", (50, 50)) + distribution("Percent", (60, 50)), "Distribution twice"),
        ("<Distribution><Percent/></Distribution>", "needs one element Percent or Absolute"),
    ],
)
def test_a_distribution_that_diskspd_refuses(script: ReadScript, element: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        script(profile().replace("<ThreadStride>", f"{element}<ThreadStride>"), name="p.xml")
    assert words in caught.value.message


def test_targets_of_a_shared_queue_have_their_weights(script: ReadScript) -> None:
    text = profile(one("a") + one("b").replace("<Weight>1", "<Weight>3"))
    text = text.replace("<ThreadCount>0", "<RequestCount>4</RequestCount><ThreadCount>2")
    text = text.replace("<ThreadsPerFile>4", "<ThreadsPerFile>1")
    (run,) = script(text, name="p.xml").steps()
    queues = [volume.queue for volume in run.spec.volumes]
    assert [(queue.name, queue.weight) for queue in queues if queue] == [("all", 1), ("all", 3)]
    assert [volume.outstanding for volume in run.spec.volumes] == [8, 8]
    with pytest.raises(UserError, match="a target of Weight 0"):
        script(text.replace("<Weight>3", "<Weight>0"), name="p.xml")


def test_a_command_runs_a_profile(script: ReadScript) -> None:
    Path("set").mkdir()
    Path("set", "p.xml").write_text(profile(one("*1") + one("*2")))
    line = "diskspd.exe -Xset\\p.xml -d5 -W2 -z3 -Rxml E:\\a.dat F:\\b.dat\n"
    plan = script("diskspd -b8K -r x\n" + line)
    first, second = plan.steps()
    assert first.spec.streams[0].random_percent == 100
    assert (second.spec.elapsed_s, second.spec.warmup_s, second.spec.seed) == (5, 2, 3)
    assert second.source == "set/p.xml:5"
    assert not any("given twice" in notice.message for notice in plan.warnings)
    (alone,) = command("diskspd -Xset/p.xml").steps()
    assert (alone.spec.elapsed_s, alone.spec.seed) == (60, 7)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("diskspd -Xp.xml a b", "b: the profile has no template *2, which diskspd refuses"),
        ("diskspd -Xq.xml a", "*2: the command has no target with this number, which diskspd refuses"),
    ],
)
def test_targets_that_do_not_fit_the_templates(script: ReadScript, line: str, words: str) -> None:
    Path("p.xml").write_text(profile(one("*1")))
    Path("q.xml").write_text(profile(one("*1") + one("*2")))
    with pytest.raises(UserError) as caught:
        script(line + "\n")
    assert words in caught.value.message


def test_targets_that_differ_are_streams_of_one_run(script: ReadScript) -> None:
    # As in VM Fleet's profile VDI: writes and reads of one file, each with its size, places and rate.
    writes = one(rate=6, unit=' unit="IOPS"').replace("<BlockSize>8192", "<BlockSize>32768")
    writes = writes.replace("<Random>4096", "<Random>32768").replace("<WriteRatio>30", "<WriteRatio>100")
    reads = one(rate=12, unit=' unit="IOPS"').replace("<WriteRatio>30", "<WriteRatio>0")
    (step,) = script(profile(writes + reads), name="p.xml").plain_steps
    spec = step.run.spec
    assert [(volume.name, volume.shares_device) for volume in spec.volumes] == [
        ("disk1.g1", True),
        ("disk1.g2", True),
    ]
    assert len({volume.url for volume in spec.volumes}) == 1
    found = [(one.name, one.volumes, one.read_percent, one.align_bytes) for one in spec.streams]
    assert found == [("diskspd.1", ("disk1.g1",), 0, 32768), ("diskspd.2", ("disk1.g2",), 100, 4096)]
    # Four threads each: 24 and 48 I/Os per second.
    assert (step.rate.kind, step.rate.value) == ("fixed", 72)
    assert [one.share_percent for one in spec.streams] == [pytest.approx(100 / 3), pytest.approx(200 / 3)]


def test_a_rate_of_some_targets_is_their_own(script: ReadScript) -> None:
    text = profile(one("a", rate=100, unit=' unit="IOPS"') + one("b") + one("c"))
    (step,) = script(text, name="p.xml").plain_steps
    assert [(one.volumes, one.rate_iops) for one in step.run.spec.streams] == [
        (("disk1",), 400),
        (("disk2", "disk3"), None),
    ]
    assert step.rate.kind == "max"


def test_targets_that_differ_share_no_queue(script: ReadScript) -> None:
    text = profile(one("a") + one("b").replace("<WriteRatio>30", "<WriteRatio>0"))
    text = text.replace("<ThreadCount>0", "<RequestCount>4</RequestCount><ThreadCount>2")
    with pytest.raises(UserError, match="share no queue here") as caught:
        script(text.replace("<ThreadsPerFile>4", "<ThreadsPerFile>1"), name="p.xml")
    assert caught.value.message.startswith("p.xml:5: ")


def test_a_profile_has_no_names(script: ReadScript) -> None:
    with pytest.raises(UserError, match="a profile has no names"):
        script(profile(), name="p.xml", substitutions={"a": "1"})
    assert kind_of_file(Path("p.xml")) == "diskspd"
