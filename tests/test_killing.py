"""What SIGKILL leaves of a sweep: `make test-kill` kills at many moments, this test at three for each victim."""

from __future__ import annotations

from pathlib import Path

from killing import kills


def test_a_killed_sweep_loses_nothing(measured_roofs: Path, tmp_path: Path) -> None:
    """Every point has one ok run after the same command has run again, and what had finished did not run again."""
    done = kills(3, measured_roofs, tmp_path)
    assert [(each.victim, each.wrong) for each in done] == [("parent", ()), ("worker", ())] * 3
