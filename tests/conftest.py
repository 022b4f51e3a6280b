"""What all tests share: locks of their own, and roofs that are measured once, whatever else keeps the CPU busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    """A store that holds nothing but the CPU's roofs: copied into another, its sweep starts sooner."""
    return measure_roofs(tmp_path_factory.mktemp("roofs"))
