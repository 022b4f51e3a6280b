"""The environment a point is measured in: everything that may change its times and is not an axis.

Runs in the worker. Whatever cannot be read is None. Every column but the memory's size is part of the identity, so the
one stored row tells the truth about every run that names it; what differs between equal cards of one host (index, UUID,
which of its CPUs) is an attribute of the run.
"""

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from types import ModuleType
from typing import Any

from runner import host, nvml

# Raise by hand whenever a rule of measuring changes, so that older results are not taken for today's.
MEASURE_VERSION = 3

# Variables that change the time of a step, the kernels chosen or the memory allocator.
_VARIABLES = re.compile(
    r"""
      CUDA_(LAUNCH_BLOCKING | DEVICE_MAX_CONNECTIONS | MODULE_LOADING | SCALE_LAUNCH_QUEUES | FORCE_PTX_JIT
           | DISABLE_PTX_JIT | AUTO_BOOST | MPS_ACTIVE_THREAD_PERCENTAGE | INJECTION64_PATH)
    | NVIDIA_TF32_OVERRIDE
    | (CUBLAS | CUBLASLT | CUDNN | MIOPEN | ROCBLAS | HIPBLASLT | HSA)_.*
    | AMD_SERIALIZE_(KERNEL | COPY)
    | PYTORCH_((CUDA_ | HIP_)?ALLOC_CONF | NO_CUDA_MEMORY_CACHING | TUNABLEOP_.* | MPS_.*)
    | TORCH_(COMPILE.* | CUDNN_.* | BLAS_PREFER_.* | ALLOW_TF32_CUBLAS_OVERRIDE)
    | (TORCHINDUCTOR | TORCHDYNAMO | TRITON)_.*
    | DISABLE_(ADDMM_CUDA_LT | LLVM_OPT)
    | (OMP | GOMP | KMP | MKL | DNNL | ONEDNN | OPENBLAS | ATEN)_.* | VECLIB_MAXIMUM_THREADS
    | LD_PRELOAD | DYLD_INSERT_LIBRARIES | GLIBC_TUNABLES | MALLOC_.* | TCMALLOC_.*
    | PYTHON(MALLOC | OPTIMIZE | DEVMODE | TRACEMALLOC | _GIL | _JIT) | CXX
    """,
    re.VERBOSE,
)
# Where things lie and what is written to a log: no effect on a warm step, and different for every user.
_PLACES = re.compile(
    r".*(_DIR|_DIRECTORY|_ROOT|_HOME|_PATH|_FILE|_CACHE|_LOG|_LOGS|_LOG_LEVEL|_DUMP)|.*_(CACHE|LOG)_.*"
)
_KEPT_PLACES = {"CUDA_INJECTION64_PATH"}  # names a tool that sits between torch and the driver

_NOT_IDENTITY = ("memory_bytes",)  # a host's memory changes with its kernel and balloon, its speed does not


@dataclass(frozen=True)
class Environment:
    """`columns`: one row of the store's environments, environment_id last. `attributes`: facts of a run, no identity.

    The attributes are `host`, `device_uuid`, `device_index` (None on the CPU) and `cpus`, those the process may run on.
    """

    columns: dict[str, object]
    attributes: dict[str, object]


@dataclass(frozen=True)
class _Device:
    """What torch and NVML tell of one device: columns of the row, library versions, and the attributes."""

    columns: Mapping[str, object]
    versions: Mapping[str, object] = field(default_factory=dict)
    uuid: str | None = None
    index: int | None = None
    numa_node: int | None = None


def describe(device_kind: str, device_index: int, threads: int, names: Collection[str] = ()) -> Environment:
    """The environment of points on this device, in this process.

    `device_kind` is torch's (`cpu`, `cuda`, `mps`, `xpu`), `threads` the number of torch's intra-op threads, `names`
    variables that belong to the identity because a sweep sets them. What torch raises for a CUDA device that is not
    there (RuntimeError, AssertionError) is passed on.
    """
    import torch

    device = _DEVICES.get(device_kind, _other(device_kind))(torch, device_index)
    return _describe(device_kind, device, str(torch.__version__), _torch_versions(torch), threads, names)


