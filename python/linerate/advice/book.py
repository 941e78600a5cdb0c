"""The rules, read from `rules/*.toml`: one [[rule]] each."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from pydantic import TypeAdapter

from linerate.advice.rule import AdviceRule

_ADAPTER = TypeAdapter(tuple[AdviceRule, ...])


@cache
def rules() -> tuple[AdviceRule, ...]:
    """Every rule, by its number."""
    folder = resources.files("linerate.advice") / "rules"
    rows = [
        row
        for file in folder.iterdir()
        if file.name.endswith(".toml")
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["rule"]
    ]
    return tuple(sorted(_ADAPTER.validate_python(rows), key=lambda rule: rule.number))
