"""What the rules found (views `findings` and `rule_outcomes`), in words: of one run, or of a whole store."""

import textwrap
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import duckdb

from analysis.naming import Run
from analysis.output import OutputError, printable, short, write_rows, write_text
from analysis.rules import SEVERITIES, Rule, all_rules, fill, judge

WIDTH = 110
"""Characters of a line of prose."""
ORDER = f'list_position({list(SEVERITIES)}, severity), gain DESC NULLS LAST, "rule", run_id'
"""What misleads comes before what costs, and that before what explains."""

Row = dict[str, Any]


def related(connection: duckdb.DuckDBPyConnection, run: Run) -> list[str]:
    """Ids of `run` and of those that rules may compare it with: the same work under other settings, measured where it
    was. An import stands alone."""
    rows = connection.execute(
        "SELECT a.run_id FROM stg_runs AS a JOIN stg_runs AS b "
        "ON a.workload IS NOT DISTINCT FROM b.workload AND a.size IS NOT DISTINCT FROM b.size "
        "AND a.environment_id IS NOT DISTINCT FROM b.environment_id AND (a.source <> 'import' OR a.run_id = b.run_id) "
        "WHERE b.run_id = ?",
        [run.run_id],
    )
    return [row[0] for row in rows.fetchall()]


def write_of_run(
    connection: duckdb.DuckDBPyConnection, run: Run, format: str, path: Path | None, store: str = ""
) -> None:
    """Write the findings of one run: in prose for format table, else its rows. store: see `in_words`."""
    judge(connection, related(connection, run))
    if format == "table":
        write_text("\n".join(in_words(connection, run, store)) + "\n", path)
    else:
        write_rows(connection, f"FROM findings WHERE run_id = '{run.run_id}' ORDER BY {ORDER}", format, path)


def write_of_store(connection: duckdb.DuckDBPyConnection, format: str, path: Path | None) -> None:
    """Write the findings of all runs: a row a rule for format table, else a row a finding."""
    judge(connection, outcomes=False)
    write_rows(connection, OVERVIEW if format == "table" else f"FROM findings ORDER BY {ORDER}", format, path)


OVERVIEW = f"""
SELECT
    severity, "rule", count(*) AS runs, max(gain) AS best_gain,
    arg_max(sentence, coalesce(gain, 0)) AS "for example"
FROM findings
GROUP BY severity, "rule"
ORDER BY list_position({list(SEVERITIES)}, severity), runs DESC, "rule"
"""


def write_outcomes(connection: duckdb.DuckDBPyConnection, run: Run | None, format: str, path: Path | None) -> None:
    """Write what every rule says of one run, or of every run: fired, clear or not applicable, and why."""
    judge(connection, related(connection, run) if run is not None else None)
    chosen = f"WHERE run_id = '{run.run_id}'" if run is not None else ""
    columns = '"rule", outcome, reason' if run is not None and format == "table" else "*"
    order = 'run_id, outcome DESC, "rule"'
    write_rows(connection, f"SELECT {columns} FROM rule_outcomes {chosen} ORDER BY {order}", format, path)


def write_rules(name: str | None, format: str, path: Path | None) -> None:
    """Write all rules, or in prose the one of this name; needs no store.

    Raises:
        OutputError: there is no such rule.
    """
    if name is not None and format == "table":
        write_text("\n".join(_rule_in_words(_rule_named(name))) + "\n", path)
        return
    with duckdb.connect() as connection:
        fill(connection, all_rules())
        columns = 'topic, "rule", severity, title' if format == "table" else "*"
        chosen = f"WHERE \"rule\" = '{_rule_named(name).rule}'" if name is not None else ""
        write_rows(connection, f"SELECT {columns} FROM rules {chosen}", format, path)


def _rule_named(name: str) -> Rule:
    for rule in all_rules():
        if rule.rule == name:
            return rule
    alike = get_close_matches(name, [rule.rule for rule in all_rules()], 3, 0.4)
    near = f"nearest are {', '.join(alike)}" if alike else "python -m analysis rules lists them"
    raise OutputError(f"{printable(name)!r} is no rule: {near}")


def _rule_in_words(rule: Rule) -> Iterator[str]:
    yield f"{rule.rule} ({rule.topic}, {rule.severity})"
    for label in ("title", "means", "cure"):
        yield from _folded(f"{label}: {getattr(rule, label)}", "  ")
    yield f"  needs: {', '.join(rule.needs) or 'nothing'}; else not applicable: {rule.otherwise}"
    if rule.excludes:
        yield f"  never together with: {', '.join(rule.excludes)}"
    if rule.see is not None:
        yield f"  see: {rule.see}"
    yield "  query (over the relations of analysis/sql/findings):"
    yield textwrap.indent(rule.query, "    ")


def in_words(connection: duckdb.DuckDBPyConnection, run: Run, store: str = "") -> list[str]:
    """The findings of a run, which has been judged, as lines of prose, and how many rules found nothing.

    store: what the commands in it need to find the run, such as ` --store DIR`.
    """
    rows = _rows(
        connection,
        'SELECT "rule", outcome, o.reason, topic, severity, sentence, cure, gain, source, see '
        'FROM rule_outcomes AS o LEFT JOIN findings AS f USING (run_id, "rule") '
        f"WHERE run_id = '{run.run_id}' ORDER BY {ORDER}",
    )
    fired = [row for row in rows if row["outcome"] == "fired"]
    lines = [f"{run.label}, run {run.run_id}:", ""]
    for row in fired:
        lines += [*_finding(row, store), ""]
    return [*lines, _closing(rows, run, store)]


def _finding(row: Row, store: str) -> Iterator[str]:
    yield f"{row['severity']}: {row['rule']} ({row['topic']})"
    yield from _folded(row["sentence"], "  ")
    if row["severity"] != "explains":
        yield from _folded(f"cure: {row['cure']}", "  ")
    if row["gain"] is not None:
        yield f"  gain: up to {short(row['gain'])} times as fast"
    if row["source"] is not None:
        yield f"  line: {printable(row['source'])}"
    if row["see"] is not None:
        yield f"  see: {row['see']}{store}"


def _closing(rows: Iterable[Row], run: Run, store: str) -> str:
    outcomes = [row["outcome"] for row in rows]
    told = ", ".join(f"{outcomes.count(each)} {each}" for each in ("fired", "clear", "not applicable"))
    return f"rules: {told} (python -m analysis findings {run.run_id} --outcomes{store} says why)"


def _folded(text: str, indent: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    result = connection.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
