"""Rules of the device lane: each with a case where it fires, and a near miss."""

from pathlib import Path

from rule_given import Trace, outcome


def steps(blocks: int) -> Trace:
    """Four steps with a kernel of so many blocks."""
    trace = Trace()
    for step in range(4):
        at = 100.0 * step
        trace.step(step, at, 50)
        trace.host("aten::mm", at + 5, 20, step)
        trace.launched("gemm", at + 10, at + 20, 10, step, grid=[blocks, 1, 1], block=[128, 1, 1])
    return trace


def test_underfilled_kernel_fires(tmp_path: Path) -> None:
    """131 blocks leave one of 132 multiprocessors without work."""
    found = outcome(tmp_path, "underfilled_kernel", steps(131))
    assert found["outcome"] == "fired"
    assert "gemm has 131 blocks for 132 multiprocessors" in found["sentence"]


def test_underfilled_kernel_near_miss(tmp_path: Path) -> None:
    """132 blocks give every multiprocessor one."""
    assert outcome(tmp_path, "underfilled_kernel", steps(132))["outcome"] == "clear"
