"""What a user means by a side of a comparison: a store, a baseline file, a part of a store, or one point."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from analysis.naming import ATTRIBUTES, AXES, BETWEEN_WORDS, CANDIDATES, IDS, PointError, Run, all_runs, named_run
from analysis.output import printable
from analysis.store import RELATIONS, SQL, StoreError, open_store

FOLDER = SQL / "comparison"
SPREADS = ("side_spread", "_point_spread")
"""Relations that are made of more runs than the side's."""
SIDE_RELATIONS = ("_names", "side_points", "side_times", "side_crossovers", "side_kernels", "side_facts", "baseline")
"""Relations of one side, each after those it reads; before them, macros."""

PARTS = {
    "sweep": "sweep_id",
    "environment": "environment_id",
    "sweep_id": "sweep_id",
    "environment_id": "environment_id",
}
"""Keys that name a part of a store by the beginning of an id."""
FACTS = {
    "torch": "torch",
    "commit": "json_extract_string(versions, '$.torch_git')",
    "card": "device_name",
    "driver": "driver",
    "cuda": "cuda_runtime",
    "host_cpu": "host_cpu",
}
"""Keys that name the runs of environments by a piece of one of their facts: expressions over `environments`."""
OWN = "own:"
LETTERS = 8
"""Characters of an id that are shown."""


class SideError(StoreError):
    """A side that names nothing, or that cannot be compared; one sentence with the cure."""


@dataclass(frozen=True)
class Side:
    """label: what the user wrote. store and run_ids: a store and the runs of it that count; or baseline: a file. point:
    the words name one point and nothing larger, imports: how many imported traces were left out."""

    label: str
    store: Path | None = None
    run_ids: frozenset[str] = frozenset()
    baseline: Path | None = None
    point: bool = False
    imports: int = 0

    def is_same_as(self, other: "Side") -> bool:
        """Whether both are one file, or the same runs, be it in copies of a store."""
        if self.baseline is not None or other.baseline is not None:
            return self.baseline == other.baseline
        return self.run_ids == other.run_ids


@dataclass
class Stores:
    """Open stores, each opened once however many sides name it."""

    opened: dict[Path, duckdb.DuckDBPyConnection] = field(default_factory=dict)

    def connection(self, folder: Path) -> duckdb.DuckDBPyConnection:
        """The open store in `folder`, all of its runs kept in the table `_every_run`. Raises StoreError."""
        key = folder.resolve()
        if key not in self.opened:
            connection = open_store(folder)
            connection.execute("CREATE TEMP TABLE _every_run AS FROM stg_runs")
            self.opened[key] = connection
        return self.opened[key]


@contextmanager
def stores() -> Iterator[Stores]:
    """Stores that are closed at the end."""
    held = Stores()
    try:
        yield held
    finally:
        for connection in held.opened.values():
            connection.close()


def named_side(text: str, store: Path, held: Stores) -> Side:
    """The side that `text` names.

    text: a folder that is a store, followed by filters KEY=VALUE or not; a baseline file; filters alone, or an id, for
    a part of `store`. Keys are those of a POINT (analysis/naming.py), `sweep`, `environment`, and the keys of FACTS.

    Raises:
        StoreError: nothing fits, a key does not exist, or a value fits several things.
    """
    text = text.strip()
    place, words = _place(text)
    if place is not None and place.is_file():
        if words:
            raise SideError(f"{printable(text)!r}: a baseline is one whole; filters choose from a store")
        return Side(text, baseline=place)
    if place is None and _looks_like_a_path(text):
        raise SideError(f"there is no store and no baseline at {printable(text)}")
    folder = place or store
    connection = held.connection(folder)
    runs = all_runs(connection)
    chosen = _chosen(words, runs, connection, folder)
    whole = place is not None or any(word.partition("=")[0] in (*PARTS, *FACTS) for word in words)
    points = {run.point_id for run in chosen}
    if whole or (len(points) > 1 and all("=" in word for word in words)):
        swept = [run for run in chosen if run.keys.get("source") != "import"]
        if not swept:
            raise SideError(_nothing_to_compare(text, len(chosen)))
        return Side(text, folder, frozenset(run.run_id for run in swept), imports=len(chosen) - len(swept))
    run = named_run(connection, text)  # raises where it names no point, or several
    return Side(text, folder, frozenset(each.run_id for each in chosen), point=True) if run else Side(text)


def _place(text: str) -> tuple[Path | None, list[str]]:
    """The folder or file that the text begins with, and its other words."""
    if text and _exists(text):
        return Path(text), []
    first, *rest = BETWEEN_WORDS.split(text)
    if rest and _exists(first):
        return Path(first), rest
    return None, [first, *rest]


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long a name, or one that no file can have
        return False


