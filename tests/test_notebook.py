"""docs/notebook.py and what a notebook imports from analysis."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from given import write_store

import analysis
from analysis import StoreError, frame, open_store

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.py"


def test_a_query_is_a_polars_frame(tmp_path: Path) -> None:
    """A frame has the types of its columns, lists included, and may have no row; pyarrow is not needed."""
    with open_store(write_store(tmp_path, runs=[{"size": 64}, {"size": 128}])) as connection:
        rows = frame(connection, "SELECT size, [size, 1] AS sizes FROM points ORDER BY size")
        none = frame(connection, "FROM points WHERE false")
    assert rows.schema == {"size": pl.Int64, "sizes": pl.List(pl.Int64)}
    assert rows["sizes"].to_list() == [[64, 1], [128, 1]]
    assert none.shape[0] == 0 and none.shape[1] > 50
    assert "pyarrow" not in sys.modules


def test_open_store_tells_what_is_wrong(tmp_path: Path) -> None:
    """The error can be caught by the name that analysis has for it, and no other name is made up."""
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "none")
    with pytest.raises(AttributeError, match="has no attribute 'close_store'"):
        _ = analysis.close_store


def test_the_notebook_runs_as_a_script(tmp_path: Path) -> None:
    """python docs/notebook.py ends well, from any folder."""
    command = [sys.executable, str(NOTEBOOK)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_notebook_shows_bounds_a_chart_and_findings() -> None:
    """Its cells hold rows of the H200 results, and a chart of the three times."""
    spec = importlib.util.spec_from_file_location("notebook", NOTEBOOK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, cells = module.app.run()
    assert set(cells["counted"]["bound"]) > {"overhead-bound", "compute-bound"}
    assert set(cells["times"]["quantity"]) == {"issue_us", "device_us", "wall_us"}
    assert cells["chart"].to_dict()["mark"]["type"] == "line"
    assert "gemm_off_tensor_cores" in cells["found"]["rule"].to_list()
