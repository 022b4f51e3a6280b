"""Devices: what measuring needs of one. Another backend is one more class here.

An asynchronous device queues work on a stream while the host goes on; the CPU is its own device and does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar

import torch

from runner import host
from runner.environment import describe
from runner.task import Found, NoDevice

Step = Callable[[], Any]


class Device:
    """The CPU, and the defaults of every other device."""

    kind: ClassVar[str] = "cpu"
    asynchronous: ClassVar[bool] = False
    multiprocessors: int | None = None
    l2_bytes: int | None = None

    @classmethod
    def usable(cls) -> bool:
        """Whether torch can use such a device on this machine."""
        return True

    @classmethod
    def uuids(cls) -> tuple[str | None, ...]:
        """What names each device of this kind on this machine, whatever is hidden or renumbered; no device is used."""
        return (None,)

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.torch = torch.device(self.kind)
        self.l2_bytes = host.last_cache_bytes()

    def synchronize(self) -> None:
        """Wait until the device has finished all work."""

    def empty_cache(self) -> None:
        """Give cached memory back, so that one point does not change the next."""

    def reset_peak(self) -> None:
        """Start counting peak memory anew."""

    def peak_bytes(self) -> int | None:
        """Peak of the allocator since reset_peak; None where it does not count."""
        return None

    def refusal(self, dtype: str) -> str | None:
        """Why the device cannot compute in `dtype`, or None."""
        return "tf32 is a mode of CUDA's tensor cores; use dtype=fp32" if dtype == "tf32" else None

    @contextlib.contextmanager
    def numerics(self, dtype: str) -> Iterator[None]:
        """Settings that change results and speed, set for the point and restored after it."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    @property
    def activities(self) -> list[Any]:
        """What torch.profiler records."""
        return [torch.profiler.ProfilerActivity.CPU]

    def captured(self, step: Step, steps: int) -> Step:
        """A call that replays `steps` steps without launching each. Raises NotImplementedError where there is none."""
        raise NotImplementedError(f"{self.kind} has no graphs")


class Cpu(Device):
    """The host itself: every operation has ended when its call returns."""


class Cuda(Device):
    """A CUDA (or ROCm) device: one stream, held by a sleeping kernel where needed."""

    kind = "cuda"
    asynchronous = True

    @classmethod
    def usable(cls) -> bool:
        """Whether torch can use such a device on this machine."""
        return torch.cuda.is_available()

    @classmethod
    def uuids(cls) -> tuple[str | None, ...]:
        """What names each device of this kind on this machine, whatever is hidden or renumbered; no device is used."""
        properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        return tuple(str(each.uuid) if hasattr(each, "uuid") else None for each in properties)

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.torch = torch.device("cuda", index)
        torch.cuda.set_device(index)
        properties = torch.cuda.get_device_properties(index)
        self.multiprocessors = properties.multi_processor_count
        self.l2_bytes = getattr(properties, "L2_cache_size", None)
        self.capability = (properties.major, properties.minor)
        self.cycles_per_us = self._cycles_per_us()

    def synchronize(self) -> None:
        """Wait until the device has finished all work."""
        torch.cuda.synchronize()

    def empty_cache(self) -> None:
        """Give cached memory back, so that one point does not change the next."""
        torch.cuda.empty_cache()

    def reset_peak(self) -> None:
        """Start counting peak memory anew."""
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int | None:
        """Peak of the caching allocator since reset_peak, bytes."""
        return torch.cuda.max_memory_allocated()

    def refusal(self, dtype: str) -> str | None:
        """Why the device cannot compute in `dtype`, or None."""
        if dtype == "tf32" and torch.version.hip is None and self.capability < (8, 0):
            return "tf32 needs compute capability 8.0 or later; use dtype=fp32"
        return None

    @contextlib.contextmanager
    def numerics(self, dtype: str) -> Iterator[None]:
        """TF32 for matmul and cuDNN only with dtype=tf32; full-precision reductions; no cuDNN autotuning."""
        wanted = {
            (torch.backends.cuda.matmul, "allow_tf32"): dtype == "tf32",
            (torch.backends.cudnn, "allow_tf32"): dtype == "tf32",
            (torch.backends.cudnn, "benchmark"): False,
            (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"): False,
            (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"): False,
        }
        before = {place: getattr(*place) for place in wanted}
        try:
            for (owner, name), value in wanted.items():
                setattr(owner, name, value)
            yield
        finally:
            for (owner, name), value in before.items():
                setattr(owner, name, value)

    @property
    def activities(self) -> list[Any]:
        """What torch.profiler records."""
        return [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]

    # -- what only an asynchronous device offers ----------------------------------------------------------------------

    def sleep(self, us: float) -> None:
        """Queue `us` microseconds of idle device time. It counts cycles: at a lower clock it takes longer."""
        torch.cuda._sleep(max(1, round(us * self.cycles_per_us)))

    def mark(self) -> torch.cuda.Event:
        """Queue a time stamp on the current stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def reached(self, mark: torch.cuda.Event) -> bool:
        """Whether the device has passed the mark."""
        return mark.query()

    def between_us(self, first: torch.cuda.Event, last: torch.cuda.Event) -> float:
        """Device time between two marks that have been reached, microseconds (resolution about 0.5)."""
        return first.elapsed_time(last) * 1000

    def captured(self, step: Step, steps: int) -> Step:
        """A call that replays `steps` steps as one CUDA graph. Raises what capturing raises."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(steps):
                step()
        return graph.replay

    def synchronizes(self, step: Step) -> bool:
        """Whether the step makes the host wait for the device, as torch's own sync debug mode sees it."""
        import warnings

        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                step()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        return any("called a synchronizing" in str(each.message) for each in caught)

    def _cycles_per_us(self) -> float:
        """Rate of the sleep's clock, by two sleeps of known cycles between marks; the card is awake by then."""
        for _ in range(3):
            torch.cuda._sleep(20_000_000)
        first, _, last = self.mark(), torch.cuda._sleep(10_000_000), self.mark()
        torch.cuda.synchronize()
        return 10_000_000 / self.between_us(first, last)


# From the one that is always there to the one that `auto` prefers.
DEVICES: dict[str, type[Device]] = {each.kind: each for each in (Cpu, Cuda)}


def usable_kinds() -> tuple[str, ...]:
    """Kinds that torch can use on this machine, the best last."""
    return tuple(kind for kind, each in DEVICES.items() if each.usable())


def open_device(kind: str, index: int = 0) -> Device:
    """A device of a kind; `auto` is the best there is. Raises NoDevice."""
    return DEVICES[_usable_kind(kind)](index)


def look(kind: str, index: int, names: Collection[str]) -> Found:
    """Describe a device without using it. names: variables that belong to the environment. Raises NoDevice."""
    kind = _usable_kind(kind)
    uuids = DEVICES[kind].uuids()
    if index >= len(uuids):
        allowed = "0" if len(uuids) == 1 else f"0 to {len(uuids) - 1}"
        raise NoDevice(f"devices={index}: allowed is {allowed}, the {kind} devices that torch sees here.")
    described = describe(kind, index, torch.get_num_threads(), names)
    return Found(kind, usable_kinds(), uuids, dict(described.columns), dict(described.attributes))


def _usable_kind(kind: str) -> str:
    usable = usable_kinds()
    if kind == "auto":
        return usable[-1]
    if kind not in usable:
        raise NoDevice(f"device={kind}: torch can use {', '.join(usable)} here; see `python -m runner doctor`.")
    return kind
