"""What a user means by POINT: an id, a unique beginning of one, or filters (`workload=matmul_add size=64`)."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

import duckdb

from analysis.output import printable
from analysis.store import StoreError

CANDIDATES = 5
"""Points that an error lists at most."""
SHORTEST = 8
"""Characters that a listed beginning of an id has at least."""

AXES = ("workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device")
IDS = ("point_id", "run_id", "sweep_id", "environment_id")
ATTRIBUTES = ("source", "status", "rank", "world_size")
ORDER = "environment_id, workload, dtype, batch, compile, dynamic, warmup, device, params, size"
"""Order in which points are listed: along the size, within what is alike otherwise."""

BETWEEN_WORDS = re.compile(r"\s+(?=[\w.]+=)")
"""A space inside a value (a file's name may have one) separates nothing."""

Test = Callable[["Run"], bool]


class PointError(StoreError):
    """A POINT that names nothing, or several; the message lists candidates."""


@dataclass(frozen=True)
class Run:
    """The run that a POINT stands for. reason: why it has no result, or no profile; label: its axes in words; keys:
    what a filter may ask for, as texts."""

    run_id: str
    point_id: str
    environment_id: str | None
    workload: str
    status: str | None
    reason: str | None
    label: str
    keys: dict[str, str]


def named_run(connection: duckdb.DuckDBPyConnection, point: str) -> Run:
    """The latest ok run (else the latest) of the one point that `point` names, or the run whose id it is.

    point: an id (of a point or a run) or a beginning of one, filters KEY=VALUE, or an id and filters; all must fit. KEY
    is an axis, an id (where a beginning is enough), source, status, rank or world_size; the value `null` stands for an
    axis that a point lacks.

    Raises:
        PointError: nothing fits, several points do, or a key does not exist.
    """
    runs = all_runs(connection)
    points = _latest_of_each_point(fitting(point, runs))
    if len(points) == 1:
        return points[0]
    raise PointError(_several(point, points, runs))


def named_runs(connection: duckdb.DuckDBPyConnection, point: str) -> list[Run]:
    """The run that `named_run` would give, of every point that `point` names. Raises PointError: it names none."""
    return _latest_of_each_point(fitting(point, all_runs(connection)))


def choose_runs(connection: duckdb.DuckDBPyConnection, point: str) -> None:
    """Make table `chosen_runs`: every run (run_id, point_id, environment_id) that fits `point`, which may name several
    points here; `is_latest` holds for the one run of each point that `named_run` would give.

    Raises:
        PointError: nothing fits, or a key does not exist.
    """
    chosen = fitting(point, all_runs(connection))
    latest = [run.run_id for run in _latest_of_each_point(chosen)]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE chosen_runs AS "
        "SELECT run_id, point_id, environment_id, list_contains(?::VARCHAR[], run_id) AS is_latest "
        "FROM stg_runs WHERE list_contains(?::VARCHAR[], run_id)",
        [latest, [run.run_id for run in chosen]],
    )


def fitting(point: str, runs: Sequence[Run]) -> list[Run]:
    """The runs that fit all words of `point`. Raises PointError: there is none, or a key does not exist."""
    tests = [_test(word, runs) for word in BETWEEN_WORDS.split(point.strip())]
    found = [run for run in runs if all(test(run) for test in tests)]
    if not found:
        raise PointError(_nothing(point, tests, runs))
    return found


def all_runs(connection: duckdb.DuckDBPyConnection) -> list[Run]:
    """Every run of the store, in the order of run ids, which is that of time.

    Where a further axis has the name of another one, the other one is kept.
    """
    rows = connection.execute('SELECT run_id, list(axis), list("value") FROM axes GROUP BY run_id').fetchall()
    axes = {run_id: dict(zip(names[::-1], values[::-1], strict=True)) for run_id, names, values in rows}
    columns = list(dict.fromkeys((*IDS, *ATTRIBUTES, "workload")))
    rows = connection.execute(
        f"SELECT {', '.join(columns)}, coalesce(reason, profile_reason), {LABEL} FROM stg_runs ORDER BY run_id"
    ).fetchall()
    return [_run(dict(zip(columns, row, strict=False)), row[-2], row[-1], axes) for row in rows]


