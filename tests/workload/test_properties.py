"""Any file and command line give a plan or a UserError, never another exception."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linerate.errors import UserError
from linerate.quantity import parse_size, size_text
from linerate.toml_lines import key_lines
from linerate.workload import LunMap, Overrides, StepResult
from linerate.workload.plan import curve_target_iops
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.toml_file import parse_toml
from linerate.workload.url import parse_target
from linerate.workload.vdbench import load_vdbench
from linerate.workload.vdbench.lexer import Parameter
from linerate.workload.vdbench.tables import TABLES, Form, Keyword
from linerate.workload.vdbench.values import read_value

NULL = Overrides(luns=LunMap({"*": "null:8g"}))
KEYWORDS = sorted(
    {row.name for rows in TABLES.values() for row in rows} | {"hd", "sd", "wd", "rd", "fsd", "zz"}
)
VALUES = st.one_of(
    st.sampled_from(
        ["sd1", "sd*", "(sd1-sd3)", "wd1", "wd*", "max", "curve", "(1-8,d)", "(9-1,2)", "4k", "50%", "no"]
    ),
    st.integers(-5, 10_000).map(str),
    st.text('0123456789(),-*%kmgd"$ \t=#.', max_size=8),
)
PARAMETERS = st.builds("{}={}".format, st.sampled_from(KEYWORDS), VALUES)
SEPARATORS = st.sampled_from([",", ", ", "\n", " ,", " ", ",\n", "\t"])
TEXTS = st.lists(st.tuples(PARAMETERS, SEPARATORS), max_size=12).map(
    lambda pairs: "".join(parameter + separator for parameter, separator in pairs)
)
WHOLE = "sd=default,{}\nsd=sd,lun=x,count=(1,3)\nwd=default,{}\nwd=wd1,sd=sd*\nrd=rd1,wd=wd*,{}\n"
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def walk(text: str, lenient: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.vdb"
        path.write_text(text)
        plan = load_vdbench([path], lenient=lenient, overrides=NULL)
    run = plan.next(None)
    for _ in range(5):
        if run is None:
            return
        assert run.spec.seam_json()
        assert run.banner
        run = plan.next(StepResult(1234.5, 1.0, {"wd1": 1234.5}))


@pytest.mark.long
@QUIET
@given(st.one_of(st.text(max_size=60), TEXTS), st.booleans())
def test_any_text_is_a_plan_or_a_user_error(text: str, lenient: bool) -> None:
    with contextlib.suppress(UserError):
        walk(text.replace("\r", ""), lenient)


@QUIET
@given(PARAMETERS, PARAMETERS, PARAMETERS, st.booleans())
def test_any_parameters_in_a_whole_file_are_a_plan_or_a_user_error(
    sd: str, wd: str, rd: str, lenient: bool
) -> None:
    with contextlib.suppress(UserError):
        walk(WHOLE.format(sd, wd, rd), lenient)


@QUIET
@given(st.text(max_size=30), st.sampled_from(Form), st.booleans())
def test_any_value_is_read_or_noted(text: str, form: Form, lenient: bool) -> None:
    problems = Problems()
    parameter = Parameter(SourceLocation("f", 1), "key", text or "x")
    value = read_value(parameter, Keyword("key", "v", "m", form=form), problems, lenient=lenient)
    assert (value is None) == bool(problems.errors)


@given(st.integers(1, 500), st.integers(0, 500), st.integers(1, 50))
def test_a_range_ends_at_its_end_or_before(first: int, more: int, step: int) -> None:
    parameter = Parameter(SourceLocation("f", 1), "key", f"({first}-{first + more},{step})")
    value = read_value(parameter, Keyword("key", "v", "m", form=Form.NUMBERS), Problems(), lenient=False)
    assert value is not None
    assert list(value.numbers) == list(range(first, first + more + 1, step))


@QUIET
@given(
    st.text(max_size=40),
    st.sampled_from(["", "iscsi://", "iscsi://h/", "null:", "file:", "iscsi://a%b@[::1]:3/"]),
)
def test_any_target_is_read_or_a_user_error_and_stays_the_same(text: str, prefix: str) -> None:
    target = None
    with contextlib.suppress(UserError):
        target = parse_target(prefix + text, environ={})
    if target is not None:
        assert parse_target(target.url, environ={}).url == target.url


@QUIET
@given(st.text(max_size=80))
def test_any_toml_text_is_a_plan_or_a_user_error(text: str) -> None:
    key_lines(text)
    with contextlib.suppress(UserError):
        parse_toml(text, "w.toml", name="w", overrides=NULL)


JSON = st.recursive(
    st.one_of(
        st.integers(-9, 9), st.sampled_from(['"x"', '"4k"', '"s1"', '"50%"', "true", "1.5", "nan", "inf"])
    ).map(str),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    max_leaves=4,
)
STREAM_KEYS = st.sampled_from(
    ["size", "read", "volumes", "share", "rate", "range", "hit_area", "align", "stride"]
)
FILE_KEYS = st.sampled_from(
    ["elapsed", "rate", "curve", "sweep", "limit", "outstanding", "iscsi", "run", "cpus"]
)


@pytest.mark.long
@QUIET
@given(STREAM_KEYS, JSON, FILE_KEYS, JSON)
def test_any_toml_value_is_a_plan_or_a_user_error(
    key: str, value: str, file_key: str, file_value: str
) -> None:
    text = f'{file_key} = {file_value}\n[[volume]]\nname = "v"\n[[stream]]\nname = "s1"\n{key} = {value}\n'
    with contextlib.suppress(UserError):
        parse_toml(text, "w.toml", name="w", overrides=NULL)


@given(st.integers(1, 1 << 50))
def test_sizes_survive_being_shown(size_bytes: int) -> None:
    assert parse_size(size_text(size_bytes)) == size_bytes


@given(st.floats(0, 1e7), st.floats(0.1, 200))
def test_a_curve_point_is_never_below_its_percentage(max_iops: float, percent: float) -> None:
    target = curve_target_iops(max_iops, percent)
    exact = max_iops * percent / 100
    if target is None:
        assert exact < 1e-6
        return
    step = 100 if exact > 1000 else 10
    assert target % step == 0
    assert exact - 1e-6 <= target <= exact + step