def _looks_like_a_path(text: str) -> bool:
    first = BETWEEN_WORDS.split(text)[0]
    return "=" not in first and ("/" in first or first.endswith(".parquet"))


def _nothing_to_compare(text: str, imports: int) -> str:
    if imports:
        return f"{printable(text)!r} holds imported traces alone: compare two of them, each named by its id"
    return f"{printable(text)!r} holds no run"


def selected(connection: duckdb.DuckDBPyConnection, words: Sequence[str], folder: Path) -> list[str]:
    """Ids of the swept runs of an open store that fit all words (filters as those of a side). Raises StoreError."""
    chosen = _chosen(BETWEEN_WORDS.split(" ".join(words)) if words else [], all_runs(connection), connection, folder)
    found = [run.run_id for run in chosen if run.keys.get("source") != "import"]
    if not found:
        raise SideError(_nothing_to_compare(" ".join(words) or str(folder), len(chosen)))
    return found


# --- which runs fit

Test = Callable[[Run], bool]


def _chosen(
    words: Sequence[str], runs: Sequence[Run], connection: duckdb.DuckDBPyConnection, folder: Path
) -> list[Run]:
    """Runs that fit all words."""
    chosen = list(runs)
    for word in words:
        test = _test(word, runs, connection, folder)
        chosen = [run for run in chosen if test(run)]
    return chosen


def _test(word: str, runs: Sequence[Run], connection: duckdb.DuckDBPyConnection, folder: Path) -> Test:
    key, equals, value = word.partition("=")
    if not equals:
        return lambda run: run.run_id.startswith(word) or run.point_id.startswith(word)
    key = key.removeprefix("workload.")
    if key in PARTS:
        column, whole = PARTS[key], _one_id(word, value, PARTS[key], runs, folder)
        return lambda run: run.keys.get(column) == whole
    if key in FACTS:
        environments = _with_fact(word, key, value, connection)
        return lambda run: run.environment_id in environments
    _check_key(key, runs)
    if key in IDS:
        return lambda run: run.keys.get(key, "").startswith(value)
    return lambda run: run.keys.get(key, "null") == value


def _check_key(key: str, runs: Iterable[Run]) -> None:
    allowed = {*AXES, *IDS, *ATTRIBUTES, *PARTS, *FACTS}.union(*(run.keys for run in runs))
    if key not in allowed:
        raise PointError(f"no point has a {printable(key)}: allowed are {', '.join(sorted(allowed))}")


def _one_id(word: str, value: str, column: str, runs: Sequence[Run], folder: Path) -> str:
    """The one id of the column that begins with the value."""
    counts: dict[str, int] = {}
    for run in runs:
        each = run.keys.get(column)
        if each is not None:
            counts[each] = counts.get(each, 0) + 1
    fitting = [each for each in counts if each.startswith(value)]
    if value in counts or len(fitting) == 1:
        return value if value in counts else fitting[0]
    kind = column.removesuffix("_id")
    told = f"{printable(word)!r} names {len(fitting) or 'no'} {kind}{'s' if len(fitting) > 1 else ''} of {folder}"
    return _raise(told, [f"{each[: 2 * LETTERS]} ({counts[each]} runs)" for each in fitting or counts])


