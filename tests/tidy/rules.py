"""The house rules as data: limits, forbidden words and calls, and who may use whom.

The tests beside this file read the tree and hold it against these tables. A rule is changed here, not in a test.
"""

from __future__ import annotations

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 14
LINE_WIDTH_MAX = 124  # code is formatted to 110; comments may run on a little

# Files that name a fact per line (tables, fixtures, generated text) and are not read from top to bottom.
FILE_LINES_FREE = {"Cargo.lock", "LICENSE", "CHANGELOG.md"}

# Text after comments and strings were removed -> the folders that may contain it.
FORBIDDEN_RUST = {
    r"\bInstant::now\b": ("crates/io", "bench"),
    r"\bSystemTime::now\b": ("crates/io", "bench"),
    r"\bthread::sleep\b": ("crates/io", "bench"),
    r"\bunsafe\b": ("crates/io", "bench"),
    r"\b(?:todo|unimplemented|dbg)!": (),
    r"#!?\[allow\((?:dead_code|unused)": (),
}
FORBIDDEN_PYTHON_CALLS = {
    "time.sleep": ("python/linerate/cli", "tests", "bench"),
    "eval": (),
    "exec": (),
    "os.system": (),
    "breakpoint": (),
}

# Words that tell where or how the text was made instead of what the product is.
BANNED_WORDS = (
    r"/(?:work|farm|root|home/\w+)/",
    r"\bTODO\b|\bFIXME\b|\bXXX\b",
    r"artifactory|pypi\.org/simple|index\.crates\.io|--index-url",
    r"\bclaude\b|\banthropic\b|\bchatgpt\b|\bLLM\b",
)

# Crate -> the crates of this workspace that it may depend on. Downwards only; io knows nobody.
CRATE_EDGES = {
    "scsi": set(),
    "iscsi": set(),
    "io": set(),
    "target": {"scsi", "iscsi", "io"},
    "initiator": {"scsi", "iscsi", "io"},
    "load": {"initiator", "io", "iscsi"},
    "sim": {"io", "iscsi", "scsi", "target", "initiator", "load"},
    "py": {"target", "initiator", "load", "io"},
}
# For tests only, a crate may also use these.
CRATE_DEV_EDGES = {"target": {"initiator"}, "initiator": {"target"}, "load": {"target"}}

# Python packages from the bottom up: a package imports from lower rows and from itself, never sideways or upwards.
PYTHON_LAYERS = (
    {"errors", "_core"},
    {"workload", "results", "array"},
    {"analysis"},
    {"report"},
    {"cli"},
)
