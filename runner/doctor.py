"""`python -m runner doctor`: can this machine run a sweep, and can its numbers be trusted?

One line per check. A `problem` stops points or makes their results wrong, a `warning` widens intervals or leaves facts
out; each names its cure. Checks of torch run in one process of their own, because a broken installation can end the
process that imports it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from runner import condition, host, nsys_program, nvml

OK, WARNING, PROBLEM = "ok", "warning", "problem"

# A few seconds on a CPU, 10 to 20 on a CUDA device (its first profiler session); a cold disk adds to it. Then it hangs.
PROBE_LIMIT_S = 60
PRESSURE_WINDOW_S = 0.5
FEW_BYTES, TOO_FEW_BYTES = 2**30, 2**26


@dataclass(frozen=True)
class Check:
    """One finding: `status` is ok, warning or problem; `cure` is empty when there is nothing to do."""

    name: str
    status: str
    found: str
    cure: str = ""


def main(arguments: list[str]) -> int:
    """Print every check; 0 when none is a problem, else 1 (wrong usage too)."""
    options = _parser().parse_args(arguments)
    checks = run_checks(Path(options.store))
    print(json.dumps([asdict(check) for check in checks], indent=2) if options.json else render(checks))
    return 1 if any(check.status == PROBLEM for check in checks) else 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """argparse's own exit code for wrong usage, 2, means here that a point failed."""
        self.exit(1, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m runner doctor", description="Check what a sweep needs on this machine.")
    parser.add_argument("--store", default="outputs/store", help="folder of the store (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print a JSON array instead of text")
    return parser


def render(checks: Sequence[Check]) -> str:
    """One line per check: status, name, what was found, and the cure behind an arrow."""
    width = max((len(check.name) for check in checks), default=0)
    lines = (f"{check.status:<8} {check.name:<{width}}  {check.found}" for check in checks)
    cures = (f"  ->  {check.cure}" if check.cure else "" for check in checks)
    return "\n".join(line + cure for line, cure in zip(lines, cures, strict=True))


def run_checks(store: Path) -> list[Check]:
    """All checks. CPU pressure is read first, before the check of torch makes some itself."""
    pressure = pressure_check(measure_pressure(PRESSURE_WINDOW_S))
    probe = probe_torch()
    cards = nvml.cards()
    return [
        python_check(sys.version_info[:3]),
        torch_check(probe),
        device_check(probe, cards, os.environ.get("CUDA_VISIBLE_DEVICES")),
        profiler_check(probe),
        nvml_check(probe, cards),
        compiler_check(os.environ.get("CXX"), Path(sysconfig.get_path("include"))),
        triton_check(probe),
        cpu_check(host.affinity(), host.online_cpus(), host.cgroup_cpus(), host.governor(host.affinity() or ())),
        pressure,
        *(clocks_check(card) for card in cards),
        disk_check(store),
        blocking_check(os.environ),
        nsys_check(nsys_program.find()),
    ]


def python_check(version: tuple[int, int, int]) -> Check:
    found = ".".join(map(str, version))
    if version >= (3, 11, 0):
        return Check("Python", OK, found)
    return Check("Python", PROBLEM, found, "install Python 3.11 or newer and name it: make sweep PYTHON=python3.11")


# What the process with torch found out, by stage: its facts, or {"error": ...}. A missing stage was never reached.
Probe = Mapping[str, Mapping[str, Any]]

_MARK = "crossover-probe "


def probe_torch(limit_s: float = PROBE_LIMIT_S) -> Probe:
    """Run `probe_here` in a process of its own and collect what it got to say before it ended, however it ended."""
    code = "from runner.doctor import probe_here; probe_here()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=limit_s, check=False
        )
        output, ending = done.stdout, _ending(done.returncode, done.stderr)
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout.decode() if isinstance(expired.stdout, bytes) else expired.stdout or ""
        ending = f"did not answer within {limit_s:.0f} s"
    return parse_probe(output, ending)


def _ending(returncode: int, stderr: str) -> str:
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    return f"its process ended with {returncode}: {last}" if returncode else ""


_STAGES = ("torch", "device", "profiler", "triton")


def parse_probe(output: str, ending: str) -> Probe:
    """Facts by stage from the probe's marked lines; the first stage without a line gets the `ending` as its error."""
    marked = (line.removeprefix(_MARK) for line in output.splitlines() if line.startswith(_MARK))
    facts: dict[str, dict[str, Any]] = {}
    for line in marked:
        facts.update(json.loads(line))
    missing = next((stage for stage in _STAGES if stage not in facts), None)
    if ending and missing:
        facts[missing] = {"error": ending}
    return facts


