"""The base of the models of files, requests and records.

Programs start often, so a model costs little until it is used: its validator is built then, and the docstrings of its
attributes are only read for a JSON Schema, where they are descriptions.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Model(BaseModel):
    """Immutable. Subclasses choose what becomes of unknown keys."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        """The usual schema, with the docstrings of the attributes."""
        written = handler(schema)
        properties = handler.resolve_ref_schema(written).get("properties", {})
        for name, text in _docstrings(cls).items():
            field = cls.model_fields[name]
            if field.description is None and (field.alias or name) in properties:
                properties[field.alias or name]["description"] = text
        return written


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Attribute -> the string literal below it, of the model and of the models that it inherits from."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not issubclass(kind, Model) or kind is Model:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for before, after in zip(body.body, body.body[1:], strict=False):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ) if name in model.model_fields:
                    texts[name] = inspect.cleandoc(text)
    return texts
