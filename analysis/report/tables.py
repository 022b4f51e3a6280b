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

_IMPORTS = """
WITH steps AS MATERIALIZED (FROM _steps_of('_imports')),
kinds AS (
    SELECT
        run_id, kind,
        count(*) AS steps, sum(wall_us) AS total_us,
        median(wall_us) AS wall_us, median(busy_us) / nullif(median(wall_us), 0) AS busy_frac
    FROM steps
    GROUP BY run_id, kind
),
traces AS (
    SELECT
        run_id,
        list({'kind': kind, 'steps': steps, 'wall_us': wall_us} ORDER BY total_us DESC, kind) AS kinds,
        list(busy_frac ORDER BY total_us DESC, kind)[1] AS busy_frac
    FROM kinds
    GROUP BY run_id
),
idle AS (
    SELECT run_id, cause, sum(dur_ns) AS dur_ns
    FROM _gaps_of('_imports')
    JOIN steps USING (run_id, step)
    JOIN traces USING (run_id)
    WHERE steps.kind IS NOT DISTINCT FROM traces.kinds[1].kind
    GROUP BY run_id, cause
),
causes AS (
    SELECT
        run_id,
        sum(dur_ns) / 1e3 AS idle_us, max_by(cause, dur_ns) AS cause, max(dur_ns) / sum(dur_ns) AS cause_frac
    FROM idle
    GROUP BY run_id
)
SELECT
    run_id, environment_id, workload, status, bound, sentence,
    kinds, CASE WHEN busy_frac > 1 THEN 1 ELSE busy_frac END AS busy_frac, causes.idle_us, cause, cause_frac,
    file, rank, world_size, step_method, line
FROM bounds
JOIN audits USING (run_id)
LEFT JOIN traces USING (run_id)
LEFT JOIN causes USING (run_id)
"""
"""Grain: one row an imported point. kinds: those of its steps, that which takes most of the time first: the verdict is
on it, and busy_frac, cause, cause_frac are of it; so is idle_us, the gaps between its first and last device event."""


@dataclass(frozen=True)
class Tables:
    """Rows of the relations of the same names; first_steps: raw samples of cold points, with the axes of their run;
    imports: imported traces, with what bounds, audits, steps and gaps say of each."""

    bounds: Rows
    crossovers: Rows
    perturbation: Rows
    law: Rows
    law_summary: Rows
    environments: Rows
    roofs: Rows
    first_steps: Rows
    imports: Rows = ()

    @property
    def only_imports(self) -> bool:
        """The store holds imported traces and no point of a sweep."""
        return bool(self.imports) and len(self.imports) == len(self.bounds)

    @property
    def imported(self) -> frozenset[object]:
        """Run ids of the imported traces."""
        return frozenset(row["run_id"] for row in self.imports)


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
        imports=_rows(connection, _IMPORTS) if _rows(connection, "FROM audits LIMIT 1") else (),
    )


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Rows:
    cursor = connection.execute(query)
    columns = [column[0] for column in cursor.description or ()]
    return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
