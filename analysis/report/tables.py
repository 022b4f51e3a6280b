"""The rows that the report rests on, read once from the relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from analysis.rules import judge
from analysis.store import add
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
    run_id, point_id, environment_id, workload, status, bound, sentence,
    kinds, CASE WHEN busy_frac > 1 THEN 1 ELSE busy_frac END AS busy_frac, causes.idle_us, cause, cause_frac,
    file, rank, world_size, step_method, line
FROM bounds
JOIN audits USING (run_id)
LEFT JOIN traces USING (run_id)
LEFT JOIN causes USING (run_id)
ORDER BY run_id
"""
"""Grain: one row an imported point. kinds: those of its steps, that which takes most of the time first: the verdict is
on it, and busy_frac, cause, cause_frac are of it; so is idle_us, the gaps between its first and last device event."""


_BOUNDS = """
SELECT
    point_id, environment_id, run_id, workload, size, dtype, batch, compile, dynamic, warmup, device, params, status,
    bound, margin, gain, reason, sentence, host_contended,
    overhead_us, overhead_us_low, overhead_us_high, work_us, work_us_low, work_us_high,
    wall_us, wall_us_low, wall_us_high
FROM bounds
ORDER BY point_id, environment_id
"""

_NUMERICS = """
SELECT *
FROM numerics
ORDER BY passed IS NOT false, passed, allowed_frac DESC NULLS LAST, workload, dtype, compile, settings, run_id
"""

_SWEEPS = """
SELECT sweep_id, min(started_at) AS started_at, count(DISTINCT (point_id, environment_id)) AS points
FROM runs
WHERE sweep_id IS NOT NULL
GROUP BY sweep_id
ORDER BY sweep_id
"""

_SWEEPS_OF_POINTS = """
SELECT point_id, environment_id, list(DISTINCT sweep_id ORDER BY sweep_id) AS sweep_ids
FROM runs
WHERE sweep_id IS NOT NULL
GROUP BY point_id, environment_id
ORDER BY point_id, environment_id
"""
_PAIRS = """
SELECT * EXCLUDE (sentence, reason)
FROM pairs
ORDER BY environment_id, kind, series, size, point_id, a_environment_id, a_point_id, quantity
"""


@dataclass(frozen=True)
class Tables:
    """Rows of the relations of the same names; first_steps: raw samples of cold points, with the axes of their run;
    imports: imported traces, with what bounds, audits, steps and gaps say of each; sweeps: one row a sweep;
    sweeps_of_points: the sweeps of each point."""

    bounds: Rows
    crossovers: Rows
    law: Rows
    law_summary: Rows
    environments: Rows
    roofs: Rows
    first_steps: Rows
    imports: Rows = ()
    sweeps: Rows = ()
    sweeps_of_points: Rows = ()
    roofline: Rows = ()
    pairs: Rows = ()
    numerics: Rows = ()

    @property
    def only_imports(self) -> bool:
        """The store holds imported traces and no point of a sweep."""
        return bool(self.imports) and len(self.imports) == len(self.bounds)

    @property
    def imported(self) -> frozenset[object]:
        """Run ids of the imported traces."""
        return frozenset(row["run_id"] for row in self.imports)


def read(connection: duckdb.DuckDBPyConnection) -> Tables:
    """Read the relations of an open store, each in one order: equals in a chart or the answer would come by chance.

    Raises duckdb.Error where a relation is missing or fails.
    """
    add(connection, "roofline", "pairs")
    return Tables(
        bounds=_rows(connection, _BOUNDS),
        crossovers=_rows(connection, "FROM crossovers ORDER BY ALL"),
        law=_rows(connection, "FROM law ORDER BY point_id, environment_id"),
        law_summary=_rows(connection, "FROM law_summary ORDER BY ALL"),
        environments=_rows(connection, "FROM environments ORDER BY ALL"),
        roofs=_rows(connection, "FROM roofs ORDER BY ALL"),
        first_steps=_rows(connection, _FIRST_STEPS),
        imports=_rows(connection, _IMPORTS) if _rows(connection, "FROM audits LIMIT 1") else (),
        sweeps=_rows(connection, _SWEEPS),
        sweeps_of_points=_rows(connection, _SWEEPS_OF_POINTS),
        roofline=_rows(connection, "FROM roofline ORDER BY point_id, environment_id"),
        pairs=_rows(connection, _PAIRS),
        numerics=_rows(connection, _NUMERICS),
    )


_FINDINGS = """
SELECT
    "rule", topic, severity, any_value(title) AS title,
    count(DISTINCT (point_id, environment_id)) AS points,
    max(f.gain) AS best_gain,
    first(f.sentence ORDER BY coalesce(f.gain, 0) DESC, f.run_id, f.sentence) AS sentence,
    list(point_id ORDER BY f.gain DESC NULLS LAST, point_id, environment_id) AS point_ids
FROM findings AS f
JOIN rules USING ("rule", topic, severity)
JOIN bounds USING (run_id)
GROUP BY "rule", topic, severity
ORDER BY points DESC, "rule"
"""
_IN_DOUBT = """
SELECT run_id
FROM stg_runs
SEMI JOIN bounds USING (run_id)
ORDER BY NOT coalesce(host_contended, false) AND NOT coalesce(trace_incomplete, false)
    AND coalesce(throttle_reasons, '[]') IN ('[]', '["gpu_idle"]') AND coalesce(other_processes, 0) = 0,
    run_id
LIMIT ?
"""
MOST_JUDGED, FEW_JUDGED = 1_000, 300
"""Points up to which the rules are asked of all; of more they are asked of so few, those in doubt first."""


@dataclass(frozen=True)
class Found:
    """What the rules found: a row a rule that fired; reason: why fewer runs were judged than there are."""

    rules: Rows = ()
    reason: str | None = None


def judged(connection: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> Found:
    """What the rules find in these runs, and in as many others as a report waits for.

    Makes table `findings` of the connection.
    """
    held = connection.execute("SELECT count(*) FROM bounds").fetchall()[0][0]
    others = MOST_JUDGED if held <= MOST_JUDGED else FEW_JUDGED
    doubted = [row[0] for row in connection.execute(_IN_DOUBT, [others]).fetchall()]
    asked = list(dict.fromkeys([*runs, *doubted]))
    judge(connection, asked, outcomes=False)
    reason = (
        f"Of {held:,} points the rules were asked of {len(asked):,}: those with a page here, then those whose data is "
        "in doubt; python -m analysis findings asks them of all."
    )
    return Found(_rows(connection, _FINDINGS), reason if len(asked) < held else None)


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Rows:
    cursor = connection.execute(query)
    columns = [column[0] for column in cursor.description or ()]
    return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
