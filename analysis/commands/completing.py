"""What a shell completes: names of relations and rules, and points by id or filter (argcomplete asks).

Nothing is imported before a shell asks.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.naming import Run


def points(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Filters and ids that fit with the words that are there: keys that tell points apart, behind `size=` its values,
    ids once one has been begun. Several words in one pair of quotes are completed at their last."""
    before, space, last = prefix.rpartition(" ")
    runs = _fitting([*(getattr(parsed_args, "point", None) or []), before], parsed_args.store)
    key, equals, _value = last.partition("=")
    offered = _filters(key, runs) if equals else [*_keys(runs), *_ids(last, runs)]
    return [before + space + each for each in offered]


def relations(prefix: str, **_: Any) -> list[str]:
    """Public relations."""
    from analysis.describe import public_relations

    return [name for name in public_relations() if name.startswith(prefix)]


def rules(prefix: str, **_: Any) -> list[str]:
    """Rules by name."""
    from analysis.rules import all_rules

    return [rule.rule for rule in all_rules() if rule.rule.startswith(prefix)]


def sort_keys(prefix: str, **_: Any) -> list[str]:
    """Keys by which torch sorts its table."""
    from analysis.table import SORT_KEYS

    return [key for key in SORT_KEYS if key.startswith(prefix)]


def runs_of(folder: Path) -> "list[Run]":
    """Every run of a store; none of a store that cannot be read. A shell waits, so no more of it is opened than names
    need."""
    import duckdb

    from analysis import naming, store

    try:
        with store.connect() as connection:
            for macros in store.MACROS:
                connection.execute((store.SQL / f"{macros}.sql").read_text(encoding="utf-8"))
            files = store.live_files(folder, store.reader(connection))
            connection.execute(f"CREATE VIEW files_runs AS {store.rows_of('runs', files['runs'])}")
            store.make(connection, ("stg_runs", "axes"))
            return naming.all_runs(connection)
    except (duckdb.Error, OSError):
        return []


def _fitting(words: Iterable[str], store: Path) -> "list[Run]":
    """The runs of a store that fit; all where a word is not whole yet, or wrong."""
    from analysis.naming import PointError, fitting

    runs, point = runs_of(store), " ".join(filter(None, words))
    try:
        return fitting(point, runs) if point else runs
    except PointError:
        return runs


def _keys(runs: "list[Run]") -> list[str]:
    from analysis.naming import IDS

    keys = {key for run in runs for key in run.keys} - set(IDS)
    return [f"{key}=" for key in sorted(keys) if len({run.keys.get(key) for run in runs}) > 1]


def _ids(beginning: str, runs: "list[Run]") -> list[str]:
    ids = {each for run in runs for each in (run.point_id, run.run_id)} if beginning else set()
    return sorted(each for each in ids if each.startswith(beginning))


def _filters(key: str, runs: "list[Run]") -> list[str]:
    """`KEY=VALUE` for every value of a key; `null` where a run lacks it."""
    values = {run.keys.get(key, "null") for run in runs}
    return [f"{key}={value}" for value in sorted(values, key=_by_number)] if values != {"null"} else []


def _by_number(text: str) -> tuple[bool, float, str]:
    """Numbers before words, by their value."""
    is_number = text.isdecimal()
    return not is_number, float(text) if is_number else 0.0, text
