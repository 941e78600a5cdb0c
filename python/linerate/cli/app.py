"""The application: its verbs, and what becomes of a failure."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from linerate.cli import check, compare, demo, discover, report, run, schema, settings, watch
from linerate.cli.array import verbs as array
from linerate.cli.host import verbs as host
from linerate.cli.lab import verbs as lab
from linerate.cli.study import verbs as study
from linerate.errors import HostError, LinerateError, is_full_disk
from linerate.interrupt import heard

INTERRUPTED = 130

app = typer.Typer(
    name="linerate",
    help="Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("demo")(demo.demo)
app.add_typer(study.app, name="study")
app.add_typer(array.app, name="array")
app.add_typer(lab.app, name="lab")
app.add_typer(host.app, name="host")
app.command("discover")(discover.discover)
app.command("report")(report.report)
app.command("watch")(watch.watch)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("settings")(settings.settings)
app.command("schema")(schema.schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        from linerate import _core

        typer.echo(f"linerate {_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code. Users see a message and the way out, never a traceback.

    LINERATE_DEBUG=1 shows the traceback as well.
    """
    # Nothing has to be taken apart at the end: a last search for garbage would keep the prompt back for half a second.
    atexit.register(gc.freeze)
    try:
        with heard():
            code = app(args=argv, prog_name="linerate", standalone_mode=False)
    except LinerateError as error:
        _debug_traceback()
        tell(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): the rest of the output is dropped.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        _debug_traceback()
        failure = _of_system(error)
        tell(failure)
        return failure.exit_code
    except Exception as error:
        return _unexpected(error)
    return code if isinstance(code, int) else 0


def tell(error: LinerateError) -> None:
    """One message to standard error: what, where, and what to do."""
    sys.stderr.write(f"linerate: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"  -> {error.hint}\n")


def _of_system(error: OSError) -> HostError:
    """What the system refused, in words of its own; a write does not know its file's name."""
    what = f"{error.filename}: " if error.filename else ""
    if is_full_disk(error):
        return HostError(f"{what}no space left on the disk", "make room, or write elsewhere with --output")
    return HostError(f"{what}{error.strerror or error}", "LINERATE_DEBUG=1 shows where it happened")


def _unexpected(error: Exception) -> int:
    shows_itself = getattr(error, "show", None)
    if callable(shows_itself):  # a usage error of the option parser, with the usage line of the verb
        shows_itself()
        return int(getattr(error, "exit_code", 2))
    _debug_traceback()
    sys.stderr.write(f"linerate: {type(error).__name__}: {error}\n")
    sys.stderr.write("  -> this is a defect of Linerate; LINERATE_DEBUG=1 shows where it happened\n")
    return 1


def _debug_traceback() -> None:
    if os.environ.get("LINERATE_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
