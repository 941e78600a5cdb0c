"""Tables as bytes of a file format.

CSV is that of RFC 4180: commas, quotes where they are needed, lines that end in CR LF, UTF-8. A spreadsheet takes a
cell that begins with `=`, `+`, `-` or `@` for a formula, and names of steps or volumes can begin so. Such text gets an
apostrophe in front (the advice of OWASP, "CSV Injection"); numbers do not. In Excel files text is always text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Literal

import polars as pl
import xlsxwriter  # type: ignore[import-untyped]

from linerate.errors import UserError

Format = Literal["csv", "parquet", "xlsx"]
FORMATS: tuple[Format, ...] = ("csv", "parquet", "xlsx")
SHEET_ROWS_MAX = 1_048_576
"""Rows of an Excel sheet, the header included."""
_FORMULA = r"^[=+\-@\t\r\n]"
_FLOATS = "0.######"
_TIME = "%Y-%m-%d %H:%M:%S%.6f"
"""Spreadsheets read this as a time; with a `T` in it they read text."""


def encoded(table: pl.DataFrame, kind: Literal["csv", "parquet"]) -> bytes:
    """One table as a CSV or Parquet file."""
    data = io.BytesIO()
    if kind == "parquet":
        table.write_parquet(data, compression="zstd")
    else:
        _without_formulas(table).write_csv(
            data, line_terminator="\r\n", quote_style="necessary", datetime_format=_TIME
        )
    return data.getvalue()


def encoded_workbook(tables: Mapping[str, pl.DataFrame]) -> bytes:
    """All tables as one Excel file, a sheet each. Raises UserError when a table has more rows than a sheet."""
    for name, table in tables.items():
        if table.height >= SHEET_ROWS_MAX:
            raise UserError(
                f"{name}: {table.height:,} rows; an Excel sheet holds {SHEET_ROWS_MAX - 1:,}",
                "use --csv or --parquet, or name another table with --table",
            )
    data = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    with xlsxwriter.Workbook(data, options) as workbook:
        for name, table in tables.items():
            table.write_excel(
                workbook,
                worksheet=name,
                table_style="Table Style Light 1",
                dtype_formats={
                    (pl.Float64,): _FLOATS,
                    (pl.Int64,): "0",
                    (pl.Datetime,): "yyyy-mm-dd hh:mm:ss.000",
                },
                freeze_panes=(1, 0),
                autofit=table.height < 10_000,
            )
    return data.getvalue()


def _without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    text = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.when(pl.col(name).str.contains(_FORMULA))
        .then(pl.concat_str(pl.lit("'"), pl.col(name)))
        .otherwise(pl.col(name))
        .alias(name)
        for name in text
    )
