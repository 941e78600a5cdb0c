"""JSON Schemas of both sides of the seam, compared: what Python writes, the data plane must read, key by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

_TAGS = ("kind", "verb")
"""Keys whose constant tells the variants of a union apart."""


@dataclass
class Form:
    """One value of a text, with references resolved."""

    types: set[str] = field(default_factory=set)
    """JSON types; `null` if it may be null."""
    words: set[str] | None = None
    """The texts that are allowed, if not all are."""
    keys: dict[str, Form] = field(default_factory=dict)
    """Properties of an object."""
    items: Form | None = None
    """Entries of an array."""
    values: Form | None = None
    """Values of an object whose keys are free."""
    variants: dict[str, Form] = field(default_factory=dict)
    """Objects of a union by the constant of their tag."""
    required: set[str] = field(default_factory=set)
    defaults: dict[str, Any] = field(default_factory=dict)

    def take(self, other: Form) -> None:
        """Adds an alternative."""
        if other.words is not None and self.words is not None:
            self.words |= other.words
        elif "string" in other.types:
            self.words = other.words if "string" not in self.types else None
        self.types |= other.types
        self.items = self.items or other.items
        self.values = self.values or other.values
        self.variants |= other.variants
        self.required |= other.required
        self.defaults |= other.defaults
        self.keys |= other.keys


def form_of(schema: Schema, root: Schema | None = None, seen: tuple[str, ...] = ()) -> Form:
    """The form that a JSON Schema describes."""
    root = schema if root is None else root
    form = Form()
    if (reference := schema.get("$ref")) is not None and reference not in seen:
        form.take(form_of(root["$defs"][reference.rsplit("/", 1)[-1]], root, (*seen, reference)))
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        _take_part(form, form_of(part, root, seen))
    named = schema.get("type")
    form.types |= {named} if isinstance(named, str) else set(named or ())
    words = {schema["const"]} if "const" in schema else set(schema.get("enum", ()))
    if texts := {word for word in words if isinstance(word, str)}:
        form.types.add("string")
        form.words = texts
    if numbers := {type(word) for word in words if not isinstance(word, str | None)}:
        form.types |= {"integer" if one is int else "number" for one in numbers}
    for key, value in schema.get("properties", {}).items():
        form.keys[key] = form_of(value, root, seen)
        if "default" in value:
            form.defaults[key] = value["default"]
    form.required |= set(schema.get("required", ()))
    if isinstance(schema.get("items"), dict):
        form.items = form_of(schema["items"], root, seen)
    if isinstance(free := schema.get("additionalProperties"), dict):
        form.values = form_of(free, root, seen)
    return form


def _take_part(form: Form, part: Form) -> None:
    """Adds one alternative of a union: an object with a tag becomes a variant."""
    tag = next(
        (key for key in _TAGS if (one := part.keys.get(key)) and one.words and len(one.words) == 1), None
    )
    if tag is None:
        form.take(part)
        return
    (word,) = part.keys[tag].words or ("",)
    form.types.add("object")
    form.variants[word] = part


@dataclass(frozen=True)
class Exceptions:
    """Where the two sides differ on purpose; paths such as `storage.disks.count`."""

    only_python: frozenset[str] = frozenset()
    """Keys that Python removes before it writes the text."""
    only_rust: frozenset[str] = frozenset()
    """Keys that Python adds elsewhere, or never writes."""
    variants: frozenset[str] = frozenset()
    """Variants that another part of the program answers, or that Python never asks for."""
    words: frozenset[str] = frozenset()
    """Texts that Python limits and the data plane checks when it uses them."""
    left_out: frozenset[str] = frozenset()
    """Objects, or keys, that Python leaves out instead of writing null."""
    defaults: frozenset[str] = frozenset()
    """Keys whose default Python replaces before it writes the text."""


def differences(python: Form, rust: Form, allowed: Exceptions, at: str = "") -> Iterator[str]:
    """Everything about which the two sides disagree, a line each."""
    yield from _scalars(python, rust, allowed, at)
    here = f"{at}." if at else ""
    for key in sorted(python.keys.keys() - rust.keys.keys()):
        if f"{here}{key}" not in allowed.only_python:
            yield f"{here}{key}: Python writes it, the data plane does not know it"
    for key in sorted(rust.keys.keys() - python.keys.keys()):
        if f"{here}{key}" not in allowed.only_rust:
            yield f"{here}{key}: the data plane reads it, Python does not know it"
    for key in sorted(python.keys.keys() & rust.keys.keys()):
        path = f"{here}{key}"
        yield from differences(python.keys[key], rust.keys[key], allowed, path)
        if key in python.defaults and key in rust.defaults and path not in allowed.defaults:
            ours, theirs = python.defaults[key], rust.defaults[key]
            if ours != theirs and not (ours is None and at in allowed.left_out):
                yield f"{path}: the default is {ours!r} in Python and {theirs!r} in the data plane"
    for word in sorted((python.variants.keys() ^ rust.variants.keys()) - allowed.variants):
        yield f"{at or 'text'}: only one side has the variant {word}"
    for word in sorted(python.variants.keys() & rust.variants.keys()):
        yield from differences(python.variants[word], rust.variants[word], allowed, f"{here}{word}")
    for name in ("items", "values"):
        ours, theirs = getattr(python, name), getattr(rust, name)
        if ours is not None and theirs is not None:
            yield from differences(ours, theirs, allowed, at)


def _scalars(python: Form, rust: Form, allowed: Exceptions, at: str) -> Iterator[str]:
    types = set(python.types)
    owner = at.rpartition(".")[0]
    if at in allowed.left_out or owner in allowed.left_out:
        types.discard("null")
    if "number" in rust.types:
        types.discard("integer")
    if rust.types and (more := types - rust.types):
        yield f"{at}: Python writes {', '.join(sorted(more))}, the data plane reads {', '.join(sorted(rust.types))}"
    if python.words != rust.words and at not in allowed.words:
        ours, theirs = (
            sorted(words) if words is not None else "any text" for words in (python.words, rust.words)
        )
        yield f"{at}: the words are {ours} in Python and {theirs} in the data plane"
