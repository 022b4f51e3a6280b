"""Language models of `transformers` with random weights: llm_prefill and llm_decode (extra `llm`).

The model's numbers are known here without transformers, so that the parent checks a point and knows its cost; the model
itself is made in the worker (runner/language_model.py). Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import ITEM_BYTES, Allowed, Built, Compile, Cost, Operation, Workload, torch_dtype

if TYPE_CHECKING:
    import torch

    from runner.point import Point

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny": (
        "llama",
        {
            "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "intermediate_size": 176, "vocab_size": 512, "tie_word_embeddings": True, "max_position_embeddings": 32768,
        },
    ),
    "0.5b": (
        "llama",
        {
            "hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
            "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": True,
            "max_position_embeddings": 32768,
        },
    ),
}  # fmt: skip
"""Word -> model_type and its numbers: 125,248 and 494,005,120 weights; embedding and head are one."""

GATED, PLAIN = ("llama", "mistral", "qwen2"), ("gpt2",)
"""Model types whose layers are known here: three products around a gate, or two, behind attention of four products."""
GPT2_NAMES = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
              "n_inner": "intermediate_size"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numbers:
    """What decides the cost of a model. gated: three products in the MLP, not two; tied: the embedding is the head."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    gated: bool
    tied: bool

    @property
    def layer_weights(self) -> dict[str, int]:
        """Weights of each product of one layer; norms and biases are left out, thousandths of them."""
        inner, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "qkv": self.hidden * (inner + 2 * keys),
            "attention output": inner * self.hidden,
            "mlp in": (2 if self.gated else 1) * self.hidden * self.intermediate,
            "mlp out": self.intermediate * self.hidden,
        }

    @property
    def layer_elements(self) -> dict[str, int]:
        """Elements that each product of one layer reads and writes for a token, besides its weights."""
        inner, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        wide = (2 if self.gated else 1) * self.intermediate
        return {
            "qkv": self.hidden + inner + 2 * keys,
            "attention output": inner + self.hidden,
            "mlp in": self.hidden + wide,
            "mlp out": self.intermediate + self.hidden,
        }

    @property
    def products(self) -> int:
        """Weights that a token is multiplied with: of all layers and of the head."""
        return self.layers * sum(self.layer_weights.values()) + self.hidden * self.vocabulary


def _numbers(kind: str, given: Mapping[str, Any]) -> Numbers | None:
    """The numbers of a model type whose layers are known here, None where one of them is not told."""
    named = {GPT2_NAMES.get(name, name): value for name, value in given.items()} if kind in PLAIN else dict(given)
    if kind in PLAIN:
        named = {"tie_word_embeddings": True, **named}
        hidden: Any = named.get("hidden_size")
        named["intermediate_size"] = named.get("intermediate_size") or (4 * hidden if _whole(hidden) else None)
    needed = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    if kind not in (*GATED, *PLAIN) or not all(_whole(named.get(each)) for each in needed):
        return None
    layers, hidden, heads, intermediate, vocabulary = (named[each] for each in needed)
    kv_heads, head_dim = named.get("num_key_value_heads") or heads, named.get("head_dim") or hidden // heads
    tied = bool(named.get("tie_word_embeddings", False))
    return Numbers(layers, hidden, heads, kv_heads, head_dim, intermediate, vocabulary, kind in GATED, tied)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# -- the settings ------------------------------------------------------------------------------------------------------


def _model(value: Any) -> str:
    """A preset, a model_type, or the path of a config.json."""
    word = value if isinstance(value, str) else ""
    if word.endswith(".json"):
        _file(word)
        return word
    if word in PRESETS or word.replace("-", "_").isidentifier():
        return word
    raise ValueError(
        f"allowed is {', '.join(PRESETS)}, a model_type of transformers, or the path of a config.json; "
        "for example workload.model=tiny"
    )


