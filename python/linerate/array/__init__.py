"""The array: its file, the process that serves it, and the control API by which it is managed.

Open this file first. `load_array_file` turns a commented TOML file into an `ArrayConfig`, whose JSON
(`ArrayConfig.seam_json`) the data plane serves. The file has the same keys as the JSON; in addition a size, a rate or a
time may be written as text (`size = "8g"`) and a secret may come from a file or an environment variable, so that it
is neither in the file nor on a command line. `EmbeddedArray` runs one array in a process of its own, for a demo or
a test, and leaves nothing behind. `linerate.array.control` is the HTTP API of an array that serves, and its client.
"""

from linerate.array.config import (
    AluaChange,
    ArrayChange,
    ArrayConfig,
    ArrayLimits,
    Chap,
    Portal,
    PortalGroup,
    TargetConfig,
    VolumeConfig,
)
from linerate.array.embedded import EmbeddedArray, eight_volumes
from linerate.array.file import example_names, example_text, load_array_file, parse_array_text

__all__ = [
    "AluaChange",
    "ArrayChange",
    "ArrayConfig",
    "ArrayLimits",
    "Chap",
    "EmbeddedArray",
    "Portal",
    "PortalGroup",
    "TargetConfig",
    "VolumeConfig",
    "eight_volumes",
    "example_names",
    "example_text",
    "load_array_file",
    "parse_array_text",
]
