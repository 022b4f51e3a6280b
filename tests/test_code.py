"""`python -m analysis code`: the generated code of a point, or one sentence why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from given import Row, write_store

from analysis.code import write
from analysis.naming import PointError
from analysis.store import open_store

FILES = {"c1": ("first.py", "fabc", "def call():\n    one\n\n\n"), "c2": ("second.py", None, "two")}
COMPILED: Row = {"compile": "true", "size": 512}


def compiled(**facts: Any) -> Row:
    """A compiled run with these facts.compile."""
    return {**COMPILED, "facts": {"compile": {"frames": [], **facts}}}


def store(folder: Path, *runs: Row) -> Path:
    """A store with these runs and both files."""
    write_store(folder, runs=runs)
    (folder / "code").mkdir()
    for code_id, (name, graph, text) in FILES.items():
        row = {"code_id": code_id, "source_text": text, "file_name": name, "graph_hash": graph}
        schema = dict.fromkeys(row, pl.String)
        pl.DataFrame([row], schema=schema).write_parquet(folder / "code" / f"{code_id}.parquet")
    return folder


def test_files_come_one_after_the_other(tmp_path: Path) -> None:
    """In the order of the run, each behind a line with its name and, where it is known, its graph."""
    path = tmp_path / "code.py"
    with open_store(store(tmp_path / "store", compiled(code=["c2", "c1"]))) as connection:
        write(connection, "r000", path)
    assert path.read_text() == "# -- second.py\ntwo\n\n# -- first.py (graph fabc)\ndef call():\n    one\n"


def test_code_is_a_relation(tmp_path: Path) -> None:
    """One row a file; an empty store has none."""
    with open_store(store(tmp_path / "store")) as connection:
        rows = connection.sql("SELECT code_id, file_name, graph_hash FROM code ORDER BY code_id").fetchall()
    assert rows == [("c1", "first.py", "fabc"), ("c2", "second.py", None)]
    (tmp_path / "empty").mkdir()
    with open_store(tmp_path / "empty") as connection:
        assert connection.sql("FROM code").fetchall() == []


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"compile": "false", "size": 512}, "it runs eager; sweep it with compile=true"),
        ({**COMPILED, "facts": {"compile": {"seconds": 1.0}}}, "it was compiled before code was kept"),
        ({**COMPILED, "status": "oom", "reason": "too large"}, "it is oom: too large"),
        (compiled(code=[]), "torch.compile generated nothing for it"),
        (compiled(), "its torch does not tell"),
        (compiled(code=[], code_left_out=[{"file_name": "a.py", "bytes": 2000000}]), "too long to be kept"),
        (compiled(code=["c9"]), "its files are not in the store"),
        ({**COMPILED, "compile": None, "source": "import"}, "a trace holds none"),
    ],
    ids=["eager", "older", "failed", "nothing", "unknown", "long", "lost", "imported"],
)
def test_one_sentence_says_why_there_is_none(tmp_path: Path, run: Row, why: str) -> None:
    """What kind of run it is, and the cure where there is one."""
    with open_store(store(tmp_path / "store", run)) as connection, pytest.raises(PointError) as refusal:
        write(connection, "r000", None)
    assert why in str(refusal.value) and "has no generated code: " in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_eager_point_names_the_compiled_one(tmp_path: Path) -> None:
    """The run alike but for compile that has code is the next to ask for; one of another size is not."""
    runs = [{"size": 512}, compiled(code=["c1"]), {**compiled(code=["c1"]), "size": 64}]
    with open_store(store(tmp_path / "store", *runs)) as connection, pytest.raises(PointError, match="; run r001 "):
        write(connection, "r000", None)


def test_new_columns_unfold_the_facts(tmp_path: Path) -> None:
    """Compile, memory and window facts of a run; an older run has NULL in all of them."""
    facts = {
        "compile": {
            "frames": [{"frame": "0/0"}], "guards": {"TENSOR_MATCH": 3, "GLOBAL_STATE": 1}, "limit_reached": False,
            "break_reasons": {"why": 1}, "cudagraph_skips": 0, "cudagraph_copies": 3, "cudagraph_copied_bytes": 96,
            "code": ["c1"], "graph_hashes": ["fabc"],
        },
        "memory": {"allocated_peak_bytes": 9, "alloc_retries": 0, "device_allocs": 0.5},
        "profile": {"window": {"before": {"sm_clock_mhz": 1980}, "behind": {}}, "options": {"with_stack": True}},
    }  # fmt: skip
    columns = (
        "compile_frames, guards, guard_count, break_reasons, limit_reached, cudagraph_skips, cudagraph_copies, "
        "cudagraph_copied_bytes, code_ids, graph_hashes, allocated_peak_bytes, alloc_retries, device_allocs, "
        "window_before, window_behind, profiler_options"
    )
    with open_store(write_store(tmp_path, runs=[{**COMPILED, "facts": facts}, {}])) as connection:
        new, old = connection.sql(f"SELECT {columns} FROM stg_runs ORDER BY run_id").fetchall()
    assert old == (None,) * len(new)
    assert new == (
        '[{"frame":"0/0"}]', '{"TENSOR_MATCH":3,"GLOBAL_STATE":1}', 4, '{"why":1}', False, 0, 3, 96, '["c1"]',
        '["fabc"]', 9, 0, 0.5, '{"sm_clock_mhz":1980}', "{}", '{"with_stack":true}',
    )  # fmt: skip
