"""Language models of `transformers` with random weights: building one, and one decoding step that can be repeated.

Runs in the worker, where torch is. Nothing is downloaded. What differs between the releases of transformers (4.5x, 5.x)
is behind `_config`, `_model`, `names`, `_parts` and `_empty_cache`.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

INSTALL = "transformers is not installed in this Python; install it: pip install 'transformers>=4.51'"
QUIET = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}  # fmt: skip
"""Set before transformers is imported: it asks no server, and says nothing."""


def transformers() -> ModuleType:
    """The library, offline and silent. Raises RuntimeError with the command that installs it."""
    os.environ.update(QUIET)
    try:
        import transformers as library
    except ImportError as error:
        raise RuntimeError(INSTALL if error.name == "transformers" else f"transformers: {error}") from None
    return library


# -- the model ---------------------------------------------------------------------------------------------------------


def model_of(
    kind: str, numbers: Mapping[str, Any], attention: str, dtype: torch.dtype, device: torch.device, seed: int
) -> torch.nn.Module:
    """A model with random weights, for inference. kind: a model_type or the path of a config.json; numbers: what is
    other than there; attention: `sdpa` or `eager`. Raises ValueError for a kind that transformers does not know."""
    library = transformers()
    config = _config(library, kind, numbers)
    torch.manual_seed(seed)
    with _default_dtype(dtype), device:
        model = _model(library, config, attention, dtype)
    for each in model.parameters():
        each.requires_grad_(False)
    return model.eval()


def _config(library: ModuleType, kind: str, numbers: Mapping[str, Any]) -> Any:
    try:
        if kind.endswith(".json"):
            config = library.AutoConfig.from_pretrained(str(Path(kind).parent), _configuration_file=Path(kind).name)
            config.update(dict(numbers))
            return config
        return library.AutoConfig.for_model(kind, **numbers)
    except (KeyError, ValueError) as error:
        if isinstance(error, ValueError) and not str(error).startswith("Unrecognized model identifier"):
            raise  # of the numbers
        raise ValueError(f"model={kind}: transformers {library.__version__} knows no such model_type") from None


def _model(library: ModuleType, config: Any, attention: str, dtype: torch.dtype) -> torch.nn.Module:
    """The causal model of a configuration. dtype: by the name of this release, since one in a config.json would win."""
    setattr(config, "dtype" if "dtype" in vars(config) or hasattr(config, "dtype") else "torch_dtype", dtype)
    model: torch.nn.Module = library.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return model


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """New tensors are of this dtype; what a model wants in float32 (its rotary frequencies) it says itself."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def tokens_of(model: Any, rows: int, columns: int, device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """Random tokens: (rows, columns)."""
    return torch.randint(model.config.vocab_size, (rows, columns), device=device, generator=generator)


# -- one call ----------------------------------------------------------------------------------------------------------


def names(model: torch.nn.Module) -> dict[str, str]:
    """What this model's forward calls the things that are handed to it; what it does not take is left out."""
    taken = inspect.signature(model.forward).parameters
    known = {
        "cache": ("cache", "past_key_values"), "position_ids": ("position_ids",), "last": ("logits_to_keep",),
        "cache_position": ("cache_position",), "mask": ("attention_mask",),
    }  # fmt: skip
    found = {role: next((each for each in words if each in taken), None) for role, words in known.items()}
    return {role: name for role, name in found.items() if name is not None}


def call(model: Any, tokens: torch.Tensor, given: Mapping[str, Any]) -> torch.Tensor:
    """Logits of the last position of each sequence: (rows, 1, vocabulary)."""
    logits: torch.Tensor = model(input_ids=tokens, use_cache=True, **given).logits
    return logits[:, -1:]


def forward_of(model: torch.nn.Module) -> Callable[..., torch.Tensor]:
    """One call as a plain function of tensors and a cache, each by the name that this release has for it."""
    known = names(model)
    last = {known["last"]: 1} if "last" in known else {}

    def forward(
        model: torch.nn.Module, tokens: torch.Tensor, positions: Any = None, mask: Any = None, cache: Any = None
    ) -> torch.Tensor:
        given = dict(last)
        if cache is not None:
            given[known["cache"]] = cache
        if mask is not None:
            given[known["mask"]] = mask
        if positions is not None and "position_ids" in known:
            given[known["position_ids"]] = positions
        if positions is not None and "cache_position" in known:
            given[known["cache_position"]] = positions[0]
        return call(model, tokens, given)

    return forward


# -- a cache that is as it was -----------------------------------------------------------------------------------------


class Kept:
    """A filled cache of transformers, and how it was when it was filled.

    restore: a dynamic cache gets back its tensors by reference, copying nothing; of a static cache the tensors stay
    where they are, and the counters of tokens that newer releases keep in every layer are set back, all of them in one
    operation. A deep copy is a cache of its own.
    """

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self._before = [(part, _content(part)) for part in _parts(cache)]
        tensors = [each for _, content in self._before for each in content.values() if isinstance(each, torch.Tensor)]
        self._counters = [each for each in tensors if each.dtype == torch.int64]
        self._counts = [each.clone() for each in self._counters]

    def restore(self) -> None:
        """The cache as it was."""
        for part, content in self._before:
            _put(part, content)
        if self._counters:
            torch._foreach_copy_(self._counters, self._counts)


def _parts(cache: Any) -> list[Any]:
    """What holds the content of a cache, a step's own changes included: its layers; before transformers 4.54 lists of
    keys and of values, and the cache itself."""
    return list(cache.layers) if hasattr(cache, "layers") else [cache.key_cache, cache.value_cache, cache]


def _content(part: Any) -> dict[Any, Any]:
    return dict(enumerate(part)) if isinstance(part, list) else dict(vars(part))


def _put(part: Any, content: dict[Any, Any]) -> None:
    if isinstance(part, list):
        part[:] = content.values()
    else:
        vars(part).update(content)


def filled_cache(model: Any, kind: str, tokens: torch.Tensor, slots: int, forward: Callable[..., torch.Tensor]) -> Kept:
    """A cache that holds these tokens, (rows, columns), as the model itself puts them there. kind: `static` (with room
    for `slots` tokens) or `dynamic`."""
    library = transformers()
    rows, columns = tokens.shape
    cache = _empty_cache(library.StaticCache if kind == "static" else library.DynamicCache, model, rows, slots)
    positions = torch.arange(columns, device=tokens.device).expand(rows, -1)
    with torch.no_grad():
        forward(model, tokens, positions, None, cache)
    return Kept(cache)


def _empty_cache(kind: Any, model: Any, rows: int, slots: int) -> Any:
    """A cache of this class, told what its constructor takes in this release."""
    weight = next(model.parameters())
    known = {
        "config": model.config, "max_cache_len": slots, "max_batch_size": rows, "batch_size": rows,
        "device": weight.device, "dtype": weight.dtype,
    }  # fmt: skip
    taken = inspect.signature(kind.__init__).parameters
    return kind(**{name: each for name, each in known.items() if name in taken})


def all_visible(rows: int, columns: int, attention: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The mask of one new token that attends to all places of a cache: (rows, 1, 1, columns), true, or zeros that
    `eager` attention adds. Prepared once: otherwise every step would make one."""
    shape = (rows, 1, 1, columns)
    if attention == "eager":
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.ones(shape, dtype=torch.bool, device=device)
