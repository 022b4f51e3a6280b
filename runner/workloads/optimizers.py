"""The optimizers of a training step: how each is made, what its update costs in FLOPs and bytes, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner.workloads.base import Operation

if TYPE_CHECKING:
    import torch

LEARNING_RATE = 1e-6
EPSILON = 1e-4
"""Added to the root of Adam's second state: torch's own 1e-8 is zero in fp16, and zero over zero is no number."""
STATES = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "adam8bit": 2}
"""Values that an optimizer keeps for each weight."""
ADAMS = ("adam", "adamw")
BLOCK = 256
LEAST_8BIT = 4096
TABLE_BYTES = 1024
"""torchao's 8-bit states: a scale of 4 bytes for each 256 values, a table of 256 values of 4 bytes for each state, and
tensors of fewer than 4,096 values or no multiple of 256 stay as they are (Dettmers et al., arXiv 2110.02861)."""


# -- what it is --------------------------------------------------------------------------------------------------------


def optimizer_of(name: str, impl: str, capturable: bool, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer. impl: default (torch chooses: foreach on CUDA, a loop on the CPU), loop, foreach or fused.

    Raises ImportError without torchao, where adam8bit needs it.
    """
    import torch

    if name == "adam8bit":
        return adam8bit(parameters)
    ways: dict[str, dict[str, Any]] = {
        "default": {}, "loop": {"foreach": False, "fused": False}, "foreach": {"foreach": True},
        "fused": {"fused": True},
    }  # fmt: skip
    if name in ADAMS:
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        return kind(parameters, lr=LEARNING_RATE, eps=EPSILON, capturable=capturable, **ways[impl])
    return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9 if name == "momentum" else 0.0, **ways[impl])


def adam8bit(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """torchao's Adam with states of 8 bits. Raises ImportError without torchao."""
    try:
        from torchao.optim import Adam8bit
    except ImportError as error:
        raise ImportError(
            f"workload.optimizer=adam8bit needs torchao ({error}); pip install 'crossover[eight_bit]'"
        ) from error
    return Adam8bit(parameters, lr=LEARNING_RATE, eps=EPSILON)


class PlainAdam8bit:
    """An Adam8bit, but for its step: the same formula plainly written, in float64 for weights of float64, else in fp32
    as torchao has it. It begins with the values that the codes of the states stand for, and writes no states."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def step(self) -> None:
        """Move every weight by its gradient and states."""
        (group,) = self.optimizer.param_groups
        for weight in group["params"]:
            _adam_update(weight, self.optimizer.state[weight], group["lr"], group["betas"], group["eps"])


def _adam_update(
    weight: torch.nn.Parameter,
    state: Mapping[str, torch.Tensor],
    rate: torch.Tensor,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Adam's update of one weight (Kingma and Ba, arXiv 1412.6980, algorithm 1), without decay. In fp32 the root of
    1 - 0.999**t is 6e-6 off, since 0.999 is no number of fp32: that is part of what fp32 can do."""
    import torch

    dtype = torch.promote_types(weight.dtype, torch.float32)
    assert weight.grad is not None
    gradient, step = weight.grad.to(dtype), (state["step"] + 1).to(dtype)
    mean = _values(state["exp_avg"]).to(dtype).lerp(gradient, 1 - betas[0]) / (1 - betas[0] ** step)
    square = _values(state["exp_avg_sq"]).to(dtype).lerp(gradient.square(), 1 - betas[1])
    root = square.sqrt() / (1 - betas[1] ** step).sqrt() + eps
    with torch.no_grad():
        weight.copy_(weight.to(dtype) - rate.to(dtype) * mean / root)


def _values(state: torch.Tensor) -> torch.Tensor:
    """What codes stand for; a small weight's state is what it is."""
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    return state.dequantize() if is_traceable_wrapper_subclass(state) else state


# -- what it costs -----------------------------------------------------------------------------------------------------


def update_operations(name: str, impl: str, weights: int, item: int) -> list[Operation]:
    """The optimizer's passes. Fused, it reads weight, gradient and states once, and writes weight and states once:
    3 values a weight for SGD, 5 with momentum, 7 for Adam. Otherwise each of its operations is a pass of its own:
    momentum 2 + 3 + 3, Adam 3 + 2 + 3 + 2 + 2 + 2 + 4 = 18 (torch/optim/adam.py), and AdamW 2 more. adam8bit is one
    compiled pass, whose two states are of 1 byte.
    """
    if name == "adam8bit":
        return [Operation("adam8bit", 13 * weights, (3 * item + 4) * weights)]
    fused: dict[str, tuple[int, int]] = {"sgd": (2, 3), "momentum": (4, 5), "adam": (13, 7), "adamw": (14, 7)}
    if impl == "fused" or name == "sgd":
        flops, moved = fused[name]
        return [Operation(name, flops * weights, moved * item * weights)]
    momentum = [("mul", 1, 2), ("add", 1, 3), ("update", 2, 3)]
    adam = [
        ("lerp", 3, 3), ("mul", 1, 2), ("addcmul", 3, 3), ("sqrt", 1, 2), ("div", 1, 2), ("add", 1, 2),
        ("update", 3, 4),
    ]  # fmt: skip
    decay = [("decay", 1, 2)] if name == "adamw" else []
    passes = momentum if name == "momentum" else [*decay, *adam]
    return [Operation(f"{name} {each}", flops * weights, moved * item * weights) for each, flops, moved in passes]


def unscaling_operations(weights: int, item: int, fused: bool) -> list[Operation]:
    """A GradScaler reads and writes each gradient, also where it only looks for one that has overflown; a fused
    optimizer then scales it back and writes it once more (torch/amp/grad_scaler.py)."""
    unscale = Operation("unscale gradients", weights, 2 * weights * item)
    return [unscale, Operation("unscaled gradients written", weights, weights * item)] if fused else [unscale]


def zeroing_operations(weights: int, item: int) -> list[Operation]:
    """Gradients that stay are filled with zeros and then added to; those that are dropped cost nothing."""
    return [
        Operation("zero gradients", 0, weights * item), Operation("add gradients", weights, 3 * weights * item)
    ]  # fmt: skip


# -- what it keeps -----------------------------------------------------------------------------------------------------


def state_bytes(name: str, weights: tuple[int, ...], item: int) -> int:
    """Bytes of an optimizer's states, its counters apart (4 bytes a weight tensor, with Adam)."""
    if name == "adam8bit":
        return 2 * sum(_eight_bit_bytes(each, item) for each in weights)
    return STATES[name] * sum(weights) * item


def _eight_bit_bytes(elements: int, item: int) -> int:
    """Bytes of one state of a weight tensor."""
    if elements < LEAST_8BIT or elements % BLOCK:
        return elements * item
    return elements + elements // BLOCK * 4 + TABLE_BYTES
