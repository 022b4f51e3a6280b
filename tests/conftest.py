"""What all tests share: locks of their own, and roofs that are measured once, whatever else keeps the CPU busy."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from sweeps import measure_roofs

from runner.locks import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sweep that runs beside the tests is never waited for, nor does it wait for them."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, VARIABLE, str(folder))
        yield folder


@pytest.fixture(scope="session")
def measured_roofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds nothing but the CPU's roofs: copied into another, its sweep starts sooner.

    Of tests that run side by side in several processes the first one to ask measures them for all.
    """
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (common / "roofs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(common.glob("roofs/roofs/*.parquet")):
            measure_roofs(common / "roofs")
    return common / "roofs"


@pytest.fixture(scope="session")
def script_made_once() -> Iterator[None]:
    """The script of a report is the same in each: vl-convert, which takes seconds, makes it for the first one alone."""
    from analysis.report import bundle  # not above: the tests that need CUDA run without the analysis

    made = cache(lambda: bundle.begun()())

    def begun() -> Callable[[], str]:
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.report.begun", begun)
        yield
