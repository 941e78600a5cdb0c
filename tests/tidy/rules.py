"""The house rules as data: limits, forbidden words and calls, and who may use whom.

The tests beside this file read the tree and hold it against these tables. A rule is changed here, not in a test.
"""

from __future__ import annotations

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 14
LINE_WIDTH_MAX = 124  # code is formatted to 110; comments may run on a little

# Files that name a fact per line (tables, fixtures, generated text) and are not read from top to bottom.
FILE_LINES_FREE = {"Cargo.lock", "LICENSE", "CHANGELOG.md", "claims.toml"}

# Tests over real sockets and allocation counters need the real clock and the real allocator.
_RUST_TESTS = r"crates/[\w-]+/(?:tests|examples)/"
_SYSTEM = (r"crates/io/", r"bench/", _RUST_TESTS)
# Text after comments and strings were removed -> patterns of the paths that may contain it.
FORBIDDEN_RUST = {
    r"\bInstant::now\b": _SYSTEM,
    r"\bSystemTime::now\b": _SYSTEM,
    r"\bthread::sleep\b": _SYSTEM,
    r"\bunsafe\b": _SYSTEM,
    r"\b(?:todo|unimplemented|dbg)!": (),
    # A support module is compiled into several test programs, none of which uses all of it.
    r"#!?\[allow\((?:dead_code|unused)": (_RUST_TESTS,),
}
FORBIDDEN_PYTHON_CALLS = {
    "time.sleep": ("tests/", "bench/"),
    "eval": (),
    "exec": (),
    "os.system": (),
    "breakpoint": (),
}

# What does not belong in a file: paths of one machine, promises without a reason, the address of a package index.
BANNED_WORDS = (
    r"/(?:work|root|home/\w+)/",
    r"\bTODO\b|\bFIXME\b|\bXXX\b",
    r"--index-url|--extra-index-url",
)

# Crate -> the crates of this workspace that it may depend on. Downwards only; io depends on none of them.
CRATE_EDGES = {
    "blame": set(),
    "crc32c": set(),
    "scsi-proto": set(),
    "scsi": {"scsi-proto"},
    "iscsi-proto": {"crc32c", "scsi-proto"},
    "io": {"crc32c"},
    "storage": {"blame", "crc32c", "io"},
    "iscsi-target": {"blame", "storage", "iscsi-initiator", "scsi", "iscsi-proto", "io"},
    "iscsi-initiator": {"blame", "scsi-proto", "iscsi-proto", "io"},
    "smb": {"blame", "io"},
    "load": {"blame", "storage", "iscsi-initiator", "smb", "io", "iscsi-proto", "vhdx"},
    "sim": {"storage", "io", "iscsi-proto", "scsi", "iscsi-target", "iscsi-initiator", "load", "link"},
    "link": set(),
    "vhdx": {"blame", "crc32c"},
    "fabric": {"blame", "link", "io"},
    "py": {"blame", "storage", "iscsi-target", "iscsi-initiator", "smb", "load", "io", "fabric"},
}
# For tests only, a crate may also use these.
CRATE_DEV_EDGES = {
    "storage": {"sim"},
    "sim": {"smb", "vhdx"},
    "vhdx": {"sim"},
    "smb": {"sim"},
    "iscsi-target": {"iscsi-initiator"},
    "iscsi-initiator": {"iscsi-target"},
    "load": {"iscsi-target"},
}

# Packages whose library has another name than theirs.
CRATE_LIBRARIES = {"md-5": "md5"}

# Python packages from the bottom up: a package imports from lower rows and from itself, never sideways or upwards.
PYTHON_LAYERS = (
    {"errors", "model", "_core"},
    {"interrupt", "node", "filename", "rpc", "plural", "quantity", "certificate", "studies", "toml_lines"},
    {"workload", "results", "array"},
    {"volumes", "setting"},
    {"san"},
    {"host"},
    {"settings"},
    {"lab"},
    {"analysis"},
    {"run", "imported"},
    {"cluster", "probe", "scale", "backup"},
    {"study"},
    {"history", "advice", "tune"},
    {"report"},
    {"recommend"},
    {"watch"},
    {"cli"},
    {"__main__"},
)