LABEL = """concat_ws(' ', workload, 'size=' || size, dtype, 'batch=' || batch,
    CASE compile WHEN 'false' THEN 'eager' ELSE 'compile=' || compile END,
    CASE WHEN warmup <> 'true' THEN 'warmup=' || warmup END, nullif(_settings(params), ''), 'rank=' || rank)"""
"""A point in words: its axes, without those that it lacks or nobody has set."""


def _run(columns: dict[str, Any], reason: str | None, label: str, axes: dict[str, dict[str, str]]) -> Run:
    """A run. Where a further axis has the name of a column, the key is the column's."""
    own = {key: str(value) for key, value in columns.items() if value is not None}
    keys = axes.get(columns["run_id"], {}) | own
    return Run(
        run_id=columns["run_id"],
        point_id=columns["point_id"] or columns["run_id"],
        environment_id=columns["environment_id"],
        workload=columns["workload"] or "trace",
        status=columns["status"],
        reason=reason,
        label=printable(label),
        keys=keys,
    )


def _test(word: str, runs: Sequence[Run]) -> Test:
    """What a run must satisfy to fit a word."""
    key, equals, value = word.partition("=")
    if not equals:
        return _id_test(word, runs)
    key = key.removeprefix("workload.")
    _check_key(key, runs)
    if key in IDS:
        return lambda run: run.keys.get(key, "").startswith(value)
    return lambda run: run.keys.get(key, "null") == value


def _id_test(word: str, runs: Iterable[Run]) -> Test:
    """A whole id wins over the ids that begin like it."""
    if any(word in (run.run_id, run.point_id) for run in runs):
        return lambda run: word in (run.run_id, run.point_id)
    return lambda run: run.run_id.startswith(word) or run.point_id.startswith(word)


def _check_key(key: str, runs: Iterable[Run]) -> None:
    allowed = {*AXES, *IDS, *ATTRIBUTES}.union(*(run.keys for run in runs))
    if key not in allowed:
        raise PointError(f"no point has a {printable(key)}: allowed are {', '.join(sorted(allowed))}")


def _latest_of_each_point(runs: Iterable[Run]) -> list[Run]:
    latest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (run.status == "ok", run.run_id)):
        latest[run.point_id] = run
    return list(latest.values())


def _nothing(point: str, tests: Sequence[Test], runs: Sequence[Run]) -> str:
    """Nothing fits all words: the points that fit most of them are told."""
    if not runs:
        return f"{printable(point)!r} names no point: the store holds no run"
    known = _latest_of_each_point(runs)
    fitting = [sum(test(run) for test in tests) for run in known]
    nearest = [run for run, fits in zip(known, fitting, strict=True) if fits == max(fitting)]
    told = f"nearest are {_listed(nearest, known)}" if any(fitting) else f"there are {_listed(known, known)}"
    return f"{printable(point)!r} names no point: {told}"


def _several(point: str, points: Sequence[Run], runs: Sequence[Run]) -> str:
    cure = "give a longer beginning of an id, or more filters (KEY=VALUE)"
    return f"{printable(point)!r} names {len(points)} points: {_listed(points, _latest_of_each_point(runs))}; {cure}"


def _listed(points: Sequence[Run], known: Iterable[Run]) -> str:
    """The first points with the beginnings that tell them from all that are known, and how many more there are."""
    beginnings = _beginnings([run.point_id for run in known] + [run.run_id for run in known])
    told = ", ".join(f"{printable(beginnings[run.point_id])} ({run.label})" for run in points[:CANDIDATES])
    more = len(points) - CANDIDATES
    return told + (f" and {more} more" if more > 0 else "")


def _beginnings(ids: Iterable[str]) -> dict[str, str]:
    """Each id's shortest beginning, of SHORTEST characters or more, that no other id has."""
    ordered = sorted(set(ids))
    shared = [_shared_length(*pair) for pair in pairwise(ordered)]
    needed = [max(before, after) + 1 for before, after in zip([0, *shared], [*shared, 0], strict=True)]
    return {each: each[: max(SHORTEST, length)] for each, length in zip(ordered, needed, strict=True)}


def _shared_length(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
