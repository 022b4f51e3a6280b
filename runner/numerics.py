"""Numerics: whether a step computes what it should, by the same step in float64. A fast wrong answer is a failure.

Once for every kind of point (all but its size and batch) and process, behind all times: three copies of the arguments
are made as they are then. The workload's reference, its plainest eager form, is called with a copy in float64, which
gives the truth, and with two in the point's dtype, which give eager's error; then the point's own function is called
with its own arguments. Compared are the floating tensors of the result, and parameters that learn with their gradients.
Quantised tensors (states of 8 bits) are what a step begins with: their copies hold the same codes and scales, in the
copy in float64 as well, and what a step writes into them is not compared.

The error of a tensor y is ||y - y64|| / ||y64|| (Frobenius norms, computed in float64), that of a step the largest of
its tensors'. Allowed is 2 x eager's error + epsilon, the distance from 1 to the next number of the dtype (tf32: that of
its 10-bit mantissa): eager's error is a sample of one, and another order of additions is no mistake.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from runner import host
from runner.device import Device
from runner.point import Point
from runner.words import amount
from runner.workloads import Built

EPSILON = {"fp32": 2.0**-23, "tf32": 2.0**-10, "bf16": 2.0**-7, "fp16": 2.0**-10}
MOST_SECONDS = 1.0
SLOWER = {"cpu": 4.0, "cuda": 20.0}
"""How many times as long as the measured step the reference is taken to need in float64; a guess on the safe side."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of a kind of point said: facts.numerics.

    passed: None = not known, for the reason given; the errors are relative, None where nothing finite can be said;
    size: that of the point which was checked.
    """

    passed: bool | None
    error: float | None = None
    eager_error: float | None = None
    allowed: float | None = None
    reason: str | None = None
    size: int | None = None


_found: dict[tuple[Any, ...], Finding] = {}
"""Of every kind that this process has checked."""


def forget() -> None:
    """Check every kind anew."""
    _found.clear()


def check(point: Point, built: Built, wall_us: float | None, peak_bytes: int | None, device: Device) -> Finding:
    """What is known of the point's kind, checked now if it has not been and can be here. Raises nothing.

    wall_us: measured time of a step; peak_bytes: of the device's memory while it was measured, None where not counted.
    """
    kind = _kind(point)
    if kind in _found:
        return _found[kind]
    try:
        refusal = _refusal(point, built.arguments, wall_us, peak_bytes, device)
        if refusal is not None:
            return Finding(None, reason=f"not checked yet: {refusal}; a smaller point of this kind will be")
        _found[kind] = replace(_compared(point, built, device), size=point.size)
    except Exception as error:
        reason = f"could not be checked: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        if _is_memory(error):
            return Finding(None, reason=reason)
        _found[kind] = Finding(None, reason=reason, size=point.size)
    finally:
        gc.collect()
        with contextlib.suppress(Exception):  # of a device that an error has stuck to
            device.empty_cache()
    return _found[kind]


def _is_memory(error: Exception) -> bool:
    """Whether memory alone was lacking: a smaller point may be checked."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _kind(point: Point) -> tuple[Any, ...]:
    """All that may change how a step computes, but for how large it is. As text: 1 and true are two values."""
    return (
        point.workload, repr(point.params), point.dtype, repr(point.compile), repr(point.dynamic), point.device,
        point.static_inputs,
    )  # fmt: skip


# -- whether it can be checked here -----------------------------------------------------------------------------------


def _refusal(
    point: Point, arguments: tuple[Any, ...], wall_us: float | None, peak_bytes: int | None, device: Device
) -> str | None:
    """Why this point is too much to be checked: its time, its memory, or a device without float64."""
    if device.kind == "mps":
        return "the device has no float64"
    seconds = (wall_us or 0.0) / 1e6 * (3 + SLOWER.get(device.kind, 20.0))
    if seconds > MOST_SECONDS:
        return f"the check would take about {seconds:.2g} s, above {MOST_SECONDS:g} s"
    held = sum(each.numel() * each.element_size() for each in _distinct(arguments).values())
    needed, free = _needed_bytes(point, max(3 * held, peak_bytes or 0)), _free_bytes(device)
    if free is not None and needed > free:
        return f"the check would take about {amount(needed)}, and {amount(free)} are free"
    return None