def describe_host(names: Collection[str] = ()) -> Environment:
    """The environment of points that use no device and no torch: it names the torch that is installed."""
    version = _installed("torch")
    threads = len(host.affinity() or ()) or (os.cpu_count() or 1)
    return _describe("cpu", _Device({"device_name": host.cpu_model()}), version, {"torch": version}, threads, names)


def _describe(
    device_kind: str, device: _Device, torch_version: str | None, versions: Mapping[str, object], threads: int,
    names: Collection[str] = (),
) -> Environment:  # fmt: skip
    cpus = host.affinity() or frozenset()
    columns: dict[str, object] = {
        "measure_version": MEASURE_VERSION,
        "torch": torch_version,
        "python": python_version(),
        "device": device_kind,
        **dict.fromkeys(_DEVICE_COLUMNS),
        **device.columns,
        **_host_columns(cpus, device.numa_node),
        "threads": threads,
        "versions": canonical({**versions, **device.versions}),
        "variables": canonical(variables(os.environ, names)),
    }
    attributes: dict[str, object] = {
        "host": platform.node() or None,
        "device_uuid": device.uuid,
        "device_index": device.index,
        "cpus": host.format_cpus(cpus) or None,
    }
    return Environment({**columns, "environment_id": identify(columns)}, attributes)


def identify(columns: Mapping[str, object]) -> str:
    """environment_id: the first 12 hexadecimal digits of the SHA-256 over the identity's canonical JSON."""
    identity = {name: value for name, value in columns.items() if name not in (*_NOT_IDENTITY, "environment_id")}
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:12]


def canonical(value: Mapping[str, object]) -> str:
    """JSON text that is equal for equal objects: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def variables(environ: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """The environment variables that change results, without those that name places; paths are cut to file names.

    Those that are `named` are there whatever they are, in full.
    """
    names = (name for name in sorted(environ) if _VARIABLES.fullmatch(name))
    kept = (name for name in names if name in _KEPT_PLACES or not _PLACES.fullmatch(name))
    found = {name: re.sub(r"[^\s:;=,]*/", "", environ[name]) for name in kept}
    return found | {name: environ[name] for name in sorted(named) if name in environ}


def python_version() -> str:
    """Minor version of Python, with the letter of its build: "3.13t" is the one without a global lock."""
    return f"{sys.version_info.major}.{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"


def numa_text(nodes: Mapping[int, frozenset[int]] | None, cpus: Collection[int], device_node: int | None) -> str | None:
    """On how many of the host's NUMA nodes the process may run, and whether its device hangs on one of them.

    Counts, not numbers: equal cards on either half of a host, each with the CPUs beside it, are one environment.
    """
    if not nodes or not cpus:
        return None
    own = {node for node, members in nodes.items() if members & set(cpus)}
    place = "" if device_node is None else ", device near" if device_node in own else ", device far"
    return f"{len(own)} of {len(nodes)}{place}"


def _host_columns(cpus: Collection[int], device_node: int | None) -> dict[str, object]:
    return {
        "host_cpu": host.cpu_model(),
        "affinity": _affinity_text(cpus, host.online_cpus()),
        "numa": numa_text(host.numa_nodes(), cpus, device_node),
        "governor": host.governor(cpus),
        "cgroup_cpus": host.cgroup_cpus(),
        "cores": host.physical_cores(cpus),
    }


def _affinity_text(cpus: Collection[int], online: Collection[int] | None) -> str | None:
    """How many CPUs the process may use, of how many: "16 of 128". Which ones is an attribute."""
    if not cpus:
        return None
    return f"{len(cpus)} of {len(online)}" if online else f"{len(cpus)}"


def _torch_versions(torch: ModuleType) -> dict[str, object]:
    """The commit tells builds of one version apart."""
    return {"torch": str(torch.__version__), "torch_git": (torch.version.git_version or "")[:12] or None}


def _installed(*names: str) -> str | None:
    """Version of the first of these distributions that is installed."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _told(ask: Callable[[], Any]) -> Any:
    """What `ask` returns, or None when this build of torch cannot tell."""
    try:
        return ask()
    except Exception:  # backends report what they lack in many ways: missing attributes, assertions, runtime errors
        return None


