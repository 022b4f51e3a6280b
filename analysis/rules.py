"""Rules that read a trace as an expert would, and what they find (sql/rules/, over the relations of sql/findings/).

A rule is one file: words about it in the comment on top, then a query with a row for every run to which it applies.
What rules share is computed once, into tables. (As one query, a view, sixty rules took DuckDB seconds to plan.)
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
    "step_events",
    "step_contents",
    "calls",
    "subjects",
    "names",
    "work",
    "operators",
    "kernel_times",
    "gap_events",
    "idle",
    "twins",
    "graph_calls",
    "multiprocessor_limits",
    "memory_held",
    "setting_twins",
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


def judge(
    connection: duckdb.DuckDBPyConnection,
    runs: Sequence[str] | None = None,
    rules: Sequence[Rule] | None = None,
    outcomes: bool = True,
) -> None:
    """Make tables `rules`, `findings` and `rule_outcomes`: what the rules say of these runs, and of no others.

    runs: their ids; None for all. rules: None for all. outcomes: False leaves `rule_outcomes` away, which takes most of
    the time. A second call replaces the tables.
    """
    asked = all_rules() if rules is None else rules
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
    chosen = "true" if runs is None else "list_contains(?::VARCHAR[], run_id)"
    connection.execute(
        f"CREATE TABLE {SCHEMA}.chosen_runs AS SELECT run_id FROM stg_runs WHERE {chosen}",
        [] if runs is None else [list(runs)],
    )
    connection.execute(f"CREATE TABLE {SCHEMA}.judged ({_JUDGED})")
    judgements = _judgements(asked, "true" if outcomes else "fired")
    _answer(connection, {**_shared([*judgements.values(), "subjects"]), **judgements})
    fill(connection, asked)
    for name in ("findings", "rule_outcomes"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    for name in ("findings", "rule_outcomes") if outcomes else ("findings",):
        connection.execute((SQL / f"{name}.sql").read_text(encoding="utf-8"))


SCHEMA = "judging"
"""Where the shared relations stand while rules are applied: their names are nobody else's."""
PATH = f"{SCHEMA},main"
_JUDGED = """
    "rule" VARCHAR, run_id VARCHAR, fired BOOLEAN, reason VARCHAR, sentence VARCHAR, cure VARCHAR, gain DOUBLE,
    event_ids BIGINT[], figures VARCHAR
"""
"""The columns that a rule's query may give, behind its name."""


def _shared(readers: Iterable[str]) -> dict[str, str]:
    """Shared relation -> the statement that makes it, of those alone that the readers need, through others as well."""
    words = set().union(*(_WORD.findall(statement) for statement in readers))
    queries: dict[str, str] = {}
    for name in reversed(SHARED):  # a relation reads only such as stand before it
        if name in words:
            queries[name] = _query_of(name)
            words.update(_WORD.findall(queries[name]))
    return {name: f"CREATE TABLE {SCHEMA}.{name} AS {queries[name]}" for name in SHARED if name in queries}


def _judgements(rules: Sequence[Rule], kept: str) -> dict[str, str]:
    """Rule -> the statement that applies it to all runs."""
    figures = "* REPLACE (to_json(figures)::VARCHAR AS figures)"
    return {
        f"rule {rule.rule}": f"INSERT INTO {SCHEMA}.judged BY NAME "
        f"SELECT '{rule.rule}' AS \"rule\", {figures} FROM (\n{rule.query}\n) WHERE {kept}"
        for rule in rules
    }


def _answer(connection: duckdb.DuckDBPyConnection, statements: Mapping[str, str]) -> None:
    """Run the statements, each as soon as the shared relations that it names are made: many are small and keep but one
    core busy."""
    done: dict[str, Future[None]] = {}

    def run(statement: str, needed: Sequence[str]) -> None:
        for name in needed:
            done[name].result()
        with connection.cursor() as cursor:
            cursor.execute(f"SET search_path = '{PATH}'; {statement}")

    with ThreadPoolExecutor(THREADS) as pool:
        for name, statement in statements.items():
            words = set(_WORD.findall(statement))
            done[name] = pool.submit(run, statement, [each for each in done if each in words])
    for each in done.values():
        each.result()


THREADS = 8
"""More than most machines have cores, since some wait for others."""
_WORD = re.compile(r"\w+")


def fill(connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule]) -> None:
    """Make table `rules`."""
    connection.execute("DROP TABLE IF EXISTS rules")
    connection.execute((SQL / "rules.sql").read_text(encoding="utf-8"))
    columns = [field.name for field in fields(Rule)]
    marks = ", ".join("?" for _ in columns)
    for rule in rules:
        values = [_plain(getattr(rule, column)) for column in columns]
        connection.execute(f"INSERT INTO rules ({', '.join(_quoted(columns))}) VALUES ({marks})", values)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def _query_of(name: str) -> str:
    return (SQL / "findings" / f"{name}.sql").read_text(encoding="utf-8")
