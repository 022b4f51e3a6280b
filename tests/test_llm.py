"""Language models with random weights: what a point may say, what a step is, and what it costs."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import values
from torch.utils._python_dispatch import TorchDispatchMode

from runner import counting, numerics
from runner.device import Cpu
from runner.point import Point, PointError
from runner.workloads.llm import PRESETS
from runner.workloads.llm import numbers as numbers_of

ROOT = Path(__file__).parent.parent
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 64}


def point(name: str, size: int, changes: dict[str, Any] | None = None, **axes: Any) -> Point:
    """A point of the CPU in float32."""
    group = {"name": name, **(changes or {})}
    return Point.checked(values(workload=group, size=size, dtype="fp32", device="cpu", **axes))


def built(given: Point) -> Any:
    """Its step, eager."""
    pytest.importorskip("transformers")
    return given.spec.build(given, torch.device("cpu"), torch.Generator().manual_seed(0), lambda function: function)


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "no/such"}, "workload.model=no/such: allowed is tiny, 0.5b, a model_type"),
        ({"model": 7}, "workload.model=7: allowed is tiny, 0.5b, a model_type"),
        ({"model": "nowhere/config.json"}, "it cannot be read (No such file or directory)"),
        ({"overrides": [1]}, "allowed is null or a mapping of names"),
        ({"cache": "growing"}, "workload.cache=growing: allowed is static, dynamic"),
        ({"context": 1}, "workload.context=1: allowed is a whole number from 2"),
    ],
)
def test_a_wrong_setting_is_refused(changes: dict[str, Any], told: str) -> None:
    """One sentence, before anything runs."""
    with pytest.raises(PointError) as refused:
        point("llm_decode", 4, changes)
    assert told in str(refused.value)


def test_decoding_has_no_second_batch() -> None:
    """Its size is the batch."""
    with pytest.raises(PointError, match=r"batch=8: allowed is null, .* write size=8"):
        point("llm_decode", 4, batch=8)


def test_a_changed_config_file_is_another_point(tmp_path: Path) -> None:
    """The id holds the file's content."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama", **SMALL}))
    before = point("llm_decode", 4, {"model": str(file)}).point_id
    file.write_text(json.dumps({"model_type": "llama", **SMALL, "hidden_size": 64}))
    assert point("llm_decode", 4, {"model": str(file)}).point_id != before


