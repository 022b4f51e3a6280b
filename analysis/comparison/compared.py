"""Two baselines beside each other: every point and quantity with a verdict (sql/comparison/)."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from analysis.comparison.sides import Side, SideError, Stores, make, write_side
from analysis.comparison.significance import holm, tail
from analysis.output import printable
from analysis.store import SQL, first_line

Row = dict[str, Any]

BASELINE_VERSION = 1
THRESHOLDS = {"wall": 0.03, "issue": 0.05, "device": 0.03, "compile": 0.10, "memory": 0.01, "crossover": 0.05}
"""Changes up to this fraction are none, by quantity."""
QUANTITIES = tuple(quantity for quantity in THRESHOLDS if quantity != "crossover")

RELATIONS = (
    "given_points",
    "given_times",
    "given_crossovers",
    "given_kernels",
    "given_facts",
    "matched_points",
    "_ratios",
    "changes",
    "moved_bounds",
    "moved_crossovers",
    "changed_kernels",
    "differing_facts",
)
"""Relations of a comparison, each after those it reads; views read the tables `_thresholds` and `_chances` as well."""

WORST_FIRST = """
    list_position(['NEWLY FAILED', 'SLOWER', 'FASTER', 'NEWLY MEASURED', 'UNCLEAR', 'SKIPPED', 'FAILED ON BOTH',
        'ONLY IN A', 'ONLY IN B', 'SAME'], verdict),
    abs(ln(ratio)) DESC NULLS LAST, point, list_position(['wall', 'issue', 'device', 'compile', 'memory'], quantity)
"""


@contextmanager
def comparison(
    a: Side, b: Side, held: Stores, thresholds: Mapping[str, float] = THRESHOLDS
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of the relations of RELATIONS for two sides. thresholds: by quantity, see THRESHOLDS.

    Raises:
        StoreError: a side cannot be compared, or is no baseline.
    """
    with tempfile.TemporaryDirectory(prefix="crossover-") as folder:
        of_a = _baseline(a, b, held, Path(folder) / "a.parquet")
        of_b = _baseline(b, a, held, Path(folder) / "b.parquet")
        connection = compare(of_a, of_b, thresholds)
    try:
        yield connection
    finally:
        connection.close()


def _baseline(side: Side, other: Side, held: Stores, path: Path) -> Path:
    if side.baseline is not None:
        return side.baseline
    assert side.store is not None
    is_shared = other.store is not None and other.store.resolve() == side.store.resolve()
    write_side(side, held, path, without=other.run_ids if is_shared else ())
    return path


def compare(a: Path, b: Path, thresholds: Mapping[str, float] = THRESHOLDS) -> duckdb.DuckDBPyConnection:
    """Compare two baseline files: an in-memory database that holds the relations of RELATIONS.

    Raises:
        SideError: a file is no baseline.
    """
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute((SQL / "_macros.sql").read_text(encoding="utf-8"))
    for name, path in (("a", a), ("b", b)):
        _load(connection, name, path)
    try:
        judge(connection, thresholds)
    except (duckdb.BinderException, duckdb.ConversionException, duckdb.CatalogException) as error:
        told = f"{printable(str(a))} or {printable(str(b))} is no baseline as this program writes it"
        raise SideError(f"{told}: {first_line(error)}; save it again with --save") from error
    return connection


def judge(connection: duckdb.DuckDBPyConnection, thresholds: Mapping[str, float]) -> None:
    """Make the relations from the tables `baseline_a` and `baseline_b`."""
    connection.execute("CREATE TABLE _thresholds (quantity VARCHAR, threshold DOUBLE)")
    connection.executemany("INSERT INTO _thresholds VALUES (?, ?)", [[*each] for each in thresholds.items()])
    connection.execute("CREATE TABLE _chances (axes VARCHAR, quantity VARCHAR, chance DOUBLE, corrected DOUBLE)")
    for relation in RELATIONS:
        make(connection, relation)
        if relation == "_ratios":
            _correct(connection)


def _correct(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `_chances`: how likely each ratio is where nothing has changed, alone and among all."""
    rows = connection.execute("SELECT axes, quantity, log_ratio, error, dof FROM _ratios").fetchall()
    known = [row for row in rows if row[3] is not None]
    chances = [chance(log_ratio, error, dof) for _, _, log_ratio, error, dof in known]
    told = [(*row[:2], *each) for row, each in zip(known, zip(chances, holm(chances), strict=True), strict=True)]
    told += [(*row[:2], None, None) for row in rows if row[3] is None]
    columns = [list(column) for column in zip(*told, strict=True)] or [[], [], [], []]
    connection.execute(
        "INSERT INTO _chances "
        "SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::DOUBLE[]), unnest(?::DOUBLE[])",
        columns,
    )


def chance(log_ratio: float, error: float, dof: int) -> float:
    """Probability that the logarithm of a ratio lies so far from 0, by Student's t; without any error 1 or 0."""
    if error == 0:
        return 1.0 if log_ratio == 0 else 0.0
    return tail(log_ratio / error, dof)


def _load(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    quoted = str(path).replace("'", "''")
    try:
        connection.execute(f"CREATE TABLE baseline_{name} AS FROM read_parquet('{quoted}')")
        (version,) = rows_of(connection, f"SELECT baseline_version FROM baseline_{name}")
    except (duckdb.Error, ValueError) as error:
        told = f"{printable(str(path))} is no baseline"
        cure = "python -m analysis compare SIDE --save FILE.parquet writes one"
        raise SideError(f"{told}: {cure}") from error
    if version["baseline_version"] != BASELINE_VERSION:
        raise SideError(
            f"{printable(str(path))} is a baseline of version {version['baseline_version']}, this program reads "
            f"version {BASELINE_VERSION}: save it again from its store"
        )


def rows_of(connection: duckdb.DuckDBPyConnection, query: str, values: Iterable[Any] = ()) -> list[Row]:
    """The rows of a query, by column."""
    result = connection.execute(query, list(values))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
