"""The code that torch.compile generated for a point, as the store keeps it."""

from pathlib import Path
from typing import Any

import duckdb

from analysis.naming import PointError, Run, all_runs, named_run
from analysis.output import write_text


def write(connection: duckdb.DuckDBPyConnection, point: str, path: Path | None) -> None:
    """Write the generated files of the run that `point` names (analysis/naming.py), one after the other, to the file
    `path`, or to stdout for None.

    Raises:
        PointError: `point` names nothing or several, or there is no code; the message says why.
        OutputError: the file cannot be written.
    """
    run = named_run(connection, point)
    files = _files(connection, run)
    if not files:
        raise PointError(f"run {run.run_id} ({run.label}) has no generated code: {_why_none(connection, run)}")
    write_text("\n".join(_titled(*file) for file in files), path)


def _files(connection: duckdb.DuckDBPyConnection, run: Run) -> list[tuple[Any, ...]]:
    """Name, graph and text of each file, in the order in which the graphs were compiled."""
    return connection.execute(
        "WITH named AS (SELECT from_json(code_ids, '[\"VARCHAR\"]') AS ids FROM stg_runs WHERE run_id = ?) "
        "SELECT file_name, graph_hash, source_text FROM named JOIN code ON list_contains(ids, code_id) "
        "ORDER BY list_position(ids, code_id)",
        [run.run_id],
    ).fetchall()


def _titled(name: str, graph_hash: str | None, text: str) -> str:
    """A file behind a line with its name; the graph is the one that a trace names at every call."""
    return f"# -- {name}{f' (graph {graph_hash})' if graph_hash else ''}\n{text.rstrip()}\n"


def _why_none(connection: duckdb.DuckDBPyConnection, run: Run) -> str:
    """One clause: why the store holds none, with the cure."""
    if run.keys.get("source") == "import":
        return "a trace holds none; sweep the point with compile=true"
    compiled, frames, ids, left_out = connection.execute(
        "SELECT compile, compile_frames, json_array_length(code_ids), code_left_out FROM stg_runs WHERE run_id = ?",
        [run.run_id],
    ).fetchall()[0]
    if compiled in (None, "false"):
        return f"it runs eager{_compiled_twin(connection, run)}"
    if run.status not in (None, "ok") and frames is None:
        return f"it is {run.status}: {run.reason}"
    if frames is None:
        return "it was compiled before code was kept; measure it again with rerun=true"
    if left_out not in (None, "[]"):
        return f"what was generated is too long to be kept: {left_out}"
    if ids is None:
        return "its torch does not tell what it generates"
    return "its files are not in the store" if ids else "torch.compile generated nothing for it"


def _compiled_twin(connection: duckdb.DuckDBPyConnection, run: Run) -> str:
    """The nearest point with code: alike but for `compile`."""
    alike = ("workload", "size", "dtype", "batch", "warmup", "device")
    rows = connection.execute("SELECT run_id FROM stg_runs WHERE json_array_length(code_ids) > 0").fetchall()
    with_code = {run_id for (run_id,) in rows}
    twins = [
        each
        for each in all_runs(connection)
        if each.run_id in with_code and all(each.keys.get(key) == run.keys.get(key) for key in alike)
    ]
    return f"; run {twins[-1].run_id} ({twins[-1].label}) has some" if twins else "; sweep it with compile=true"
