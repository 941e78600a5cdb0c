"""Paths of a volume and how I/O is spread over them, as people write them.

Open this file first. `table` holds the forms of the TOML file and of the command line, `conf` reads and writes
multipath.conf, `check` finds what contradicts itself. What they make are the `PathSpec` and `MultipathSpec` of the run.
"""

from linerate.workload.multipath.check import Contradiction, contradiction
from linerate.workload.multipath.conf import ConfText, conf_text, parse_conf, read_conf
from linerate.workload.multipath.table import (
    PATH_FORM,
    MultipathTable,
    PathsField,
    PathTable,
    filled_paths,
    parse_path,
)

__all__ = [
    "PATH_FORM",
    "ConfText",
    "Contradiction",
    "MultipathTable",
    "PathTable",
    "PathsField",
    "conf_text",
    "contradiction",
    "filled_paths",
    "parse_conf",
    "parse_path",
    "read_conf",
]
