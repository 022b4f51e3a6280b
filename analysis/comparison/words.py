"""A comparison in words: what differs around it, how many verdicts of each kind, the worst, what else has moved."""

from collections.abc import Sequence

import duckdb

from analysis.comparison.compared import QUANTITIES, WORST_FIRST, Row, rows_of
from analysis.comparison.sides import Side
from analysis.output import printable, short

TOLD = 3
"""Crossovers, kernels and failed points that are named; the tables have all."""
LETTERS = 60
"""Letters of a kernel's name."""
COMMON = 4
"""Points from which on a change of all of them together is told."""


def in_words(connection: duckdb.DuckDBPyConnection, a: Side, b: Side) -> list[str]:
    """The comparison in sentences, the most important first."""
    return [
        environments(connection),
        verdicts(connection),
        *unmatched(connection),
        *shifts(connection),
        *certainty(connection),
        *moves(connection),
        *imports(connection),
        f"a = {printable(a.label)}",
        f"b = {printable(b.label)}",
    ]


def environments(connection: duckdb.DuckDBPyConnection) -> str:
    """What differs between the two environments, and nothing else."""
    rows = rows_of(connection, "FROM differing_facts ORDER BY place, fact")
    if not rows:
        return "a and b were measured in environments alike in all that is known."
    return f"a and b differ in {'; '.join(map(_fact, rows))}."


def _fact(row: Row) -> str:
    a, b = (printable(row[name]) if row[name] is not None else "-" for name in ("a_value", "b_value"))
    return f"{printable(row['fact'])} ({a} in a, {b} in b)"


def verdicts(connection: duckdb.DuckDBPyConnection) -> str:
    """How many verdicts there are of each kind, and the worst."""
    rows = rows_of(connection, f"FROM changes WHERE ratio IS NOT NULL ORDER BY {WORST_FIRST}")
    if not rows:
        return "No point was measured on both sides: nothing is compared."
    points, quantities = len({row["axes"] for row in rows}), {row["quantity"] for row in rows}
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in (
        "SLOWER", "FASTER", "SAME", "UNCLEAR")}  # fmt: skip
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    of = ", ".join(each for each in QUANTITIES if each in quantities)
    worst = f" The worst: {_change(rows[0])}." if counts["SLOWER"] else ""
    return f"Of {_plural(len(rows), 'pair')} of values ({_plural(points, 'point')}; {of}) {told} in b.{worst}"


def _change(row: Row) -> str:
    beside = f"{value(row['a_value'], row['unit'])} to {value(row['b_value'], row['unit'])}"
    interval = f" ({short(row['low'])} to {short(row['high'])})" if row["low"] is not None else ""
    return f"{row['quantity']} of {printable(row['point'])}, {short(row['ratio'])} times{interval}, {beside}"


