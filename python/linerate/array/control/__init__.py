"""The control API of an array that serves: HTTP on loopback, a token, an OpenAPI document, and a client.

Open this file first. `commands` is the table of what may be asked, `service` carries it out and decides who
may ask, `api` puts it on HTTP, `listener` and `admission` hold the limits of an HTTP server, `server` has the
three ways in, `place` lets the verbs of `linerate array` find an array and its socket, `report` is what an
array says about itself. `identity` is who an array is, `partnership` who its partners are, `tls` how they
prove it.

What needs an HTTP server is imported when one is started (`ControlServer`), not before.
"""

from linerate.array.control.client import ControlClient
from linerate.array.control.commands import COMMANDS, ArrayCommand, parse_command
from linerate.array.control.registration import Registration, find, read_token, running
from linerate.array.control.report import ArrayReport
from linerate.array.control.service import ControlService

__all__ = [
    "COMMANDS",
    "ArrayCommand",
    "ArrayReport",
    "ControlClient",
    "ControlService",
    "Registration",
    "find",
    "parse_command",
    "read_token",
    "running",
]
