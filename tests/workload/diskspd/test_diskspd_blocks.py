"""Commands in conditions and loops over several lines: notices, or a refusal beside an else."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.workload import RunPlan

from .conftest import ReadScript

ONCE = "the commands of the loop that begins here run once"
ANYWAY = "the commands of the condition that begins here run in any case"
ALL = "the commands of all branches of the switch that begins here run"


def _said(plan: RunPlan) -> set[tuple[str, str]]:
    words = (ONCE, ANYWAY, ALL)
    return {(notice.where, notice.message) for notice in plan.warnings if notice.message in words}


POWERSHELL = """
function Run {
    if ($fast)
    {
        diskspd -d1 x
    }
    $o = 4
    while ($o -le 32) {  # { a comment
        diskspd -d2 -o$o x
        $o = $o * 2
    }
    1..5 | ForEach-Object { diskspd -d3 x }
    switch ($test) {
        "read" { diskspd -d4 x }
        "write" {
            diskspd -d5 -w100 x
        }
    }
    Write-Host "an { unbalanced quote"
}
try { $a = @{ b = 1 } } catch { exit }
diskspd -d6 x
"""


def test_blocks_of_powershell(script: ReadScript) -> None:
    plan = script(POWERSHELL, name="t.ps1")
    assert [run.spec.elapsed_s for run in plan.steps()] == [1, 2, 3, 4, 5, 6]
    assert _said(plan) == {("t.ps1:4", ANYWAY), ("t.ps1:8", ONCE), ("t.ps1:12", ONCE), ("t.ps1:13", ALL)}


BATCH = """
if exist x (
  diskspd -d1 x
)
for %%f in (a b) do (
  diskspd -d2 x
)
:again
diskspd -d3 x
if %errorlevel%==0 goto again
diskspd -d4 x
goto end
:end
"""


def test_blocks_of_cmd(script: ReadScript) -> None:
    plan = script(BATCH)
    assert [run.spec.elapsed_s for run in plan.steps()] == [1, 2, 3, 4]
    assert _said(plan) == {("t.cmd:2", ANYWAY), ("t.cmd:5", ONCE), ("t.cmd:8", ONCE)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.cmd", "if exist x (\ndiskspd -d1 a\n) else (\n\ndiskspd -d2 a\n)\n"),
        ("t.ps1", "if ($x) {\ndiskspd -d1 a\n}\nelse\n{\ndiskspd -d2 a\n}\n"),
        ("t.ps1", "if ($x) {\ndiskspd -d1 a\n} elseif ($y) {\n\n\ndiskspd -d2 a\n}\n"),
        ("t.psm1", "if ($x)\n{\n} else {\n\nforeach ($i in 1) { diskspd -d2 a }\n}\n"),
    ],
)
def test_a_command_beside_an_else_is_refused(name: str, text: str, script: ReadScript) -> None:
    line = 1 + text[: text.index("diskspd -d2")].count("\n")
    with pytest.raises(UserError, match=f"{name}:{line}: a command on one side of an else"):
        script(text, name=name)


def test_an_else_without_a_command_is_no_matter(script: ReadScript) -> None:
    text = "if ($x) {\ndiskspd -d1 a\n} else {\nWrite-Host none\n}\ndiskspd -d2 a\n"
    plan = script(text, name="t.ps1")
    assert [run.spec.elapsed_s for run in plan.steps()] == [1, 2]
    assert _said(plan) == {("t.ps1:1", ANYWAY)}


def test_endless_blocks_are_read_at_once(script: ReadScript) -> None:
    text = "if ($x) {\n" * 50_000 + "diskspd -d1 a\n"
    assert len(script(text, name="t.ps1")) == 1
