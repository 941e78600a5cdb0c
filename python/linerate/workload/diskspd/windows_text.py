"""The text of files that come from Windows: UTF-8, UTF-16 with its mark (a redirect of PowerShell), or ANSI."""

from __future__ import annotations

from pathlib import Path

from linerate.errors import UserError

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def text_of(path: Path, content: bytes) -> str:
    """The text of a whole file. Raises UserError for damaged UTF-16, and for what is no text."""
    if content.startswith(_UTF_16_MARKS):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError as error:
            what = f"byte {error.start}: no UTF-16, though it begins with its mark"
            raise UserError(f"{path}: {what}", "copy the file again, or save it as UTF-8") from error
    else:
        text = text_of_head(content)
    if "\0" in text:
        raise UserError(f"{path}: no text: it has NUL bytes", "save it as UTF-8, UTF-16 or ANSI")
    return text


def text_of_head(content: bytes) -> str:
    """The text of the beginning of a file. It may end inside a character, so what is damaged is replaced."""
    if content.startswith(_UTF_16_MARKS):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")