def _overrides(value: Any) -> str | None:
    """Names of the model's configuration and their values, as JSON text with sorted keys; None for none."""
    given = json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    if given is None or given == {}:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name.isidentifier() for name in given):
        raise ValueError(
            "allowed is null or a mapping of names in the model's configuration; for example "
            "'workload.overrides={hidden_size:256,num_hidden_layers:4}'"
        )
    return json.dumps(dict(given), sort_keys=True, separators=(",", ":"))


@cache
def _file(path: str) -> dict[str, Any]:
    """A config.json. Raises ValueError with what is wrong with it."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror}); for example workload.model=tiny") from None
    except ValueError as error:
        raise ValueError(f"it is no JSON ({error}); for example workload.model=tiny") from None
    if not isinstance(found, dict) or not isinstance(found.get("model_type"), str):
        raise ValueError("it names no model_type; for example workload.model=tiny")
    return found


def described(point: Point) -> tuple[str, str, dict[str, Any]]:
    """The model of a point: its model_type; what transformers makes it of, a model_type or the path of a config.json;
    and the numbers that are other than there."""
    params = dict(point.params)
    word, given = params["model"], json.loads(params["overrides"] or "{}")
    if word in PRESETS:
        kind, numbers = PRESETS[word]
        return kind, kind, {**numbers, **given}
    return (_file(word)["model_type"], word, given) if word.endswith(".json") else (word, word, given)


def numbers(point: Point) -> Numbers | None:
    """What decides the cost of a point's model; None where it is not known without transformers."""
    kind, origin, given = described(point)
    return _numbers(kind, {**_file(origin), **given} if origin.endswith(".json") else given)


# -- the cost ----------------------------------------------------------------------------------------------------------


def _products(model: Numbers, tokens: int, item: int) -> list[Operation]:
    """The products with weights, of all layers: 2 FLOPs a weight and token; weights, input and result moved once."""
    weights, elements = model.layer_weights, model.layer_elements
    return [
        Operation(
            name, model.layers * 2 * weights[name] * tokens,
            model.layers * (weights[name] + elements[name] * tokens) * item,
        )
        for name in weights
    ]  # fmt: skip


def _head(model: Numbers, rows: int, item: int) -> Operation:
    """Logits of one position of each sequence."""
    weights = model.hidden * model.vocabulary
    return Operation("head", 2 * weights * rows, (weights + rows * (model.hidden + model.vocabulary)) * item)


