"""Rules that read a trace as an expert would, and what they find (sql/rules/, over the relations of sql/findings/).

A rule is one file: words about it in the comment on top, then a query with a row for every run to which it applies. All
rules are put together as one query, so that what they share is computed once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import duckdb

SQL = Path(__file__).parent / "sql"
RULES = SQL / "rules"

SHARED = (
    "trace_contents",
    "spans",
    "typical_steps",
    "near_events",
    "typical",
    "subjects",
    "step_events",
    "names",
    "work",
    "operators",
    "calls",
    "kernel_times",
    "gap_events",
    "idle",
    "twins",
)
"""Relations that the rules read, each after those it reads. A relation lives in the file of its name, as a query."""

TOPICS = (
    "summary",
    "host lane",
    "device lane",
    "dispatch chain",
    "torch.compile",
    "kernel names",
    "memory",
    "data quality",
)
SEVERITIES = ("misleads", "costs", "explains")
"""misleads: figures of the run are not what they seem; costs: time or memory is lost, and a cure is known; explains:
what is seen is in order, and this is why it looks so."""
NEEDS = (
    "times", "sweep", "accelerator", "trace", "device work", "calls", "operations", "step", "steps", "compiled",
    "eager", "warm", "shapes", "stacks", "memory events", "launch parameters",
)  # fmt: skip
"""What a rule may need; relation `subjects` says why a run lacks it."""

_FIELD = re.compile(r"^-- (Rule|Topic|Severity|Needs|Otherwise|Means|Cure|Excludes|See): (.*)$")


@dataclass(frozen=True)
class Rule:
    """A rule in words, and its query.

    needs: of NEEDS, what a run must have; otherwise: why the rule does not apply to a run that has it all and gives no
    row; excludes: rules that never fire with this one; see: where the pattern is explained.
    """

    rule: str
    topic: str
    severity: str
    title: str
    means: str
    cure: str
    needs: tuple[str, ...]
    otherwise: str
    excludes: tuple[str, ...]
    see: str | None
    query: str


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by topic and name."""
    found = [read_rule(path) for path in sorted(RULES.glob("*/*.sql"))]
    return tuple(sorted(found, key=lambda rule: (TOPICS.index(rule.topic), rule.rule)))


def read_rule(path: Path) -> Rule:
    """The rule of a file. Raises ValueError: a field is missing or not allowed."""
    text = path.read_text(encoding="utf-8")
    given = dict(_fields(text))
    missing = {"Rule", "Topic", "Severity", "Needs", "Otherwise", "Means", "Cure"} - given.keys()
    if missing:
        raise ValueError(f"{path.name} lacks {', '.join(sorted(missing))}")
    return Rule(
        rule=path.stem,
        topic=_one_of(TOPICS, given["Topic"]),
        severity=_one_of(SEVERITIES, given["Severity"]),
        title=given["Rule"],
        means=given["Means"],
        cure=given["Cure"],
        needs=tuple(_one_of(NEEDS, need) for need in _listed(given["Needs"])),
        otherwise=given["Otherwise"],
        excludes=_listed(given.get("Excludes", "")),
        see=given.get("See"),
        query="".join(line for line in text.splitlines(keepends=True) if not line.startswith("--"))
        .rstrip()
        .rstrip(";"),
    )


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """The fields of the comment on top; a line without a field goes on with the one before."""
    name, value = "", ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        field = _FIELD.match(line)
        if field:
            if name:
                yield name, value
            name, value = field[1], field[2].strip()
        else:
            value = f"{value} {line.removeprefix('--').strip()}".strip()
    if name:
        yield name, value


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip() not in ("", "nothing"))


def _one_of(allowed: tuple[str, ...], given: str) -> str:
    if given not in allowed:
        raise ValueError(f"{given!r} is not allowed: allowed are {', '.join(allowed)}")
    return given


def define(connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule] | None = None) -> None:
    """Make table `rules`, and the table macros `_findings_of` and `_outcomes_of`, which the views over the rules read.

    rules: those that are to judge; None for all.
    """
    chosen = all_rules() if rules is None else rules
    connection.execute((SQL / "rules.sql").read_text(encoding="utf-8"))
    fill(connection, chosen)
    connection.execute(judged_macro(chosen))
    connection.execute(_query_of("_macros"))


def fill(connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule]) -> None:
    """Fill table `rules`."""
    columns = [field.name for field in fields(Rule)]
    rows = [[_plain(getattr(rule, column)) for column in columns] for rule in rules]
    marks = ", ".join("?" for _ in columns)
    connection.executemany(f"INSERT INTO rules ({', '.join(_quoted(columns))}) VALUES ({marks})", rows)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def judged_macro(rules: Sequence[Rule]) -> str:
    """The statement that makes `_judged_of(chosen)`: a row for each run of relation `chosen` and each rule that applies
    to it, and one without a rule for each run, which tells what the run lacks."""
    shared = [f"{name} AS MATERIALIZED (\n{_query_of(name)}\n)" for name in SHARED]
    judged = [f"SELECT '{rule.rule}' AS \"rule\", {_COLUMNS} FROM (\n{rule.query}\n)" for rule in rules]
    rows = "\nUNION ALL BY NAME\n".join([_SUBJECTS, *judged])
    return f"CREATE MACRO _judged_of(chosen) AS TABLE (\nWITH {', '.join(shared)}\n{rows}\n)"


_COLUMNS = "* REPLACE (to_json(figures)::VARCHAR AS figures)"
_SUBJECTS = """SELECT
    NULL::VARCHAR AS "rule", run_id, NULL::BOOLEAN AS fired, NULL::VARCHAR AS reason, NULL::VARCHAR AS sentence,
    NULL::VARCHAR AS cure, NULL::DOUBLE AS gain, NULL::BIGINT[] AS event_ids, NULL::VARCHAR AS figures,
    CASE WHEN status <> 'ok' THEN 'the run is ' || status || coalesce(': ' || failure, '') END AS failure, lacks
FROM subjects"""
"""The columns that a rule's query may give (all but the last two), and what is known of each run without a rule."""


def _query_of(name: str) -> str:
    return (SQL / "findings" / f"{name}.sql").read_text(encoding="utf-8")
