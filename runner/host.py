"""What the host says about itself: CPU, NUMA, cgroup limits, pressure and scheduler counts.

Standard library alone. Every function reads below `root` (the file system's root, another folder in tests) and returns
None for whatever cannot be read: Linux tells most of it, sandboxes less, other systems nothing.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

ROOT = Path("/")


def read_text(path: Path) -> str | None:
    """Text of a small file without its surrounding white space, or None when it cannot be read or is empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \t\n") or None
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The integer a file holds, or None when it cannot be read or holds something else (`max`, say)."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def format_cpus(cpus: Iterable[int]) -> str:
    """Compact text of CPU or node numbers, as the kernel writes them: {0, 1, 2, 3, 8} -> "0-3,8"."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def parse_cpus(text: str) -> frozenset[int]:
    """The numbers of a compact text: "0-3,8" -> {0, 1, 2, 3, 8}. ValueError for anything else."""
    bounds = [part.split("-") for part in text.split(",") if part.strip()]
    return frozenset(cpu for bound in bounds for cpu in range(int(bound[0]), int(bound[-1]) + 1))


def _parsed(text: str | None) -> frozenset[int] | None:
    try:
        return parse_cpus(text) if text else None
    except ValueError:
        return None


def affinity() -> frozenset[int] | None:
    """CPUs this process may run on. Asked from the kernel directly: sandboxes leave it out of /proc."""
    ask = getattr(os, "sched_getaffinity", None)
    try:
        return frozenset(ask(0)) if ask else None
    except OSError:
        return None


def online_cpus(root: Path = ROOT) -> frozenset[int] | None:
    """CPUs the system has switched on, whether or not this process may use them."""
    return _parsed(read_text(root / "sys/devices/system/cpu/online"))


def _first_fields(path: Path) -> dict[str, str]:
    """First value of each `name : value` line."""
    fields: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        name, separator, value = line.partition(":")
        if separator and value.strip():
            fields.setdefault(name.strip(), value.strip())
    return fields


def cpu_model(root: Path = ROOT) -> str | None:
    """Name of the CPU. Arm kernels print no name, so there it is the implementer and part number."""
    fields = _first_fields(root / "proc/cpuinfo")
    if "model name" in fields:
        return " ".join(fields["model name"].split())
    if "CPU implementer" in fields and "CPU part" in fields:
        return f"implementer {fields['CPU implementer']} part {fields['CPU part']}"
    return None


def physical_cores(cpus: Collection[int], root: Path = ROOT) -> int | None:
    """Number of physical cores among `cpus`: two hardware threads of one core count once."""
    cores = {_core(cpu, root) for cpu in cpus}
    return len(cores) if cores and None not in cores else None


def _core(cpu: int, root: Path) -> str | None:
    """All hardware threads of a CPU's core; Linux 5.3 renamed the file."""
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    return read_text(topology / "core_cpus_list") or read_text(topology / "thread_siblings_list")


def governor(cpus: Collection[int], root: Path = ROOT) -> str | None:
    """Frequency governor of `cpus`; several are joined by commas. Virtual machines mostly show none."""
    files = (root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in cpus)
    return ",".join(sorted({text for text in map(read_text, files) if text})) or None


def cache_bytes(level: int, root: Path = ROOT) -> int | None:
    """Size of CPU 0's data (or unified) cache of this level, in bytes."""
    for index in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if read_int(index / "level") == level and read_text(index / "type") in ("Data", "Unified"):
            return _kernel_size_bytes(read_text(index / "size"))
    return None