def probe_here() -> None:
    """Import torch, use its device, profile a step, import triton: one marked JSON line for each stage, as it ends."""
    stages = {"torch": _probe_version, "device": _probe_device, "profiler": _probe_profiler, "triton": _probe_triton}
    for stage, ask in stages.items():
        try:
            facts = ask()
        except Exception as error:  # whatever a stage raises is its finding; later stages still have theirs
            facts = {"error": f"{type(error).__name__}: {_first_line(error)}"}
        print(_MARK + json.dumps({stage: facts}), flush=True)
        if stage == "torch" and "error" in facts:
            return  # every later stage would only say the same again


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def _probe_version() -> dict[str, Any]:
    import torch

    return {"version": str(torch.__version__), "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}


def _device_kind() -> str:
    import torch

    kinds = {"cuda": torch.cuda.is_available, "xpu": lambda: torch.xpu.is_available()}
    return next((kind for kind, available in kinds.items() if available()), "cpu")


def _probe_device() -> dict[str, Any]:
    """Compute something: a device that is listed may still have no kernels in this build."""
    import torch

    kind = _device_kind()
    total = torch.ones(8, device=kind).sum().item()
    if total != 8:
        raise RuntimeError(f"the sum of eight ones on {kind} came out as {total}")
    if kind != "cuda":
        return {"kind": kind}
    properties = torch.cuda.get_device_properties(0)
    return {
        "kind": kind,
        "name": properties.name,
        "count": torch.cuda.device_count(),
        "memory_bytes": properties.total_memory,
        "capability": [properties.major, properties.minor],
    }


def _probe_profiler() -> dict[str, Any]:
    """Events of one small product: `cpu_ops` by host, `kernels` by device. An empty session first, as a sweep does."""
    import torch
    from torch.autograd import DeviceType

    kind = _device_kind()
    value = torch.ones(64, 64, device=kind)
    with torch.profiler.profile():
        pass
    with torch.profiler.profile() as profile:
        value @ value
        if kind != "cpu":
            torch.get_device_module(kind).synchronize()
    on_host = [event.device_type == DeviceType.CPU for event in profile.events() or []]
    return {"cpu_ops": sum(on_host), "kernels": len(on_host) - sum(on_host)}


def _probe_triton() -> dict[str, Any]:
    if _device_kind() != "cuda":
        return {"needed": False}
    import triton

    return {"needed": True, "version": triton.__version__}


def _failure(probe: Probe, stage: str, name: str, cure: str) -> Check | None:
    """The check of a stage that has no facts, or None when it has them."""
    if stage not in probe:
        return Check(name, PROBLEM, "not reached", "see the first problem of torch, device or profiler")
    error = probe[stage].get("error")
    return Check(name, PROBLEM, error, cure) if error else None


_REINSTALL = "install torch again: pip install --force-reinstall torch"


def torch_check(probe: Probe) -> Check:
    """Version and build; a torch that cannot be imported is found here."""
    failure = _failure(probe, "torch", "torch", _REINSTALL)
    if failure:
        return failure
    facts = probe["torch"]
    build = next((f"{name} {facts[key]}" for key, name in (("cuda", "CUDA"), ("hip", "ROCm")) if facts[key]), "CPU")
    return Check("torch", OK, f"{facts['version']} ({build} build)")


def device_check(probe: Probe, cards: Sequence[nvml.Card], visible: str | None) -> Check:
    """The device that `device=auto` takes. A card that NVML sees and torch cannot use is a problem."""
    failure = _failure(probe, "device", "device", _unusable_cure(probe, visible) if cards else _REINSTALL)
    if failure:
        return failure
    facts = probe["device"]
    if facts["kind"] == "cuda":
        return Check("device", OK, f"{facts['count']} x {facts['name']}, {_gib(facts['memory_bytes'])} each")
    if cards:
        found = f"NVML sees {len(cards)} x {cards[0].name()}, torch sees no CUDA device"
        return Check("device", PROBLEM, found, _unusable_cure(probe, visible))
    name = host.cpu_model() if facts["kind"] == "cpu" else None
    return Check("device", OK, f"{facts['kind']} ({name or 'model unknown'}, no NVIDIA card)")


def _unusable_cure(probe: Probe, visible: str | None) -> str:
    """The likeliest reason why torch cannot use a card."""
    built_for = probe.get("torch", {}).get("cuda")
    if built_for is None:
        return "install a CUDA build of torch (pytorch.org/get-started names the index) or, where one is, TORCH=system"
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES={visible!r} may hide the card: unset it"
    supports = nvml.driver_cuda_version() or "an unknown version"
    return f"torch is built for CUDA {built_for}, the driver runs up to {supports}: update it or take an older build"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def profiler_check(probe: Probe) -> Check:
    """CUPTI on CUDA: the profiler has to return kernels. On the CPU: operator events."""
    name = "CUPTI" if _is_nvidia(probe) else "profiler"
    failure = _failure(probe, "profiler", name, _profiler_cure(_is_nvidia(probe)))
    if failure:
        return failure
    operators, kernels = probe["profiler"]["cpu_ops"], probe["profiler"]["kernels"]
    found = f"{operators} operator and {kernels} kernel events of one product"
    if operators and (kernels or _kind(probe) == "cpu"):
        return Check(name, OK, found)
    return Check(name, PROBLEM, found, _profiler_cure(_is_nvidia(probe)))


def _kind(probe: Probe) -> str | None:
    """Kind of the device that torch takes by itself, or None when it could not use it."""
    return probe.get("device", {}).get("kind")


def _is_nvidia(probe: Probe) -> bool:
    """Whether torch computes on an NVIDIA card; ROCm calls its devices cuda as well."""
    return _kind(probe) == "cuda" and not probe.get("torch", {}).get("hip")


def _profiler_cure(nvidia: bool) -> str:
    if not nvidia:
        return "this build of torch has no working profiler: install an official one"
    return (
        "end other profilers (nsys, ncu, DCGM profiling), unset CUDA_INJECTION64_PATH, install the nvidia-cuda-cupti "
        "of torch's CUDA version; in a container NVIDIA_DRIVER_CAPABILITIES needs compute,utility"
    )


def nvml_check(probe: Probe, cards: Sequence[nvml.Card]) -> Check:
    """Clocks, power, temperature and other processes come from NVML; without a CUDA device nobody needs it."""
    if cards:
        return Check("NVML", OK, f"driver {nvml.driver_version()}, {len(cards)} card{'s' * (len(cards) > 1)}")
    if _is_nvidia(probe):
        cure = "pip install nvidia-ml-py; in a container NVIDIA_DRIVER_CAPABILITIES needs utility"
        return Check("NVML", WARNING, "not available: no clocks, power or throttle reasons in the results", cure)
    return Check("NVML", OK, "no NVIDIA driver, and no CUDA device that needs it")


def compiler_check(named: str | None, include: Path) -> Check:
    """A C++ compiler (CXX, else g++ or clang++) and Python.h, without which torch.compile fails at every point."""
    compiler = next((path for path in map(shutil.which, [named] if named else ["g++", "clang++"]) if path), None)
    header = include / "Python.h"
    missing = [what for what, there in ((named or "g++", compiler), ("Python.h", header.exists())) if not there]
    if not missing:
        return Check("compiler", OK, f"{Path(str(compiler)).name}, Python.h")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    cure = f"apt install g++ python{python}-dev, or dnf install gcc-c++ python{python}-devel; else sweep compile=false"
    return Check("compiler", PROBLEM, f"{' and '.join(missing)} not found: torch.compile cannot build", cure)


def triton_check(probe: Probe) -> Check:
    """torch.compile writes Triton kernels on CUDA, for compute capability 7.0 and above."""
    failure = _failure(probe, "triton", "triton", "pip install triton, in the version that torch asks for")
    if failure:
        return failure
    facts = probe["triton"]
    if not facts["needed"]:
        return Check("triton", OK, "not needed without a CUDA device")
    capability = probe.get("device", {}).get("capability")
    if capability and tuple(capability) < (7, 0):
        found = f"{facts['version']}, but compute capability {capability[0]}.{capability[1]} is below 7.0"
        return Check("triton", PROBLEM, found, "sweep with compile=false on this card")
    return Check("triton", OK, facts["version"])


def cpu_check(
    allowed: frozenset[int] | None, online: frozenset[int] | None, quota_cpus: float | None, governor: str | None
) -> Check:
    """CPUs this process may use, and what limits or slows them."""
    if not allowed:
        return Check("CPU", WARNING, "the CPUs this process may use cannot be read", "nothing to do: they stay unknown")
    of = f" of {len(online)}" if online else ""
    quota = "none" if quota_cpus is None else f"{quota_cpus:g} CPUs"
    found = f"{len(allowed)}{of} ({host.format_cpus(allowed)}), quota {quota}, governor {governor or 'unknown'}"
    cures = _cpu_cures(len(allowed), quota_cpus, governor)
    return Check("CPU", WARNING if cures else OK, found, "; ".join(cures))


_SLOW_GOVERNORS = {"powersave", "ondemand", "conservative", "schedutil"}


def _cpu_cures(allowed: int, quota_cpus: float | None, governor: str | None) -> list[str]:
    cures = []
    if allowed < 2:
        cures.append("give it a second CPU: the runner's parent interrupts the measuring on a single one")
    if quota_cpus is not None and quota_cpus < allowed:
        cures.append(
            f"raise the quota or sweep with threads={max(1, int(quota_cpus))}: beyond it the kernel pauses steps"
        )
    if governor and set(governor.split(",")) & _SLOW_GOVERNORS:
        cures.append("cpupower frequency-set -g performance: the clock follows the load, and launch times with it")
    return cures


def measure_pressure(window_s: float) -> float | None:
    """Share of the next `window_s` seconds in which tasks wait for a CPU; None where the kernel does not tell."""
    counters = condition.HostCounters()
    counters.start()
    time.sleep(window_s)
    return counters.finish()["cpu_pressure_frac"]


def pressure_check(pressure_frac: float | None) -> Check:
    if pressure_frac is None:
        cure = "nothing to do: host_contended stays unknown (Linux tells from 4.20 on, with psi=1)"
        return Check("CPU pressure", WARNING, "cannot be read", cure)
    found = f"tasks waited for a CPU in {pressure_frac:.1%} of the last {PRESSURE_WINDOW_S:g} s"
    if pressure_frac <= condition.PRESSURE_LIMIT_FRAC:
        return Check("CPU pressure", OK, found)
    return Check("CPU pressure", WARNING, found, "end or move what else runs here: host times spread")


# Idle cards show applications_clocks and the like; these say that the card is being held back by heat or its supply.
_ALARMS = {"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake"}


def clocks_check(card: nvml.Card) -> Check:
    """SM clock against the highest allowed, power limit against its default, and heat."""
    limit_w, default_w = card.power_limit_w(), card.power_limit_default_w()
    reasons = card.throttle_reasons()
    found = (
        f"SM {_number(card.sm_clock_mhz())} of {_number(card.sm_clock_limit_mhz())} MHz, "
        f"power limit {_number(limit_w)} of {_number(default_w)} W, {_number(card.temperature_c())} C, "
        f"held back by: {'unknown' if reasons is None else ', '.join(reasons) or 'nothing'}"
    )
    cures = _clock_cures(limit_w, default_w, reasons or ())
    return Check("clocks", WARNING if cures else OK, found, "; ".join(cures))


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"


def _clock_cures(limit_w: float | None, default_w: float | None, reasons: Sequence[str]) -> list[str]:
    cures = []
    if limit_w is not None and default_w is not None and limit_w < default_w:
        cures.append(f"nvidia-smi -pl {default_w:.0f} lifts the power limit; as it is, it belongs to the environment")
    if "applications_clocks" in reasons:
        cures.append("nvidia-smi -rac lifts the applications clock")
    if _ALARMS & set(reasons):
        cures.append("let the card cool and look at its fans and power supply")
    return cures


def nsys_check(program: Path | None) -> Check:
    """Nsight Systems is optional: without it profiler=nsys alone is refused."""
    if program is None:
        return Check("Nsight Systems", OK, f"not found, only profiler=nsys needs it; {nsys_program.GET_IT}")
    return Check("Nsight Systems", OK, str(program))


def disk_check(store: Path) -> Check:
    """Room where the store lies (or would), and whether a file can be written and synced there."""
    folder = next(path for path in (store.absolute(), *store.absolute().parents) if path.exists())
    try:
        sync_ms = _sync_ms(folder)
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(
            "disk", PROBLEM, f"{folder}: {error.strerror or error}", "choose a folder you may write: store=FOLDER"
        )
    found = f"{_gib(free_bytes)} free for {store}, fsync {sync_ms:.1f} ms"
    if free_bytes >= FEW_BYTES:
        return Check("disk", OK, found)
    status = PROBLEM if free_bytes < TOO_FEW_BYTES else WARNING
    return Check("disk", status, found, "free some space, or choose another folder: store=FOLDER")


def _sync_ms(folder: Path) -> float:
    """Milliseconds to write and sync a small file."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".crossover-", suffix=".tmp") as file:
        started = time.perf_counter()
        file.write(b"crossover")
        file.flush()
        os.fsync(file.fileno())
        return (time.perf_counter() - started) * 1e3


def blocking_check(environ: Mapping[str, str]) -> Check:
    """CUDA_LAUNCH_BLOCKING makes every launch wait for its kernel: nothing is asynchronous any more."""
    value = environ.get("CUDA_LAUNCH_BLOCKING", "")
    if value in ("", "0"):
        return Check("launches", OK, "asynchronous (CUDA_LAUNCH_BLOCKING is off)")
    found = f"CUDA_LAUNCH_BLOCKING={value}: every launch waits for its kernel"
    return Check("launches", PROBLEM, found, "unset CUDA_LAUNCH_BLOCKING")
