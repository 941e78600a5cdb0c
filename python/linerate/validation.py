"""The messages of a model's validation, in the words of this program."""

from __future__ import annotations

import re

_WORDS = (
    (r"^Value error, ", ""),
    (r"^(?:Input|String|Value) should be a valid number.*", "must be a number"),
    (r"^Input should be a valid integer.*", "must be a whole number"),
    (r"^Input should be a valid string.*", "must be text"),
    (r"^Input should be a valid boolean.*", "must be true or false"),
    (r"^Input should be a valid (?:list|tuple|array).*", "must be a list"),
    (r"^Input should be a valid dictionary.*", "must be a table"),
    (r"^Input should be greater than or equal to ", "must be at least "),
    (r"^Input should be less than or equal to ", "must be at most "),
    (r"^Input should be greater than ", "must be more than "),
    (r"^Input should be less than ", "must be less than "),
    (r"^(?:Input|String) should (?:be|match) ", "must be "),
    (r"^String should have ", "must have "),
)


def fault_text(message: str) -> str:
    """One message of a ValidationError (`errors()[n]["msg"]`); an unknown one stays as it is."""
    for pattern, plain in _WORDS:
        message = re.sub(pattern, plain, message)
    return message