def unmatched(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Points that do not compare, and why."""
    rows = rows_of(connection, "SELECT state, point, b_status, b_reason FROM matched_points WHERE state <> 'compared' "
        "ORDER BY point")  # fmt: skip
    states: dict[str, list[Row]] = {}
    for row in rows:
        states.setdefault(row["state"], []).append(row)
    told = []
    if failed := states.pop("newly failed", []):
        named = "; ".join(f"{printable(row['point'])}: {_reason(row)}" for row in failed[:TOLD])
        more = f"; and {len(failed) - TOLD} more" if len(failed) > TOLD else ""
        told.append(f"{_plural(len(failed), 'point')} newly failed in b: {named}{more}.")
    if states:
        counts = ", ".join(f"{_plural(len(group), 'point')} {state}" for state, group in sorted(states.items()))
        told.append(f"Not compared: {counts}.")
    return told


def _reason(row: Row) -> str:
    return printable(row["b_reason"] or row["b_status"] or "unknown")


def shifts(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Quantities that moved on most points alike: the cause is one that all share."""
    rows = rows_of(
        connection,
        """SELECT quantity, count(*) AS points, exp(median(log_ratio)) AS middle
        FROM _ratios JOIN _thresholds USING (quantity)
        GROUP BY quantity, threshold
        HAVING points >= ? AND abs(median(log_ratio)) > greatest(median(error), ln(1 + threshold))
        ORDER BY quantity""",
        [COMMON],
    )
    return [
        f"{row['quantity'].capitalize()} changed on most points alike, {short(row['middle'])} times in the median of "
        f"{row['points']}: look for a cause that all share (the host and its pace, clocks, versions)."
        for row in rows
    ]


def certainty(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The least change that would have been seen, and what that rests on."""
    rows = rows_of(
        connection,
        """SELECT quantity, median(exp(_t_quantile(dof) * error) - 1) AS least
        FROM _ratios WHERE error > 0 GROUP BY quantity ORDER BY list_position(?, quantity)""",
        [list(QUANTITIES)],
    )
    told = ", ".join(f"{row['quantity']} {_percent(row['least'])}" for row in rows)
    sentences = [f"Half of the points would hide a change below {told}."] if told else []
    return sentences + _bases(connection)


def _bases(connection: duckdb.DuckDBPyConnection) -> list[str]:
    counts = dict(connection.execute("SELECT basis, count(*) FROM _ratios GROUP BY basis").fetchall())
    told = []
    if number := counts.get("points among each other"):
        told.append(
            f"How much runs differ is known for one side at most; for {_plural(number, 'pair')} it is taken from how "
            "much the points' ratios differ, which cannot tell a change of all points from another session: measure "
            "each side twice (rerun=true)."
        )
    if number := counts.get("runs alone"):
        told.append(
            f"{_plural(number, 'pair')} {'rest' if number > 1 else 'rests'} on the runs' own intervals, which another "
            "session leaves more often than 1 time in 20: measure each side twice (rerun=true)."
        )
    return told


def moves(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Bounds, crossovers and kernels that are not the same in b."""
    return [*_bounds(connection), *_crossovers(connection), *_kernels(connection)]


def _bounds(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = rows_of(connection, "SELECT a_bound, b_bound, is_clear, count(*) AS points FROM moved_bounds "
        "GROUP BY ALL ORDER BY points DESC, a_bound, b_bound")  # fmt: skip
    if not rows:
        return []
    clear = sum(row["points"] for row in rows if row["is_clear"])
    listed = ", ".join(f"{row['points']} from {row['a_bound']} to {row['b_bound']}" for row in rows[:TOLD])
    points = sum(row["points"] for row in rows)
    return [f"{_plural(points, 'bound')} changed ({clear} clearly): {listed}{_more(len(rows), 'kind')}."]


def _crossovers(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = rows_of(connection, "FROM moved_crossovers ORDER BY verdict, name")
    moved = [row for row in rows if row["verdict"] in ("HIGHER", "LOWER")]
    if not moved:
        same = sum(row["verdict"] == "SAME" for row in rows)
        told = f"{same} SAME, {len(rows) - same} UNCLEAR"
        return [f"No crossover is seen to move (of {len(rows)} series {told})."] if rows else []
    listed = "; ".join(
        f"{printable(row['name'])} along {printable(row['axis'])} from {row['a_text']} to {row['b_text']}"
        for row in moved[:TOLD]
    )
    return [f"{len(moved)} of {len(rows)} crossovers moved: {listed}{_more(len(moved), 'crossover')}."]


def _kernels(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = rows_of(
        connection,
        """SELECT name, state, count(*) AS points, median(coalesce(a_share, b_share)) AS share,
            (SELECT count(DISTINCT axes) FROM changed_kernels) AS changed
        FROM changed_kernels GROUP BY ALL ORDER BY points * share DESC, name""",
    )
    if not rows:
        return []
    listed = "; ".join(
        f"{printable(row['name'][:LETTERS])} {row['state']} ({_plural(row['points'], 'point')}, "
        f"{_percent(row['share'])} of device time)"
        for row in rows[:TOLD]
    )
    return [f"{_plural(rows[0]['changed'], 'point')} ran other kernels: {listed}{_more(len(rows), 'name')}."]


def imports(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Imported traces that took no part."""
    counts = [rows_of(connection, f"SELECT imports_left_out AS n FROM baseline_{side}")[0]["n"] or 0 for side in "ab"]
    if not any(counts):
        return []
    return [f"Imported traces take no part ({counts[0]} in a, {counts[1]} in b): compare two of them by their ids."]


def value(number: float | None, unit: str | None) -> str:
    """A value with its unit, in the one that reads best."""
    if number is None:
        return "-"
    if unit == "bytes":
        steps: Sequence[tuple[float, str]] = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1, "B"))
    elif unit == "s":
        steps = ((60, "min"), (1, "s"), (1e-3, "ms"))
    else:
        steps = ((1e6, "s"), (1e3, "ms"))
    for size, name in steps:
        if number >= size:
            return f"{short(number / size)} {name}"
    return f"{short(number)} {unit or ''}".strip()


def _percent(frac: float) -> str:
    """A fraction in percent, with two digits that count."""
    return f"{short(float(f'{100 * frac:.2g}'))} %"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 or noun.endswith("s") else f"{count} {noun}s"


def _more(count: int, noun: str) -> str:
    return f"; and {_plural(count - TOLD, noun)} more" if count > TOLD else ""