def _with_fact(word: str, key: str, value: str, connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Environments whose one fact holds the value, as words or the beginning of them (2.1 is none of 2.11); upper and
    lower case are alike."""
    rows = connection.execute(
        f"SELECT environment_id, {FACTS[key]} FROM environments WHERE {FACTS[key]} IS NOT NULL"
    ).fetchall()
    facts = {fact for _, fact in rows}
    end = "" if key == "commit" else r"(?!\d)"
    piece = re.compile(r"(?:^|[^\w.])" + re.escape(value) + end, re.IGNORECASE)
    fitting = {fact for fact in facts if fact == value} or {fact for fact in facts if piece.search(fact)}
    if len(fitting) != 1:
        told = f"{printable(word)!r} names {len(fitting) or 'no'} value{'s' if len(fitting) > 1 else ''} of {key}"
        _raise(told, [printable(fact) for fact in sorted(fitting or facts)])
    return {environment_id for environment_id, fact in rows if fact in fitting}


def _raise(told: str, candidates: Sequence[str]) -> str:
    if not candidates:
        raise SideError(f"{told}: the store holds none")
    more = f" and {len(candidates) - CANDIDATES} more" if len(candidates) > CANDIDATES else ""
    raise SideError(f"{told}: there are {', '.join(candidates[:CANDIDATES])}{more}")


# --- from a side to a baseline


def write_side(side: Side, held: Stores, path: Path, without: Collection[str] = ()) -> None:
    """Write a side as a baseline file.

    without: runs of the same store that the other side holds. They do not count towards the spread between runs: what
    changed from one side to the other is no noise.

    Raises:
        SideError: the side has points of several environments that are alike in every axis.
    """
    if side.baseline is not None:
        raise ValueError("a baseline is a file already")
    assert side.store is not None
    connection = held.connection(side.store)
    _learn_spread(connection, side.run_ids, set(without) - side.run_ids)
    _narrow(connection, side.run_ids)
    _rebuild(connection, [name for name in RELATIONS if name != "_spread"])
    _refuse_several_environments(connection, side)
    for name, value in (("label", side.label), ("store", str(side.store)), ("imports", side.imports)):
        connection.execute(f"SET VARIABLE side_{name} = ?", [value])
    for relation in SIDE_RELATIONS:
        make(connection, relation)
    connection.sql("FROM baseline").write_parquet(str(path))
    widen(connection)


def _learn_spread(connection: duckdb.DuckDBPyConnection, own: Collection[str], without: Collection[str]) -> None:
    """Learn how much runs differ from all runs of the store but some.

    A side's own runs count as points of their own, marked by OWN: what changed since the other runs is no noise.
    """
    every = [row[0] for row in connection.execute("SELECT run_id FROM _every_run").fetchall()]
    _narrow(connection, set(every).difference(without))
    connection.execute(
        "UPDATE stg_runs SET point_id = ? || point_id, launch_sequence = ? || launch_sequence "
        "WHERE run_id IN (SELECT unnest(?::VARCHAR[]))",
        [OWN, OWN, sorted(own)],
    )
    _rebuild(connection, ("_launch_points", "_run_times", "_spread"))
    for relation in SPREADS:
        make(connection, relation)


def narrow(connection: duckdb.DuckDBPyConnection, run_ids: Collection[str]) -> None:
    """Make every relation of a store of `Stores` speak of these runs alone, as if no other had been made."""
    _narrow(connection, run_ids)
    _rebuild(connection, RELATIONS)


def widen(connection: duckdb.DuckDBPyConnection) -> None:
    """Put all runs of the store back, so that another side can be named. Relations that are tables stay as they are."""
    connection.execute("DELETE FROM stg_runs")
    connection.execute("INSERT INTO stg_runs FROM _every_run")


def make(connection: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Make a relation of sql/comparison/."""
    connection.execute((FOLDER / f"{relation}.sql").read_text(encoding="utf-8"))


def _narrow(connection: duckdb.DuckDBPyConnection, run_ids: Collection[str]) -> None:
    """Keep these runs of the store alone."""
    connection.execute("DELETE FROM stg_runs")
    connection.execute(
        "INSERT INTO stg_runs FROM _every_run SEMI JOIN (SELECT unnest(?::VARCHAR[]) AS run_id) USING (run_id)",
        [sorted(run_ids)],
    )


def _rebuild(connection: duckdb.DuckDBPyConnection, relations: Collection[str]) -> None:
    """Make those of the relations that are tables anew from `stg_runs`; views follow by themselves.

    Verdicts on imports stay empty: a side has none.
    """
    rows = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    tables = {name for (name,) in rows if not name.startswith("stg_")}
    for relation in RELATIONS:
        if relation in tables and relation in relations:
            connection.execute(f"DROP TABLE {relation}")
            connection.execute((SQL / f"{relation}.sql").read_text(encoding="utf-8"))


def _refuse_several_environments(connection: duckdb.DuckDBPyConnection, side: Side) -> None:
    rows = connection.execute(
        """SELECT DISTINCT e.environment_id, concat_ws(', ', 'torch ' || torch, device_name, 'CPUs ' || affinity)
        FROM (
            SELECT unnest(list(DISTINCT environment_id)) AS environment_id
            FROM bounds
            GROUP BY workload, size, dtype, batch, compile, dynamic, warmup, device, params
            HAVING count(DISTINCT environment_id) > 1
        )
        JOIN environments AS e USING (environment_id)
        ORDER BY 1"""
    ).fetchall()
    if rows:
        told = f"{printable(side.label)!r} has points of {len(rows)} environments that are alike in every axis"
        cure = "choose one with environment=BEGINNING"
        listed = "; ".join(f"{each[:LETTERS]} ({printable(facts)})" for each, facts in rows[:CANDIDATES])
        raise SideError(f"{told}: {listed}; {cure}")