def _needed_bytes(point: Point, step_bytes: int) -> int:
    """Memory of the step in float64, and of its copy and results in its own dtype."""
    return step_bytes * 8 // (4 if point.dtype in ("fp32", "tf32") else 2) + 2 * step_bytes


def _free_bytes(device: Device) -> int | None:
    """Memory that may still be taken; None where nobody says."""
    if device.kind == "cuda":
        free, _ = torch.cuda.mem_get_info()
        return free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    lines = (host.read_text(Path("/proc/meminfo")) or "").splitlines()
    free_kb = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    limit = host.cgroup_memory_bytes()
    left = [] if limit is None else [limit - (host.resident_bytes() or 0)]
    return min([*left, *([] if free_kb is None else [int(free_kb) * 1024])], default=None)


# -- the comparison ----------------------------------------------------------------------------------------------------


Seen = Mapping[str, torch.Tensor]
"""Tensors by where they were found, `result[0]`."""


def _compared(point: Point, built: Built, device: Device) -> Finding:
    """The finding of one point, whose step is called once more with its own arguments."""
    reference, epsilon = point.spec.reference(point, built), EPSILON[point.dtype]
    exact = _copied(built.arguments)
    if not _to_float64(exact):
        return Finding(None, reason="no floating tensor is among the step's arguments: float64 would change nothing")
    truth = _called(reference, exact)
    del exact
    if not truth:
        return Finding(None, reason="the step returns no floating tensor and changes no parameter")
    if not any(bool(each.isfinite().any()) for each in truth.values()):
        return Finding(None, reason="no finite number is in the result of the step in float64: there is no truth")
    eager = _called(reference, _copied(built.arguments))
    eager_error, _ = _error(truth, eager)
    apart, _ = _error(eager, _called(reference, _copied(built.arguments)))
    if math.isfinite(eager_error) and not apart <= math.sqrt(epsilon):
        return Finding(None, reason=f"random: two runs of the plain step differ by {apart:.2g}")
    del eager
    error, place = _error(truth, _called(built.function, built.arguments))
    device.synchronize()
    return _judged(error, eager_error, epsilon, place, one_number=truth.keys() == {NUMBER})


def _judged(error: float, eager_error: float, epsilon: float, place: str, one_number: bool) -> Finding:
    """Whether an error passes. One number alone may be small by chance, beside what it was added up from: a large
    error of it says nothing."""
    allowed = 2 * eager_error + epsilon
    passed = Finding(True, _finite(error), _finite(eager_error), _finite(allowed))
    if not math.isfinite(error):
        return replace(passed, passed=False, reason=f"{place} is not finite, or of another shape, where float64 is")
    if error <= allowed:
        return passed
    told = f"error {error:.2g} above {allowed:.2g} ({place}, relative to float64)"
    if one_number:
        return replace(passed, passed=None, reason=f"one number cannot tell: {told}")
    return replace(passed, passed=False, reason=told)


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


NUMBER = "number"


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Seen:
    """One step, and what is to be compared of it."""
    result = function(*arguments)
    if isinstance(result, float):
        return {NUMBER: torch.tensor(result, dtype=torch.float64)}
    seen = {f"result{place}": each for place, each in _tensors(result).items()}
    learned = {f"argument{place}": each for place, each in _distinct(arguments).items() if _learns(each)}
    gradients = {f"gradient of {place}": each.grad for place, each in learned.items() if each.grad is not None}
    found = {**seen, **learned, **gradients}
    return {place: each.detach() for place, each in found.items() if each.is_floating_point()}


