"""The application: its verbs, and what becomes of a failure."""

from __future__ import annotations

import atexit
import gc
import inspect
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from linerate.cli import INTERRUPTED, check, demo, discover, report, run, schema, settings, watch
from linerate.cli.advice import verb as advise
from linerate.cli.array import verbs as array
from linerate.cli.backup import load as backup
from linerate.cli.host import verbs as host
from linerate.cli.hosts import verbs as hosts
from linerate.cli.job import presets
from linerate.cli.lab import verbs as lab
from linerate.cli.limits import probe, scale, tune
from linerate.cli.numbers import compare, export, history, imports
from linerate.cli.study import shipped
from linerate.cli.study import verbs as study
from linerate.errors import HostError, LinerateError, UserError, fault_text, is_full_disk
from linerate.interrupt import heard

app = typer.Typer(
    name="linerate",
    help="Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("demo")(demo.demo)
app.command("presets")(presets.presets)
app.command("studies")(shipped.studies)
app.add_typer(study.app, name="study")
app.add_typer(array.app, name="array")
app.add_typer(lab.app, name="lab")
app.add_typer(host.app, name="host")
app.add_typer(hosts.app, name="hosts")
app.command("discover")(discover.discover)
app.command("probe")(probe.probe)
app.command("scale")(scale.scale)
app.command("tune")(tune.tune)
app.command("backup-load")(backup.backup_load)
app.command("report")(report.report)
app.command("watch")(watch.watch)
app.command("check")(check.check)
app.command("advise")(advise.advise)
app.command("compare")(compare.compare)
app.command("export")(export.export)
app.command("import")(imports.import_results)
app.command("history")(history.history)
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
        bool,
        typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices."""


def command() -> Any:
    """The command line with all verbs. Paragraphs of their help texts are one line each, which the terminal wraps."""
    whole = typer.main.get_command(app)
    _join_lines(whole)
    return whole


def _join_lines(verb: Any) -> None:
    paragraphs = inspect.cleandoc(verb.help or "").split("\n\n")
    verb.help = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    for inner in getattr(verb, "commands", {}).values():
        _join_lines(inner)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code. Users see a message and the way out, never a traceback.

    LINERATE_DEBUG=1 shows the traceback as well.
    """
    # Nothing has to be taken apart at the end: a last search for garbage would keep the prompt back for half a second.
    atexit.register(gc.freeze)
    _write_what_the_terminal_has()
    try:
        with heard():
            code = command()(args=argv, prog_name="linerate", standalone_mode=False)
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


def _write_what_the_terminal_has() -> None:
    """A character that the terminal's encoding lacks becomes a question mark, and not the end of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def tell(error: LinerateError) -> None:
    """One message to standard error: what, where, and what to do."""
    from linerate.cli.console import error_width, folded

    width = error_width()
    for line in f"linerate: {error.message}".splitlines():
        sys.stderr.write(folded(line, width, "  ") + "\n")
    if error.hint:
        sys.stderr.write(folded(f"  -> {error.hint}", width, "     ") + "\n")


def _of_system(error: OSError) -> HostError:
    """What the system refused, in words of its own; a write does not know its file's name."""
    what = f"{error.filename}: " if error.filename else ""
    if is_full_disk(error):
        return HostError(f"{what}no space left on the disk", "make room there, or write elsewhere")
    return HostError(f"{what}{error.strerror or error}", "LINERATE_DEBUG=1 shows where it happened")


_OF_VALUE = re.compile(r"(?:Input should be|Value error,) .*", re.DOTALL)
"""What the option parser says of a value that it cannot take."""


def _of_option_parser(error: Exception) -> UserError | None:
    """A mistake that the option parser found, in the form of all others; None for another error."""
    message, context = getattr(error, "format_message", None), getattr(error, "ctx", None)
    if not callable(message):
        return None
    text = str(message()).rstrip(".")
    text = _OF_VALUE.sub(lambda found: fault_text(found[0]), text)
    text = " ".join(text.split())
    verb = context.command_path if context is not None else "linerate"
    form = _form_of(context) if "invalid value" not in text.lower() else ""
    way_out = f"write {form}; " if form else ""
    return UserError(text[:1].lower() + text[1:], f"{way_out}`{verb} --help` shows what there is")


def _form_of(context: Any) -> str:
    """How a verb is written, with its arguments and the options that it needs: `linerate array resize VOLUME SIZE`;
    empty for a group of verbs."""
    if context is None or hasattr(context.command, "commands"):
        return ""
    pieces = context.command.collect_usage_pieces(context)
    words = (re.sub(r"[{}]", "", piece) for piece in pieces if piece != "[OPTIONS]")
    needed = (
        f"{one.opts[0]} {one.metavar or one.type.name.upper()}"
        for one in context.command.params
        if one.required and one.param_type_name == "option"
    )
    return f"`{' '.join([context.command_path, *words, *needed])}`"


def _unexpected(error: Exception) -> int:
    if (mistake := _of_option_parser(error)) is not None:
        tell(mistake)
        return mistake.exit_code
    _debug_traceback()
    sys.stderr.write(f"linerate: {type(error).__name__}: {error}\n")
    sys.stderr.write("  -> this is a defect of Linerate; LINERATE_DEBUG=1 shows where it happened\n")
    return 1


def _debug_traceback() -> None:
    if os.environ.get("LINERATE_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