def test_the_parent_needs_neither_torch_nor_transformers() -> None:
    """Checking a point, its cost and its floor import none of them."""
    code = (
        "import sys; sys.path.insert(0, 'tests'); from configured import values; from runner.point import Point; "
        "p = Point.checked(values(workload={'name': 'llm_decode', 'model': '0.5b'})).resolved('cuda'); "
        "assert p.spec.cost(p).bytes_min > 9e8 and p.spec.at_floor(p).size == 1; "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_transformers_a_point_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, not an import error."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    given = point("llm_decode", 2)
    with pytest.raises(RuntimeError, match="transformers is not installed in this Python; install it: pip install"):
        given.spec.build(given, torch.device("cpu"), torch.Generator(), lambda function: function)


# -- the model ---------------------------------------------------------------------------------------------------------


def test_presets_have_the_weights_that_are_stated() -> None:
    """125,248 and 494,005,120 weights, nearly all of which each token is multiplied with."""
    pytest.importorskip("transformers")
    from runner import language_model

    for word, stated in (("tiny", 125_248), ("0.5b", 494_005_120)):
        kind, given = PRESETS[word]
        model = language_model.model_of(kind, given, "sdpa", torch.bfloat16, torch.device("meta"), 0)
        assert sum(each.numel() for each in model.parameters()) == stated
        known = numbers_of(point("llm_decode", 1, {"model": word}))
        assert known is not None and 0.997 < known.products / stated <= 1


def test_an_unknown_model_type_is_told_in_one_sentence() -> None:
    """Not with the names of all that there are, which transformers lists."""
    transformers = pytest.importorskip("transformers")
    from runner.language_model import _config

    with pytest.raises(ValueError, match=r"^model=nosuch: transformers [0-9.]+ knows no such model_type$"):
        _config(transformers, "nosuch", {})


def test_more_positions_than_the_model_has_are_refused() -> None:
    """With the override that gives it more."""
    given = point("llm_decode", 1, {"context": 100, "overrides": {"max_position_embeddings": 64}})
    with pytest.raises(ValueError, match=r"100 positions: the model has 64; .*max_position_embeddings:100"):
        built(given)


# -- the step ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_every_decoding_step_is_the_next_token_of_the_same_context(cache: str, attention: str) -> None:
    """Step by step equal, and equal to a model that reads the whole context at once; a copy is another step."""
    step = built(point("llm_decode", 3, {"cache": cache, "attention": attention, "context": 16}))
    model, kept, last, *_ = step.arguments
    first = step.function(*step.arguments)
    copied = copy.deepcopy(step.arguments)
    assert torch.equal(first, step.function(*step.arguments))
    assert torch.equal(first, step.function(*copied)) and torch.equal(first, step.function(*step.arguments))
    tokens = torch.randint(512, (3, 16), generator=torch.Generator().manual_seed(0))
    assert torch.equal(tokens[:, -1:], last)
    whole = model(input_ids=tokens).logits[:, -1:]
    assert first.shape == (3, 1, 512) and torch.allclose(first, whole, atol=1e-5)
    assert kept is not copied[1]


@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_numerics_are_checked_on_a_copy(cache: str) -> None:
    """In float64 the model and its cache: the error is that of float32, and neither of the two types is left out."""
    given = point("llm_decode", 2, {"context": 8, "cache": cache})
    found = numerics.check(given, built(given), 1000.0, None, Cpu())
    assert found.passed is True and 1e-8 < found.error < 1e-5


@pytest.mark.parametrize("name", ["llm_prefill", "llm_decode"])
def test_a_step_never_waits_for_the_device(name: str) -> None:
    """It reads no value back and, but for the empty tensors of a new cache, makes no tensor from one of the host."""

    class Watch(TorchDispatchMode):
        called: set[str] = set()  # noqa: RUF012

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.called.add(func._overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    step = built(point(name, 4))
    with Watch() as watch:
        step.function(*step.arguments)
    waits = {"_local_scalar_dense", "nonzero"} | ({"lift_fresh"} if name == "llm_decode" else set())
    assert "_scaled_dot_product_flash_attention_for_cpu" in watch.called and not waits & watch.called


# -- the cost ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "changes"),
    [
        ("llm_decode", 4, {"context": 64}),
        ("llm_decode", 4, {"context": 64, "cache": "dynamic"}),
        ("llm_decode", 2, {"model": "gpt2", "context": 64,
                           "overrides": {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 96}}),
        ("llm_prefill", 32, {"attention": "eager"}),
    ],
)  # fmt: skip
def test_the_formulas_are_what_torch_counts(name: str, size: int, changes: dict[str, Any]) -> None:
    """FLOPs within 10 % above (what is elementwise), and the bytes of the step as a whole within 10 %."""
    given = point(name, size, changes)
    cost, counted = given.spec.cost(given), counting.counted(built(given), compiled=False)
    assert cost is not None
    flops, seen = (sum(each.flops for each in cost.operations), sum(each["flops"] for each in counted["operations"]))
    assert flops <= seen < 1.1 * flops
    assert counted["bytes_min"] == pytest.approx(cost.bytes_min, rel=0.1)


def test_decoding_costs_by_hand() -> None:
    """Each weight once in bytes and twice in FLOPs a sequence; keys and values of the context; no cost unknown."""
    given = point("llm_decode", 8, {"model": "0.5b", "context": 1024})
    cost = given.spec.cost(given)
    assert cost is not None
    attention = 4 * 24 * 14 * 64 * 1024 * 8
    assert sum(each.flops for each in cost.operations) == 2 * 493_961_216 * 8 + attention
    cached = 24 * 2 * 2 * 64 * (1024 + 1) * 8
    assert cost.bytes_min == 4 * (493_961_216 + cached + 8 * (151_936 + 896))
    assert point("llm_decode", 8, {"model": "gemma"}).spec.cost(point("llm_decode", 8, {"model": "gemma"})) is None


def test_the_floor_has_as_many_layers() -> None:
    """The same operations on next to nothing."""
    given = point("llm_decode", 64, {"model": "0.5b"})
    floor = given.spec.at_floor(given)
    small, large = numbers_of(floor), numbers_of(given)
    assert small is not None and large is not None and small.layers == large.layers
    assert small.products < large.products / 5000
    step = built(floor)
    assert step.function(*step.arguments).shape == (1, 1, 16)
