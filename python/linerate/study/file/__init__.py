"""Study files: TOML in, a resolved `Study` out.

Open `model` first: it is the file as its author writes it. `reader` checks it, reads what it names and resolves cases,
with the file, line and key of every mistake; `factors` makes cases of combinations.
"""

from linerate.study.file.reader import load_study, parse_study, shipped_studies, study_schema

__all__ = ["load_study", "parse_study", "shipped_studies", "study_schema"]
