"""How a point is named: an id, a beginning of one, or filters."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import Row, write_store

from analysis.naming import PointError, named_run
from analysis.store import open_store

RUNS: list[Row] = [
    {"run_id": "1a01", "point_id": "aaaa1111bbbb", "size": 64},
    {"run_id": "1a02", "point_id": "aaaa1111cccc", "size": 128, "batch": 8},
    {"run_id": "1a03", "point_id": "aaaa1111bbbb", "size": 64, "environment_id": "other"},
    {"run_id": "1a04", "point_id": "aaaa1111bbbb", "size": 64, "status": "failed", "reason": "it broke"},
    {"run_id": "1a05", "point_id": "dddd", "workload": "elementwise", "size": 64, "params": {"ops": 4}},
    {"run_id": "1a06", "point_id": "eeee", "workload": "my trace", "size": None, "source": "import"},
]


def found(folder: Path, point: str, runs: list[Row] = RUNS) -> str:
    """Id of the run that a POINT stands for."""
    with open_store(write_store(folder, runs=runs)) as connection:
        return named_run(connection, point).run_id


@pytest.mark.parametrize(
    ("point", "run_id"),
    [
        ("dddd", "1a05"),
        ("aaaa1111b", "1a03"),
        ("1a01", "1a01"),
        ("aaaa1111bbbb environment_id=env", "1a01"),
        ("aaaa1111bbbb run_id=1a04", "1a04"),
        ("size=128", "1a02"),
        ("workload=matmul_add batch=null", "1a03"),
        ("workload.ops=4", "1a05"),
        ("ops=4 size=64", "1a05"),
        ("workload=my trace", "1a06"),
        ("workload=my trace source=import", "1a06"),
    ],
)
def test_what_a_name_stands_for(tmp_path: Path, point: str, run_id: str) -> None:
    """The latest ok run of the one point that fits, or the run whose id is given."""
    assert found(tmp_path, point) == run_id


def test_a_whole_id_wins_over_longer_ones(tmp_path: Path) -> None:
    """An id that another one begins with still names its own point."""
    assert found(tmp_path, "ab", [{"run_id": "1", "point_id": "ab"}, {"run_id": "2", "point_id": "abc"}]) == "1"


def test_a_failed_point_is_found(tmp_path: Path) -> None:
    """A point without an ok run stands for its latest run."""
    assert found(tmp_path, "p", [{"run_id": "1", "point_id": "p", "status": "oom"}]) == "1"


def test_several_are_told_apart(tmp_path: Path) -> None:
    """The candidates' beginnings are long enough to name one of them, and their axes are told."""
    with pytest.raises(PointError) as error:
        found(tmp_path, "aaaa")
    assert "'aaaa' names 2 points" in str(error.value)
    assert "aaaa1111b (matmul_add size=64 fp32 eager)" in str(error.value)
    assert "aaaa1111c (matmul_add size=128 fp32 batch=8 eager)" in str(error.value)


def test_at_most_five_candidates(tmp_path: Path) -> None:
    """Many candidates are five and a number."""
    with pytest.raises(PointError) as error:
        found(tmp_path, "workload=matmul_add", [{"size": size} for size in range(9)])
    assert str(error.value).count("fp32 eager") == 5
    assert "and 4 more" in str(error.value)


def test_nothing_fits_and_the_nearest_are_told(tmp_path: Path) -> None:
    """Where no point fits all filters, those that fit most are listed."""
    with pytest.raises(PointError) as error:
        found(tmp_path, "workload=elementwise size=65")
    assert "names no point: nearest are dddd (elementwise size=64 fp32 eager workload.ops=4)" in str(error.value)
    assert "matmul_add" not in str(error.value)


def test_nothing_at_all_is_like_it(tmp_path: Path) -> None:
    """An id that nothing begins with lists what there is."""
    with pytest.raises(PointError, match="'zz' names no point: there are "):
        found(tmp_path, "zz")


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    """Without any run there is no candidate."""
    with pytest.raises(PointError, match="the store holds no run"):
        found(tmp_path, "zz", [])


def test_a_key_that_does_not_exist(tmp_path: Path) -> None:
    """A misspelt key lists those that are allowed."""
    with pytest.raises(PointError, match=r"no point has a sise: allowed are batch, .* size, "):
        found(tmp_path, "sise=64")


def test_hostile_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """An escape sequence in a workload's name is shown, not obeyed."""
    with pytest.raises(PointError) as error:
        found(tmp_path, "zz", [{"workload": "\x1b[31mred"}])
    assert "\x1b" not in str(error.value)


def test_further_axes_that_have_the_names_of_others(tmp_path: Path) -> None:
    """The axis or the column of that name is kept, and names that differ in case alone are two."""
    params = {"size": 7, "dtype": "x", "status": "odd", "run_id": "9", "ops": 1, "Ops": 2}
    runs: list[Row] = [{"run_id": "1", "point_id": "p", "params": params}, {"run_id": "2", "point_id": "q"}]
    store = write_store(tmp_path, runs=runs)
    with open_store(store) as connection:
        for point in ("size=64 ops=1", "dtype=fp32 Ops=2", "run_id=1", "status=ok ops=1"):
            assert named_run(connection, point).run_id == "1"
        for point in ("size=7", "dtype=x", "status=odd", "run_id=9"):
            with pytest.raises(PointError, match="names no point"):
                named_run(connection, point)
