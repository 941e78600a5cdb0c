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
        ("<RequestCount>16", "<Distribution/><RequestCount>16", "Distribution (-rd) is not supported"),
        ("<RandSeed>", "<RequestCount>4</RequestCount><RandSeed>", "-O4 is not supported"),
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


def test_targets_that_differ_are_refused(script: ReadScript) -> None:
    text = profile(one("a") + one("b").replace("<WriteRatio>30", "<WriteRatio>0"))
    with pytest.raises(UserError, match="targets with different options") as caught:
        script(text, name="p.xml")
    assert caught.value.message.startswith("p.xml:5: ")


def test_a_profile_has_no_names(script: ReadScript) -> None:
    with pytest.raises(UserError, match="a profile has no names"):
        script(profile(), name="p.xml", substitutions={"a": "1"})
    assert kind_of_file(Path("p.xml")) == "diskspd"