_DEVICE_COLUMNS = (
    "device_name",
    "driver",
    "cuda_runtime",
    "compute_capability",
    "mig",
    "multiprocessors",
    "threads_per_multiprocessor",
    "registers_per_multiprocessor",
    "shared_memory_per_multiprocessor_bytes",
    "l2_bytes",
    "memory_bytes",
    "sm_clock_max_mhz",
    "power_limit_w",
)


def _cpu(torch: ModuleType, index: int) -> _Device:
    """The CPU as a device; its compute capability is the instruction set that torch's kernels were chosen for."""
    limits = [size for size in (host.memory_bytes(), host.cgroup_memory_bytes()) if size is not None]
    return _Device(
        {
            "device_name": host.cpu_model(),
            "compute_capability": _told(lambda: torch.backends.cpu.get_cpu_capability()),
            "l2_bytes": host.last_cache_bytes(),
            "memory_bytes": min(limits, default=None),
        }
    )


def _cuda(torch: ModuleType, index: int) -> _Device:
    """A CUDA or ROCm device: limits from torch's properties, driver, MIG and caps from NVML."""
    properties = torch.cuda.get_device_properties(index)
    uuid = getattr(properties, "uuid", None)
    card = nvml.find(None if uuid is None else str(uuid))
    bus_id = card.pci_bus_id() if card else None
    return _Device(
        {**_cuda_limits(properties), "cuda_runtime": torch.version.cuda, **_card_columns(card)},
        versions=_cuda_versions(torch),
        uuid=None if uuid is None else str(uuid),
        index=index,
        numa_node=host.pci_numa_node(bus_id) if bus_id else None,
    )


def _cuda_limits(properties: Any) -> dict[str, object]:
    """Torch has added these properties over the releases; an older one has fewer."""
    return {
        "device_name": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "threads_per_multiprocessor": getattr(properties, "max_threads_per_multi_processor", None),
        "registers_per_multiprocessor": getattr(properties, "regs_per_multiprocessor", None),
        "shared_memory_per_multiprocessor_bytes": getattr(properties, "shared_memory_per_multiprocessor", None),
        "l2_bytes": getattr(properties, "L2_cache_size", None),
        "memory_bytes": properties.total_memory,
    }


def _card_columns(card: nvml.Card | None) -> dict[str, object]:
    if card is None:
        return {}
    return {
        "driver": nvml.driver_version(),
        "mig": card.mig(),
        "sm_clock_max_mhz": card.sm_clock_limit_mhz(),
        "power_limit_w": card.power_limit_w(),
    }


def _cuda_versions(torch: ModuleType) -> dict[str, object]:
    """Libraries that can be exchanged under an unchanged torch."""
    return {
        "triton": _installed("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": _told(lambda: torch.backends.cudnn.version()),
        "cublas": _installed("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12", "nvidia-cublas-cu11"),
    }


def _other(kind: str) -> Callable[[ModuleType, int], _Device]:
    """Any further backend: what its torch module tells under the usual names."""

    def describe_other(torch: ModuleType, index: int) -> _Device:
        properties = _told(lambda: getattr(torch, kind).get_device_properties(index))
        name = getattr(properties, "name", None) or _told(lambda: getattr(torch.backends, kind).get_name())
        memory = getattr(properties, "total_memory", None) or _told(
            lambda: getattr(torch, kind).recommended_max_memory()
        )
        driver = getattr(properties, "driver_version", None)
        uuid = getattr(properties, "uuid", None)
        return _Device(
            {"device_name": name, "memory_bytes": memory, "driver": driver},
            uuid=None if uuid is None else str(uuid),
            index=index,
        )

    return describe_other


_DEVICES: Mapping[str, Callable[[ModuleType, int], _Device]] = {"cpu": _cpu, "cuda": _cuda}
