"""Whether the tests would notice: each guard of the code is taken away once, and some test has to fail.

`tables/` names the guards, one file for those of the same tests; `__main__.py` (`make mutants`) takes them away;
`test_table.py` keeps the tables true.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """One guard: its name, and its text in the source."""

    table: str
    """Of which table: which tests are to notice its absence."""
    name: str
    file: str
    old: str
    new: str
    """What takes the place of `old`."""
    why_unnoticed: str | None = None
    """Why no test can notice; then none may."""

    def spoil(self, root: Path) -> None:
        """Takes the guard away in the tree at `root`."""
        path = root / self.file
        text = path.read_text("utf-8")
        assert text.count(self.old) == 1, (
            f"{self.name}: its text is {text.count(self.old)} times in {self.file}"
        )
        path.write_text(text.replace(self.old, self.new), "utf-8")

    def mend(self, root: Path) -> None:
        """Puts it back."""
        (root / self.file).write_text((ROOT / self.file).read_text("utf-8"), "utf-8")


def mutants() -> list[Mutant]:
    """All of them, in the order of the tables."""
    return [
        Mutant(table=path.stem, **one)
        for path in sorted(Path(__file__).with_name("tables").glob("*.toml"))
        for one in tomllib.loads(path.read_text("ascii"))["mutants"]
    ]
