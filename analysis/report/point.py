"""The page of a point: what one run tells of its times, samples, steps, kernels, findings and trace, as plain data.

The chain is `point_pages`: runs -> tables that all pages share, one statement each (sql/report/) -> one dict a run, fit
for JSON (point_parts.py). js/point.js, timeline.js, flame.js and phases.js draw it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from analysis import rules
from analysis.report.point_parts import Page, Row, page
from analysis.store import SQL

BUDGET_BYTES = 150_000
"""Of JSON, a page."""
OTHER_BYTES = 62_000
"""What a page takes besides its timeline, at most, about."""
EVENT_BYTES = 64
"""What one block of the timeline takes, about."""
LEAST_EVENTS = 200

RUNS = """
SELECT r.*, b.* EXCLUDE (run_id, reason, point_id, environment_id), b.reason AS bound_reason,
    e.* EXCLUDE (environment_id, device), r.point_id, r.environment_id
FROM (
    SELECT
        run_id, point_id, environment_id, sweep_id, source, started_at, status AS run_status, reason, measure, rounds,
        stopped, warmup_steps, reasons, sm_clock_mhz, power_w, temperature_c, throttle_reasons, window_before,
        window_behind, host_contended AS contended, other_processes, trace_incomplete, unattributed_frac,
        profile_reason, perturbation, host, device_index, compile_s, audit, step_facts
    FROM stg_runs
    WHERE run_id IN (FROM point_runs)
) AS r
LEFT JOIN bounds AS b
    ON b.point_id IS NOT DISTINCT FROM r.point_id AND b.environment_id IS NOT DISTINCT FROM r.environment_id
LEFT JOIN environments AS e ON e.environment_id = r.environment_id
"""
FINDINGS = f"""
SELECT run_id, "rule", topic, severity, sentence, cure, gain, reason, source,
    (evidence::JSON -> 'events')::BIGINT[] AS events
FROM findings
WHERE run_id IN (FROM point_runs)
ORDER BY list_position({list(rules.SEVERITIES)}, severity), gain DESC NULLS LAST, "rule"
"""
PHASES = """
FROM _phases_of('point_runs')
ORDER BY run_id, kind, "order"
"""
HOLDERS = """
FROM holders
WHERE run_id IN (FROM point_runs)
ORDER BY run_id, depth > 0, "order", at_peak_bytes DESC
"""
MEMORY_SUMS = "FROM stg_memory WHERE run_id IN (FROM point_runs)"
CURES = """
SELECT r.run_id, c.cure, c.basis, c.gain, c.gain_low, c.gain_high, c.memory_gain, c.sentence, c.command
FROM cures AS c
JOIN stg_runs AS r USING (point_id, environment_id)
WHERE r.run_id IN (FROM point_runs)
ORDER BY r.run_id, c."rank"
"""
SHOWN = """
SELECT DISTINCT run_id, unnest((evidence::JSON -> 'events')::BIGINT[]) AS event_id
FROM findings
WHERE run_id IN (FROM point_runs)
"""
KERNEL_NAMES = "SELECT DISTINCT name FROM events WHERE category = 'kernel' AND run_id IN (FROM point_runs)"

TABLES = {
    "point_shown": SHOWN,
    "point_kernel_names": KERNEL_NAMES,
    **dict.fromkeys(("point_steps", "point_windows", "point_events", "point_blocks")),
}
"""Relations that others read, each after those it reads, and their queries; None: the file of that name in
sql/report/."""
READ = {
    "runs": RUNS,
    "findings": FINDINGS,
    "cures": CURES,
    "phases": PHASES,
    "holders": HOLDERS,
    "memory_sums": MEMORY_SUMS,
    "windows": "FROM point_windows",
    "steps": "FROM point_steps",
    **dict.fromkeys(("samples", "kernels", "timeline", "gaps", "bands", "paths", "memory")),
}
"""What pages are made of, and its query; None: the file point_NAME in sql/report/."""


def point_pages(
    connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str], budget: int = BUDGET_BYTES
) -> dict[str, Page]:
    """Data of the pages of runs, by run id; a run that the store does not hold has none.

    budget: bytes of JSON that a page should take at most: the timeline puts short events together until it fits.
    Findings are those of table `findings` where it is there, else the rules are applied to these runs.
    """
    _prepare(connection, run_ids, max(LEAST_EVENTS, (budget - OTHER_BYTES) // EVENT_BYTES))
    told = {name: _by_run(_rows(connection, query or _file(f"point_{name}"))) for name, query in READ.items()}
    return {
        run_id: page({name: rows.get(run_id, []) for name, rows in told.items()})
        for run_id in run_ids
        if run_id in told["runs"]
    }


def _prepare(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str], events: int) -> None:
    """Make the tables that the pages of these runs share; events: how many a timeline may hold."""
    _table(connection, "point_runs", "SELECT DISTINCT unnest(?::VARCHAR[]) AS run_id", [list(run_ids)])
    connection.execute(f"SET VARIABLE point_events_limit = {events:d}")
    known = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()"
    made = {row[0] for row in connection.execute(known).fetchall()}
    if "findings" not in made:
        rules.judge(connection, _alike(connection), outcomes=False)
    if "cures" not in made:
        connection.execute((SQL / "cures.sql").read_text(encoding="utf-8"))
    if "phases" not in made:
        connection.execute((SQL / "phases.sql").read_text(encoding="utf-8"))
    for name, query in TABLES.items():
        _table(connection, name, query or _file(name))


def _alike(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The runs, and those that rules may compare them with: the same work in the same environment."""
    rows = connection.execute(
        "SELECT DISTINCT a.run_id FROM stg_runs AS a JOIN stg_runs AS b "
        "ON a.workload IS NOT DISTINCT FROM b.workload AND a.size IS NOT DISTINCT FROM b.size "
        "AND a.environment_id IS NOT DISTINCT FROM b.environment_id AND (a.source <> 'import' OR a.run_id = b.run_id) "
        "WHERE b.run_id IN (FROM point_runs)"
    )
    return [row[0] for row in rows.fetchall()]


def _table(connection: duckdb.DuckDBPyConnection, name: str, query: str, values: Sequence[Any] = ()) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}", list(values))


def _file(name: str) -> str:
    return (SQL / "report" / f"{name}.sql").read_text(encoding="utf-8")


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    result = connection.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["run_id"]].append(row)
    return grouped