def sharing_last_cache(cpu: int, root: Path = ROOT) -> frozenset[int] | None:
    """CPUs that share this one's last-level cache, itself among them; None when that cannot be read."""
    indexes = (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")
    levels = sorted((read_int(index / "level") or 0, read_text(index / "shared_cpu_list") or "") for index in indexes)
    return _parsed(levels[-1][1]) if levels else None


def last_cache_bytes(root: Path = ROOT) -> int | None:
    """Size of CPU 0's last-level cache, the counterpart of a card's L2, in bytes."""
    sizes = [cache_bytes(level, root) for level in (4, 3, 2)]
    return next((size for size in sizes if size is not None), None)


def _kernel_size_bytes(text: str | None) -> int | None:
    """The kernel writes cache sizes in KiB ("2048K"), rarely in MiB."""
    units = {"K": 1024, "M": 1024**2}
    if not text or not text[:-1].isdigit() or text[-1] not in units:
        return None
    return int(text[:-1]) * units[text[-1]]


def numa_nodes(root: Path = ROOT) -> dict[int, frozenset[int]] | None:
    """CPUs of each online NUMA node (a node of memory alone has none)."""
    folder = root / "sys/devices/system/node"
    nodes = _parsed(read_text(folder / "online"))
    if nodes is None:
        return None
    return {node: _parsed(read_text(folder / f"node{node}/cpulist")) or frozenset() for node in sorted(nodes)}


def pci_numa_node(bus_id: str, root: Path = ROOT) -> int | None:
    """NUMA node a PCI device hangs on; `bus_id` as "0000:1b:00.0". None where the firmware does not say (-1)."""
    node = read_int(root / f"sys/bus/pci/devices/{bus_id.lower()}/numa_node")
    return None if node is None or node < 0 else node


def memory_bytes(root: Path = ROOT) -> int | None:
    """Memory of the host in bytes; a cgroup may allow less, see `cgroup_memory_bytes`."""
    words = _first_fields(root / "proc/meminfo").get("MemTotal", "").split()
    return int(words[0]) * 1024 if len(words) == 2 and words[0].isdigit() and words[1] == "kB" else None


def _cgroup_folders(controller: str, root: Path) -> list[Path]:
    """Folders of this process's cgroup and of its parents, nearest first; an empty controller means version 2.

    Inside a container the path may be the host's while the mount shows the container's own subtree. A folder that is
    not there is harmless: reading from it gives None, and the mount's top comes last.
    """
    folders: list[Path] = []
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if controller in names.split(","):
            mounts = [names, controller] if controller else ["", "unified"]
            relative = Path(path.lstrip("/"))
            below = [relative, *relative.parents] if relative.parts else [relative]
            folders += [root / "sys/fs/cgroup" / mount / part for part in below for mount in dict.fromkeys(mounts)]
    return folders


def _quota_v2(folder: Path) -> float | None:
    words = (read_text(folder / "cpu.max") or "").split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and all(word.isdigit() for word in words) else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def cgroup_cpus(root: Path = ROOT) -> float | None:
    """CPUs' worth of time the cgroups allow: the tightest quota up the tree. None = no quota, or none can be read."""
    quotas = [_quota_v2(folder) for folder in _cgroup_folders("", root)]
    quotas += [_quota_v1(folder) for folder in _cgroup_folders("cpu", root)]
    return min((quota for quota in quotas if quota is not None), default=None)


# Version 1 writes "no limit" as the largest multiple of the page size below 2**63.
_UNLIMITED_BYTES = 2**62


def cgroup_memory_bytes(root: Path = ROOT) -> int | None:
    """Bytes of memory the cgroups allow: the tightest limit up the tree. None = no limit, or none can be read."""
    limits = [read_int(folder / "memory.max") for folder in _cgroup_folders("", root)]
    limits += [read_int(folder / "memory.limit_in_bytes") for folder in _cgroup_folders("memory", root)]
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)


def _some_total_us(path: Path) -> int | None:
    """The `some` total of a pressure file: microseconds in which at least one task waited for a CPU."""
    for line in (read_text(path) or "").splitlines():
        kind, *pairs = line.split()
        total = dict(pair.partition("=")[::2] for pair in pairs).get("total", "")
        if kind == "some" and total.isdigit():
            return int(total)
    return None


def cpu_pressure_us(root: Path = ROOT) -> int | None:
    """Microseconds since the start in which some task wanted a CPU and had none (pressure stall information).

    The cgroup's own count where there is one, because strangers waiting on a large host for CPUs that this process may
    not use say nothing about it; else the count of the whole system.
    """
    own = [folder / "cpu.pressure" for folder in _cgroup_folders("", root)[:2]]
    totals = (_some_total_us(path) for path in [*own, root / "proc/pressure/cpu"])
    return next((total for total in totals if total is not None), None)


def involuntary_switches(root: Path = ROOT) -> int | None:
    """Times a thread of this process lost its CPU while it still wanted it.

    The status file counts the first thread alone, getrusage all of them, ended ones too. The file only shows that the
    kernel counts at all: sandboxed kernels answer getrusage with a plain zero, which is not a measurement.
    """
    if "nonvoluntary_ctxt_switches" not in _first_fields(root / "proc/self/status"):
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def resident_bytes(root: Path = ROOT) -> int | None:
    """Bytes of memory that this process has in use now (resident set size)."""
    fields = (read_text(root / "proc/self/statm") or "").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 and fields[1].isdigit() else None
