"""The rows that the report rests on, read once from the relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from analysis.theme import Row

Rows = Sequence[Row]

_FIRST_STEPS = """
SELECT
    samples."position", samples."value",
    run_id, point_id, environment_id, workload, size, dtype, batch, compile, dynamic, warmup, device, params
FROM samples JOIN runs USING (run_id)
WHERE samples.quantity = 'first' AND runs.status = 'ok'
"""


@dataclass(frozen=True)
class Tables:
    """Rows of the relations of the same names; first_steps: raw samples of cold points, with the axes of their run."""

    bounds: Rows
    crossovers: Rows
    perturbation: Rows
    law: Rows
    law_summary: Rows
    environments: Rows
    roofs: Rows
    first_steps: Rows


def read(connection: duckdb.DuckDBPyConnection) -> Tables:
    """Read the relations of an open store. Raises duckdb.Error where a relation is missing or fails."""
    return Tables(
        bounds=_rows(connection, "FROM bounds"),
        crossovers=_rows(connection, "FROM crossovers"),
        perturbation=_rows(connection, "FROM perturbation"),
        law=_rows(connection, "FROM law"),
        law_summary=_rows(connection, "FROM law_summary"),
        environments=_rows(connection, "FROM environments"),
        roofs=_rows(connection, "FROM roofs"),
        first_steps=_rows(connection, _FIRST_STEPS),
    )


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Rows:
    cursor = connection.execute(query)
    columns = [column[0] for column in cursor.description or ()]
    return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