def _attention(model: Numbers, impl: str, queries: int, pairs: int, cached: int, item: int) -> list[Operation]:
    """Scores and values of all layers: 2 FLOPs for each element of a head, once a pair of query and key in each.

    queries: tokens that ask; pairs: of a query and a key; cached: tokens whose keys and values are read. `eager` writes
    the scores, reads and writes them in the softmax, and reads them again.
    """
    inner, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    moved = (2 * queries * inner + 2 * cached * keys) * item
    flops, scores = 4 * inner * pairs, model.heads * pairs * item
    if impl == "sdpa":
        return [Operation("attention", model.layers * flops, model.layers * moved)]
    return [
        Operation("scores", model.layers * flops // 2, model.layers * (moved // 2 + scores)),
        Operation("softmax", 0, model.layers * 2 * scores),
        Operation("values", model.layers * flops // 2, model.layers * (moved // 2 + scores)),
    ]


def _elementwise(model: Numbers, tokens: int, item: int) -> Operation:
    """Two norms, two sums, rotations of queries and keys, and the activation, each in one pass; FLOPs left out."""
    rotated = 2 * (model.heads + model.kv_heads) * model.head_dim
    activation = (3 if model.gated else 2) * model.intermediate
    elements = model.layers * (2 * 2 * model.hidden + 2 * 3 * model.hidden + rotated + activation)
    return Operation("elementwise", 0, elements * tokens * item)


def _total(operations: list[Operation], weights: int, state: int, edges: int) -> Cost:
    """state: bytes of the cache that are read and written; edges: bytes of logits and of the tokens' embeddings."""
    least = weights + state + edges
    return Cost(tuple(operations), least, least + max(each.bytes for each in operations) // 2)


class _LanguageModel(Workload):
    """What both workloads share: the model, by `model` and `overrides`, and how it attends."""

    params: ClassVar[Mapping[str, Allowed]] = {
        "model": _model, "overrides": _overrides, "attention": ("sdpa", "eager"),
    }  # fmt: skip
    defaults: ClassVar[Mapping[str, Any]] = {"model": "tiny", "overrides": None, "attention": "sdpa"}
    packages = ("transformers",)
    rotates = False

    @cached_property
    def source(self) -> str:
        """Hash of this file and of what the worker makes of it."""
        text = Path(__file__).read_text() + (Path(__file__).parent.parent / "language_model.py").read_text()
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _model_of(self, point: Point, device: torch.device) -> torch.nn.Module:
        """The point's model. Raises ValueError where it has fewer positions than the step needs."""
        from runner import language_model

        _, origin, given = described(point)
        model = language_model.model_of(
            origin, given, dict(point.params)["attention"], torch_dtype(point.dtype), device, point.seed
        )
        most, needed = getattr(model.config, "max_position_embeddings", None), self.positions(point)
        if most is not None and needed > most:
            raise ValueError(
                f"{needed} positions: the model has {most}; "
                f"write 'workload.overrides={{max_position_embeddings:{needed}}}'"
            )
        return model

    def positions(self, point: Point) -> int:
        """Positions of a sequence that the step uses."""
        raise NotImplementedError

    def at_floor(self, point: Point) -> Point | None:
        """As many layers and heads, each of them with as good as nothing to do; None where they are not known."""
        model, (kind, _, given) = numbers(point), described(point)
        if model is None:
            return None
        heads = {"num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads, "head_dim": 2}
        small = {
            **given, **heads, "num_hidden_layers": model.layers, "hidden_size": 2 * model.heads,
            "intermediate_size": 8, "vocab_size": 16, "tie_word_embeddings": model.tied,
        }  # fmt: skip
        if kind in PLAIN:
            small = {**given, "n_layer": model.layers, "n_head": model.heads, "n_embd": 2 * model.heads, "n_inner": 8,
                     "vocab_size": 16}  # fmt: skip
        params = {**dict(point.params), "model": kind, "overrides": _overrides(small)} | self.least
        return replace(point, size=1, batch=None, params=tuple(sorted(params.items())))

    least: ClassVar[dict[str, Any]] = {}
    """Values of the workload's other settings at which there is as good as nothing to do."""


class LlmPrefill(_LanguageModel):
    """One prompt read: `size` tokens in each of `batch` sequences, to the logits of the last; a new cache every step.

    FLOPs: 2 for each weight of the layers and token, 2 for each weight of the head and sequence, and for attention
    4 x heads x head_dim x pairs of a query and a key in each layer (Kaplan et al., Scaling Laws for Neural Language
    Models, 2020, table 1, where pairs are all of them): sdpa skips those behind the diagonal, size (size + 1) / 2 are
    left; eager takes all size^2. Bytes: see the operations. The cache is new in every step, its tensors are copied into
    it once. Left out: norms and biases, FLOPs of what is elementwise, and what an implementation adds (keys repeated
    for grouped queries, norms in float32).
    """

    name = "llm_prefill"

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """(model, tokens): tokens (batch, size); the result is (batch, 1, vocabulary)."""
        from runner import language_model

        model = self._model_of(point, device)
        forward = language_model.forward_of(model)
        assert point.size is not None
        tokens = language_model.tokens_of(model, point.batch or 1, point.size, device, generator)

        def prefill(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
            return forward(model, tokens)

        return Built(compile(prefill), (model, tokens), prefill)

    def positions(self, point: Point) -> int:
        """The prompt."""
        return point.size or 0

    def cost(self, point: Point) -> Cost | None:
        """The operations of one prompt; None where the model's numbers are not known."""
        if (model := numbers(point)) is None:
            return None
        item, rows, length = ITEM_BYTES[point.dtype], point.batch or 1, point.size or 0
        impl, tokens = dict(point.params)["attention"], rows * length
        pairs = rows * (length * (length + 1) // 2 if impl == "sdpa" else length**2)
        kept = model.layers * 2 * model.kv_heads * model.head_dim * tokens * item
        operations = [
            *_products(model, tokens, item), *_attention(model, impl, tokens, pairs, tokens, item),
            _elementwise(model, tokens, item), Operation("cache", 0, 2 * kept), _head(model, rows, item),
        ]  # fmt: skip
        edges = (rows * model.vocabulary + tokens * model.hidden) * item
        return _total(operations, model.products * item, kept, edges)


class LlmDecode(_LanguageModel):
    """One token for each of `size` sequences, at a fixed context: `context` tokens are attended to, the new one last.

    Before each step the cache holds context - 1 tokens again: of a dynamic cache the tensors of before are put back,
    which copies nothing; a static one, with room for `context`, has its last place overwritten. No token is chosen from
    the logits, which would have the host wait.

    FLOPs: 2 for each weight of layers and head and sequence, and 4 x heads x head_dim x context in each layer and
    sequence (as in llm_prefill). Bytes: every weight once, keys and values of the whole context once, logits. A dynamic
    cache is copied to grow by one token: its keys and values are read and written once more. Left out: as in
    llm_prefill.
    """

    name = "llm_decode"
    params: ClassVar[Mapping[str, Allowed]] = {
        **_LanguageModel.params, "cache": ("static", "dynamic"), "context": range(2, 2**20),
    }  # fmt: skip
    defaults: ClassVar[Mapping[str, Any]] = {**_LanguageModel.defaults, "cache": "static", "context": 512}
    least: ClassVar[dict[str, Any]] = {"context": 2}

    def refusal(self, point: Point) -> str | None:
        """size is the batch already."""
        if point.batch is None:
            return None
        return f"batch={point.batch}: allowed is null, since size is the batch of llm_decode; write size={point.batch}."

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """(model, cache, token, position, mask): token and position (size, 1); the result is (size, 1, vocabulary)."""
        import torch

        from runner import language_model

        params, size = dict(point.params), point.size
        assert size is not None
        context, attention = params["context"], params["attention"]
        model = self._model_of(point, device)
        forward = language_model.forward_of(model)
        tokens = language_model.tokens_of(model, size, context, device, generator)
        kept = language_model.filled_cache(model, params["cache"], tokens[:, :-1], context, forward)
        positions = torch.full((size, 1), context - 1, device=device)
        mask = None
        if params["cache"] == "static" or attention == "eager":
            mask = language_model.all_visible(size, context, attention, torch_dtype(point.dtype), device)
        arguments = (model, kept, tokens[:, -1:].contiguous(), positions, mask)
        return Built(_decode(compile(forward)), arguments, _decode(forward))

    def positions(self, point: Point) -> int:
        """The context."""
        return int(dict(point.params)["context"])

    def cost(self, point: Point) -> Cost | None:
        """The operations of one token; None where the model's numbers are not known."""
        if (model := numbers(point)) is None:
            return None
        params, item, rows = dict(point.params), ITEM_BYTES[point.dtype], point.size or 0
        cached = rows * params["context"]
        kept = model.layers * 2 * model.kv_heads * model.head_dim * item
        written = kept * (2 * cached if params["cache"] == "dynamic" else 2 * rows)
        operations = [
            *_products(model, rows, item), *_attention(model, params["attention"], rows, cached, cached, item),
            _elementwise(model, rows, item), Operation("cache", 0, written), _head(model, rows, item),
        ]  # fmt: skip
        edges = rows * (model.vocabulary + model.hidden) * item
        return _total(operations, model.products * item, kept * (cached + rows), edges)


def _decode(forward: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The step: the cache as it was, then one call; what is compiled is the call alone."""

    def decode(
        model: torch.nn.Module, kept: Any, token: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        kept.restore()
        return forward(model, token, positions, mask, kept.cache)

    return decode