def _learns(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad


def _error(truth: Seen, got: Seen) -> tuple[float, str]:
    """Largest relative error of any tensor, and where it was found; infinite where one cannot be compared."""
    missing = truth.keys() ^ got.keys()
    if missing:
        return math.inf, min(missing)
    return max(((_relative(truth[place], got[place]), place) for place in truth), key=lambda each: each[0])


def _relative(truth: torch.Tensor, got: torch.Tensor) -> float:
    """||y - y64|| / ||y64|| where y64 is finite; the difference itself where y64 is zero everywhere."""
    if truth.shape != got.shape:
        return math.inf
    exact, y = truth.double(), got.double()
    known = exact.isfinite()
    if not bool(y[known].isfinite().all()):
        return math.inf
    difference = torch.where(known, y - exact, 0.0).norm().item()
    norm = torch.where(known, exact, 0.0).norm().item()
    return difference / norm if norm > 0 else difference


# -- tensors of a step -------------------------------------------------------------------------------------------------


def _copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """A deep copy. Tensors that are made of others, which torch cannot copy by itself, are copied part by part."""
    made = [each for each in _distinct(arguments).values() if _is_made_of_others(each)]
    return copy.deepcopy(arguments, {id(each): _part_by_part(each) for each in made})


def _is_made_of_others(tensor: torch.Tensor) -> bool:
    """Whether it is only the appearance of a tensor, without memory of its own: quantised states, for one."""
    return is_traceable_wrapper_subclass(tensor) and not tensor.requires_grad


def _part_by_part(tensor: Any) -> Any:
    """The same tensor made of copies of its parts."""
    if not is_traceable_wrapper_subclass(tensor):
        return tensor.clone()
    names, context = tensor.__tensor_flatten__()
    parts = {name: _part_by_part(getattr(tensor, name)) for name in names}
    return type(tensor).__tensor_unflatten__(parts, context, tensor.shape, tensor.stride())


def _to_float64(arguments: tuple[Any, ...]) -> int:
    """Turn every floating tensor below the arguments into float64 where it is, gradients as well; how many there were.

    The tensors stay the objects that they are, so that an optimizer still knows its parameters. Tensors without an axis
    stay as they are: counters and rates; so do those that are made of others, whose values codes stand for. Left out:
    tensors that share their memory do so no longer.
    """
    count = 0
    for tensor in _distinct(arguments).values():
        if _is_made_of_others(tensor):
            continue
        for each in (tensor, tensor.grad if tensor.is_leaf else None):
            if each is not None and each.is_floating_point() and each.dim() > 0:
                each.data = each.data.double()
                count += 1
    return count


def _tensors(value: Any) -> dict[str, torch.Tensor]:
    """All tensors that can be reached from a value, by places that copies of it share; one may have several."""
    return dict(_reached(value, "", set()))


def _distinct(value: Any) -> dict[str, torch.Tensor]:
    """The same, each tensor at its first place alone."""
    found = _tensors(value)
    first = {id(each): place for place, each in reversed(found.items())}
    return {place: each for place, each in found.items() if first[id(each)] == place}


_LEAVES = (str, bytes, int, float, complex, type, types.ModuleType, types.FunctionType, torch.dtype, torch.device)


_OF_MODULES = ("_parameters", "_buffers", "_modules")
"""Attributes in which a module keeps what it is made of, under names that are unique among them."""


def _reached(value: Any, place: str, seen: set[int]) -> Iterator[tuple[str, torch.Tensor]]:
    """Through containers, and the attributes of objects: modules, optimizers and caches are read alike."""
    if isinstance(value, torch.Tensor):
        yield place, value
        return
    if value is None or isinstance(value, _LEAVES) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        parts = [(f"[{_word(key, number)}]", each) for number, (key, each) in enumerate(value.items())]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [(f"[{number}]", each) for number, each in enumerate(value)]
    else:
        parts = []
    attributes = getattr(value, "__dict__", {}).items()
    parts += [("" if name in _OF_MODULES else f".{name}", each) for name, each in attributes]
    for name, each in parts:
        yield from _reached(each, place + name, seen)


def _word(key: Any, number: int) -> str:
    """A key for people; for what is no word (a parameter, as optimizers have it) its place."""
    return str(key) if isinstance(key, str | int) else f"#{number}"
