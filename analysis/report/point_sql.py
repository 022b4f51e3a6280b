"""The queries that stand behind the fold of each section of a point's page: public relations, one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = {
    "times": """
FROM bounds
WHERE point_id = {point} AND environment_id IS NOT DISTINCT FROM {environment}""",
    "samples": """
SELECT quantity, "round", "position", "value"
FROM samples
WHERE run_id = {run}
ORDER BY "position\"""",
    "steps": """
SELECT step, host_us, busy_us, wall_us, kernel_launches + memcpy_launches + memset_launches + graph_launches AS launches
FROM steps
WHERE run_id = {run}
ORDER BY step""",
    "phases": """
FROM phases
WHERE run_id = {run}
ORDER BY kind, "order\"""",
    "holders": """
FROM holders
WHERE run_id = {run}
ORDER BY "order", at_peak_bytes DESC""",
    "kernels": """
SELECT k.*, k.total_us / sum(k.total_us) OVER () AS share, n.* EXCLUDE (name, calls, runs)
FROM kernels AS k
LEFT JOIN kernel_names AS n USING (name)
WHERE run_id = {run}
ORDER BY total_us DESC""",
    "findings": """
SELECT "rule", topic, severity, sentence, cure, gain, reason, evidence
FROM findings
WHERE run_id = {run}
ORDER BY list_position(['misleads', 'costs', 'explains'], severity), gain DESC NULLS LAST""",
    "cures": """
SELECT cure, basis, gain, gain_low, gain_high, memory_gain, sentence, command
FROM cures
WHERE point_id = {point} AND environment_id IS NOT DISTINCT FROM {environment}
ORDER BY "rank\"""",
    "operators": """
SELECT e.name, e.category, count(*) AS calls, sum(e.dur_ns - coalesce(i.dur_ns, 0)) / 1e3 AS self_host_us
FROM events AS e
LEFT JOIN (
    SELECT parent_id, sum(dur_ns) AS dur_ns
    FROM events
    WHERE run_id = {run} AND NOT is_device
    GROUP BY parent_id
) AS i ON i.parent_id = e.event_id
WHERE e.run_id = {run} AND ({step} IS NULL OR e.step = {step}) AND NOT e.is_device
    AND e.category NOT IN ('trace', 'gpu_user_annotation', 'cuda_sync', 'cpu_instant_event', 'overhead')
GROUP BY e.name, e.category
ORDER BY self_host_us DESC""",
    "timeline": """
SELECT event_id, name, category, ts_ns - {start} AS from_ns, dur_ns, device, stream, pid, tid, depth, step, launch_id
FROM events
WHERE run_id = {run} AND ts_ns <= {end} AND ts_ns + dur_ns >= {start}
    AND category NOT IN ('trace', 'gpu_user_annotation', 'cuda_sync', 'cpu_instant_event')
ORDER BY is_device, device, stream, pid, tid, depth, ts_ns""",
    "gaps": """
SELECT device, start_ns - {start} AS from_ns, dur_ns, cause, detail
FROM gaps
WHERE run_id = {run} AND start_ns < {end} AND start_ns + dur_ns > {start}
ORDER BY dur_ns DESC""",
    "flame": """
SELECT e.event_id, coalesce(e.launch_id, e.parent_id) AS above_id, e.name, e.is_device,
    greatest(0, e.dur_ns - coalesce(sum(i.dur_ns), 0)) / 1e3 AS self_us
FROM events AS e
LEFT JOIN events AS i ON i.run_id = e.run_id AND i.parent_id = e.event_id AND NOT i.is_device
WHERE e.run_id = {run} AND ({step} IS NULL OR e.step = {step})
    AND e.category NOT IN ('trace', 'gpu_user_annotation', 'cuda_sync', 'cpu_instant_event', 'overhead')
GROUP BY e.event_id, e.launch_id, e.parent_id, e.name, e.is_device, e.dur_ns
ORDER BY e.event_id""",
    "memory": """
SELECT ts_ns - {start} AS at_ns, (args::JSON ->> 'Total Allocated')::BIGINT AS allocated_bytes,
    (args::JSON ->> 'Total Reserved')::BIGINT AS reserved_bytes
FROM events
WHERE run_id = {run} AND name = '[memory]' AND (args::JSON ->> 'Device Type') NOT IN ('0', '2', '5')
ORDER BY event_id""",
}
"""Section -> its query. {run}, {point} and {environment} become texts in quotes, {step}, {start} and {end} numbers or
NULL."""


def shown_sql(facts: Mapping[str, Any]) -> dict[str, str]:
    """The queries of one run, as `python -m analysis sql` takes them.

    facts: the values of the names in SHOWN; None becomes NULL.
    """
    values = {name: _literal(value) for name, value in facts.items()}
    return {section: text.strip().format(**values) for section, text in SHOWN.items()}


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
