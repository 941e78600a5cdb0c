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
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from linerate.cli import INTERRUPTED
from linerate.errors import HostError, LinerateError, UserError, fault_text, is_full_disk
from linerate.interrupt import heard

VERBS = {
    "run": "run:run",
    "demo": "demo:demo",
    "presets": "job.presets:presets",
    "studies": "study.shipped:studies",
    "study": "study.verbs:app",
    "array": "array.verbs:app",
    "lab": "lab.verbs:app",
    "host": "host.verbs:app",
    "hosts": "hosts.verbs:app",
    "discover": "discover:discover",
    "probe": "limits.probe:probe",
    "scale": "limits.scale:scale",
    "tune": "limits.tune:tune",
    "backup-load": "backup.load:backup_load",
    "report": "report:report",
    "watch": "watch:watch",
    "check": "check:check",
    "advise": "advice.verb:advise",
    "compare": "numbers.compare:compare",
    "export": "numbers.export:export",
    "import": "numbers.imports:import_results",
    "history": "numbers.history:history",
    "settings": "settings:settings",
    "schema": "schema:schema",
}
"""Where each verb is, below `linerate.cli`: the file, and in it a function, or a Typer with verbs of its own."""


def application(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The command line with some of `VERBS`; the files of the others are not loaded."""
    app = typer.Typer(
        name="linerate",
        help="Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for verb in verbs:
        file, name = VERBS[verb].split(":")
        found = getattr(import_module(f"linerate.cli.{file}"), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=verb)
        else:
            app.command(verb)(found)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from linerate import _core

        typer.echo(f"linerate {_core.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Measures an IP storage network: runs workloads against iSCSI arrays, files and block devices."""


def command(verbs: Iterable[str] = VERBS) -> Any:
    """The command line with some verbs. Paragraphs of their help texts are one line each, which the terminal wraps."""
    whole = typer.main.get_command(application(verbs))
    _join_lines(whole)
    return whole


def _join_lines(verb: Any) -> None:
    paragraphs = inspect.cleandoc(verb.help or "").split("\n\n")
    verb.help = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    for inner in getattr(verb, "commands", {}).values():
        _join_lines(inner)


def _wanted(words: Sequence[str]) -> Iterable[str]:
    """The verb that a command line begins with, so that it need not wait for the others. The version needs none, and
    the help lists all."""
    if list(words) in (["--version"], ["-V"]):
        return ()
    return words[:1] if words and words[0] in VERBS else VERBS


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code. Users see a message and the way out, never a traceback.

    LINERATE_DEBUG=1 shows the traceback as well.
    """
    # Nothing has to be taken apart at the end: a last search for garbage would keep the prompt back for half a second.
    atexit.register(gc.freeze)
    _write_what_the_terminal_has()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with heard():
            code = command(_wanted(words))(args=words, prog_name="linerate", standalone_mode=False)
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
