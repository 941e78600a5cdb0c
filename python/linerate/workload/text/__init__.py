"""The text of files that other programs and other people wrote.

It is UTF-8, UTF-16 with its mark (Notepad, a redirect of PowerShell), or Windows-1252 (ANSI). All readers of such files
read and decode them here.
"""

from __future__ import annotations

from pathlib import Path

from linerate.errors import UserError

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HINT = "save it as UTF-8, UTF-16 or ANSI"
_HEAD_BYTES = 256


def read_content(path: Path, bytes_max: int, *, shown: str = "", unreadable: str, too_large: str) -> bytes:
    """All bytes of a file; `shown` is its name in messages if it is not the path.

    Raises UserError, with the hint `unreadable` for a file that cannot be read, and `too_large` for one of more than
    `bytes_max`, a whole number of MiB.
    """
    name = shown or str(path)
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise UserError(f"{name}: {error.strerror or error}", unreadable) from error
    if len(content) > bytes_max:
        raise UserError(f"{name}: larger than {bytes_max >> 20} MiB", too_large)
    return content


def text_of(shown: str | Path, content: bytes) -> str:
    """The text of a whole file, its lines ended by a newline alone; `shown` is its name in messages.

    Raises UserError for damaged UTF-16 and for NUL bytes, with the line.
    """
    if content.startswith(_UTF_16_MARKS):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError as error:
            what = f"byte {error.start}: no UTF-16, though it begins with its mark"
            raise UserError(f"{shown}: {what}", "copy the file again, or save it as UTF-8") from error
    else:
        text = text_of_head(content)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (at := text.find("\0")) >= 0:
        raise UserError(f"{shown}:{text.count(chr(10), 0, at) + 1}: {_what_has_nul(content)}", _HINT)
    return text


def _what_has_nul(content: bytes) -> str:
    head = content[:_HEAD_BYTES]
    if len(head) >= 4 and (not any(head[1::2]) or not any(head[::2])):
        return "NUL bytes: UTF-16 without its mark"
    return "a NUL byte"


def text_of_head(content: bytes) -> str:
    """The text of the beginning of a file. It may end inside a character, so what is damaged is replaced."""
    if content.startswith(_UTF_16_MARKS):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")
