"""runner.compiling: what torch.compile did for a point, read from torch's own records, here on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import utils

from runner import compiling


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Every test begins and ends with empty caches, as every point does."""
    compiling.forget()
    yield
    compiling.forget()


def matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A graph of library calls alone, for which no C++ compiler is needed."""
    return torch.add(torch.matmul(x, w), b)


def inputs(size: int) -> tuple[torch.Tensor, ...]:
    """Three square matrices."""
    return tuple(torch.randn(size, size) for _ in range(3))


def facts_of(size: int, mode: bool | str = True) -> dict[str, Any]:
    """Facts of a fresh compilation of matmul_add."""
    compiling.forget()
    step = compiling.compiled(matmul_add, mode, False)
    step(*inputs(size))
    return compiling.facts()


def test_a_compilation_tells_frames_guards_and_code() -> None:
    """One frame with its guards, one graph with its hash, and the file that holds its call."""
    found = facts_of(16)
    (frame,) = found["frames"]
    assert (frame["frame"], frame["name"], frame["reason"]) == ("0/0", "matmul_add", None)
    assert frame["seconds"] > 0 and frame["guards"] > 3
    assert found["guards"]["TENSOR_MATCH"] == 3 and found["guards"]["GLOBAL_STATE"] == 1
    (file,) = found["code"]
    assert "extern_kernels.addmm" in file["source_text"] and file["file_name"].endswith(".py")
    assert [file["graph_hash"]] == found["graph_hashes"]
    assert (found["break_reasons"], found["limit_reached"], found["code_left_out"]) == ({}, False, [])


def test_code_from_the_cache_is_the_same() -> None:
    """A second compilation of the same graph takes it from torch's cache, and tells the same file."""
    first, second = facts_of(24), facts_of(24)
    assert second["cache_hits"] > 0
    assert first["code"] == second["code"] and len(second["code"]) == 1


def test_code_of_the_floor_is_not_the_points() -> None:
    """What was compiled before the counters were cleared belongs to another step."""
    compiling.compiled(compiling.separate(matmul_add), True, False)(*inputs(2))
    compiling.forget_counters()
    compiling.compiled(matmul_add, True, False)(*inputs(8))
    found = compiling.facts()
    assert [each["name"] for each in found["frames"]] == ["matmul_add"]
    assert found["guards"]["TENSOR_MATCH"] == 3
    assert len(found["code"]) == 1 and "(8, 8)" in found["code"][0]["source_text"]


def test_a_cuda_graph_that_was_not_made_is_told() -> None:
    """On the CPU a mode with CUDA graphs makes none: one skip with torch's reason, and nothing is copied."""
    found = facts_of(16, "reduce-overhead")
    assert found["cudagraph_skips"] == 1 and len(found["cudagraph_skip_reasons"]) == 1
    assert (found["cudagraph_copies"], found["cudagraph_copied_bytes"]) == (None, None)
    assert facts_of(16, True)["cudagraph_skips"] == 0


def broken(x: torch.Tensor) -> torch.Tensor:
    """Two graphs with a break between."""
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


def whole(x: torch.Tensor) -> torch.Tensor:
    """One graph."""
    return x * 2


def traced(function: Callable[[torch.Tensor], torch.Tensor], sizes: range) -> dict[str, Any]:
    """Facts of a function that is traced but generates nothing, called with vectors of these lengths."""
    step = torch.compile(function, dynamic=False, backend="eager")
    for size in sizes:
        step(torch.ones(size))
    return compiling.facts()


def test_graph_breaks_have_their_reasons() -> None:
    """One break, its reason in one line, and both frames around it."""
    found = traced(broken, range(3, 4))
    ((reason, count),) = found["break_reasons"].items()
    assert "graph_break" in reason and "\n" not in reason and count == found["graph_breaks"] == 1
    assert [each["frame"] for each in found["frames"]] == ["0/0", "1/0"]
    assert not found["code"]


def test_recompilations_have_their_reasons_until_the_limit() -> None:
    """Each size but the first says why; only beyond torch's limit it is told that eager ran."""
    limit = torch._dynamo.config.recompile_limit
    within = traced(whole, range(2, 2 + limit))
    assert [each["reason"] is None for each in within["frames"]] == [True] + [False] * (limit - 1)
    assert not within["limit_reached"]
    beyond = traced(whole, range(2 + limit, 3 + limit))
    assert beyond["limit_reached"] and len(beyond["frames"]) == limit


def test_code_that_is_too_long_is_named_and_left_out() -> None:
    """A file beyond the limit is told by name and size; the others stay."""
    short = {"file_name": "a.py", "graph_hash": None, "source_text": "x"}
    long = {**short, "file_name": "b.py", "source_text": "x" * (compiling.LONGEST_CODE_BYTES + 1)}
    found = compiling._files([long, short])
    assert found["code"] == [short]
    assert found["code_left_out"] == [{"file_name": "b.py", "bytes": compiling.LONGEST_CODE_BYTES + 1}]


def test_copies_are_counted_over_all_graphs() -> None:
    """Bytes of every copied input; unknown where one has no fixed size; nothing known without a CUDA graph."""
    assert compiling._copies([[8, 16], []]) == {"cudagraph_copies": 2, "cudagraph_copied_bytes": 24}
    assert compiling._copies([[8, None]]) == {"cudagraph_copies": 2, "cudagraph_copied_bytes": None}
    assert compiling._copies([]) == {"cudagraph_copies": None, "cudagraph_copied_bytes": None}


def test_what_this_torch_does_not_tell_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release without a record costs the facts that need it and nothing else."""
    from torch._dynamo import eval_frame

    monkeypatch.delattr(eval_frame, "_debug_get_cache_entry_list")
    found = facts_of(16)
    assert found["guards"] is None and found["compilations"] == 1 and found["code"]


def test_static_inputs_change_no_result() -> None:
    """On the CPU the promise changes nothing; what is no tensor is left alone. A function that was compiled without the
    promise does not serve it, and the next point has torch's cache again."""
    assert facts_of(16)["compilations"] == facts_of(16)["compilations"] == 1
    compiling.forget()
    given = inputs(16)
    step = compiling.compiled(matmul_add, True, False)
    compiling.mark_static([*given, 3, None])
    assert torch.allclose(step(*given), matmul_add(*given), atol=1e-5)
    assert compiling.facts()["compilations"] == 1
    assert not utils.counters["aot_autograd"]["autograd_cache_hit"]
    assert not torch._functorch.config.enable_autograd_cache
    assert facts_of(16)["cache_hits"] and utils.counters["aot_autograd"]["autograd_cache_hit"] == 1
    assert torch._functorch.config.enable_autograd_cache
