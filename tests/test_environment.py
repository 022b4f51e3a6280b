"""The environment of a point: what the host tells, what belongs to the identity and what does not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner import environment, host

DOC = Path(__file__).parents[1] / "docs" / "store.md"


def write(root: Path, files: dict[str, str]) -> Path:
    """A root folder that holds the given files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def documented_columns() -> set[str]:
    """Column names of the environments section of the store's page, without the remarks in parentheses."""
    section = DOC.read_text().split("## environments")[1].split("\n## ")[0].partition("\n")[2]
    names = re.sub(r"\([^)]*\)", "", section.partition("What cannot be read")[0])
    return set(re.findall(r"[a-z0-9_]+", names))


@pytest.mark.parametrize(
    ("cpus", "text"), [({0, 1, 2, 3, 8}, "0-3,8"), ({5}, "5"), ({0, 2, 4}, "0,2,4"), (set(), ""), ({1, 0}, "0-1")]
)
def test_cpu_numbers_are_written_compactly_and_read_back(cpus: set[int], text: str) -> None:
    """The text is the kernel's own form, so reading it gives the same numbers."""
    assert host.format_cpus(cpus) == text
    assert host.parse_cpus(text) == cpus


def test_nothing_readable_gives_none_everywhere(tmp_path: Path) -> None:
    """A system without these files yields unknowns: no zero, no exception."""
    answers = [
        host.online_cpus(tmp_path),
        host.cpu_model(tmp_path),
        host.physical_cores({0, 1}, tmp_path),
        host.governor({0, 1}, tmp_path),
        host.cache_bytes(2, tmp_path),
        host.numa_nodes(tmp_path),
        host.pci_numa_node("0000:1b:00.0", tmp_path),
        host.memory_bytes(tmp_path),
        host.cgroup_cpus(tmp_path),
        host.cgroup_memory_bytes(tmp_path),
        host.cpu_pressure_us(tmp_path),
        host.involuntary_switches(tmp_path),
    ]
    assert answers == [None] * len(answers)


def test_unreadable_content_is_unknown(tmp_path: Path) -> None:
    """Files with other content than expected are as good as missing."""
    files = {"proc/meminfo": "MemTotal: lots", "proc/pressure/cpu": "garbage", "sys/devices/system/cpu/online": "a-b"}
    root = write(tmp_path, files)
    assert (host.memory_bytes(root), host.cpu_pressure_us(root), host.online_cpus(root)) == (None, None, None)


def test_cpu_model_of_x86_and_arm(tmp_path: Path) -> None:
    """x86 prints a name; Arm prints numbers only, and those are given rather than a guessed name."""
    x86 = write(tmp_path / "x86", {"proc/cpuinfo": "processor\t: 0\nmodel name\t: Some  CPU @ 2GHz\n"})
    arm = write(tmp_path / "arm", {"proc/cpuinfo": "processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"})
    assert host.cpu_model(x86) == "Some CPU @ 2GHz"
    assert host.cpu_model(arm) == "implementer 0x41 part 0xd4f"


def test_hardware_threads_of_one_core_count_once(tmp_path: Path) -> None:
    """CPUs 0 and 2 share a core, 1 does not; one CPU without topology makes the count unknown."""
    cpu = "sys/devices/system/cpu/cpu{}/topology/{}"
    root = write(
        tmp_path,
        {
            cpu.format(0, "core_cpus_list"): "0,2\n",
            cpu.format(1, "thread_siblings_list"): "1,3\n",
            cpu.format(2, "core_cpus_list"): "0,2\n",
        },
    )
    assert host.physical_cores({0, 1, 2}, root) == 2
    assert host.physical_cores({0, 1, 9}, root) is None


def test_governor_counts_only_the_allowed_cpus(tmp_path: Path) -> None:
    """A governor of a CPU the process may not use says nothing about it."""
    name = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    root = write(tmp_path, {name.format(0): "performance\n", name.format(1): "powersave\n"})
    assert host.governor({0}, root) == "performance"
    assert host.governor({0, 1}, root) == "performance,powersave"


def test_cache_size_skips_the_instruction_cache(tmp_path: Path) -> None:
    """Level 1 has two caches; data is meant. Sizes are in KiB."""
    folder = "sys/devices/system/cpu/cpu0/cache/index{}/{}"
    files: dict[str, str] = {}
    for index, (level, kind, size) in enumerate([(1, "Instruction", "32K"), (1, "Data", "48K"), (2, "Unified", "2M")]):
        files |= {folder.format(index, "level"): str(level), folder.format(index, "type"): kind}
        files |= {folder.format(index, "size"): size}
    root = write(tmp_path, files)
    assert [host.cache_bytes(level, root) for level in (1, 2, 3)] == [48 * 1024, 2 * 1024**2, None]


def test_the_tightest_quota_up_the_tree_counts_in_version_2(tmp_path: Path) -> None:
    """A child without a limit lives under its parent's."""
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/task\n",
            "sys/fs/cgroup/pod/task/cpu.max": "max 100000\n",
            "sys/fs/cgroup/pod/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/pod/task/memory.max": "1048576\n",
            "sys/fs/cgroup/pod/memory.max": "max\n",
        },
    )
    assert host.cgroup_cpus(root) == 2.5
    assert host.cgroup_memory_bytes(root) == 1048576


def test_version_1_shows_a_container_its_own_limits_at_the_top(tmp_path: Path) -> None:
    """The path is the host's and does not exist inside; -1 and the huge number mean no limit."""
    files = {
        "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    root = write(tmp_path, files)
    assert host.cgroup_cpus(root) == 1.5
    assert host.cgroup_memory_bytes(root) is None
    write(tmp_path, {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n"})
    assert host.cgroup_cpus(root) is None


def test_pressure_is_the_cgroups_own_before_the_systems(tmp_path: Path) -> None:
    """Strangers' waiting on a large host is not ours."""
    root = write(tmp_path, {"proc/pressure/cpu": "some avg10=1.00 avg60=0 avg300=0 total=900\nfull avg10=0 total=7\n"})
    assert host.cpu_pressure_us(root) == 900
    write(root, {"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.pressure": "some avg10=0.00 total=42\n"})
    assert host.cpu_pressure_us(root) == 42


def test_numa_is_told_in_counts_so_that_equal_halves_of_a_host_are_one_environment(tmp_path: Path) -> None:
    """Card and CPUs on node 0, or both on node 1, read alike; a far card does not."""
    node = "sys/devices/system/node/"
    root = write(tmp_path, {node + "online": "0-1", node + "node0/cpulist": "0-3", node + "node1/cpulist": "4-7"})
    write(
        root, {"sys/bus/pci/devices/0000:1b:00.0/numa_node": "1\n", "sys/bus/pci/devices/0000:00:00.0/numa_node": "-1"}
    )
    nodes = host.numa_nodes(root)
    assert nodes == {0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}}
    assert host.pci_numa_node("0000:1B:00.0", root) == 1
    assert host.pci_numa_node("0000:00:00.0", root) is None
    assert environment.numa_text(nodes, {0, 1}, 0) == environment.numa_text(nodes, {6, 7}, 1) == "1 of 2, device near"
    assert environment.numa_text(nodes, {0, 1}, 1) == "1 of 2, device far"
    assert environment.numa_text(nodes, {3, 4}, None) == "2 of 2"
    assert environment.numa_text(None, {3, 4}, None) is None


def test_variables_that_change_results_are_kept_and_places_are_not() -> None:
    """Cache folders and logs differ between users without changing a time; a preloaded library keeps its name alone."""
    kept = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "CUDA_MODULE_LOADING": "LAZY",
        "NVIDIA_TF32_OVERRIDE": "0",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_ALLOC_CONF": "backend:native",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "TORCH_COMPILE_DEBUG": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": "2",
        "KMP_AFFINITY": "granularity=fine",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONMALLOC": "malloc",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
    left = {
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/a",
        "TRITON_CACHE_DIR": "/tmp/b",
        "TORCH_COMPILE_DEBUG_DIR": "/tmp/c",
        "CUDA_VISIBLE_DEVICES": "1",
        "PATH": "/bin",
        "HOME": "/home/someone",
        "MY_OMP_NUM_THREADS": "3",
    }
    found = environment.variables({**kept, **left, "LD_PRELOAD": "/usr/lib/libjemalloc.so.2:/opt/x/libfoo.so"})
    assert found == {**kept, "LD_PRELOAD": "libjemalloc.so.2:libfoo.so"}


def test_identity_changes_with_every_column_but_the_memory_size() -> None:
    """The order of the columns does not matter either, and an id in the row is not part of itself."""
    columns: dict[str, object] = {"torch": "2.13.0", "threads": 2, "power_limit_w": 700.0, "memory_bytes": 10}
    first = environment.identify(columns)
    assert re.fullmatch(r"[0-9a-f]{12}", first)
    assert environment.identify(dict(reversed(columns.items()))) == first
    assert environment.identify({**columns, "memory_bytes": 11, "environment_id": first}) == first
    changed = [
        {**columns, name: value} for name, value in [("torch", "2.12.0"), ("threads", 1), ("power_limit_w", 500.0)]
    ]
    assert first not in {environment.identify(row) for row in changed}


def test_describe_gives_the_documented_columns_and_keeps_attributes_apart() -> None:
    """The row matches docs/store.md name by name; JSON columns are objects; the id is the last."""
    described = environment.describe("cpu", 0, 2)
    assert set(described.columns) == documented_columns()
    assert list(described.columns)[-1] == "environment_id"
    assert described.columns["environment_id"] == environment.identify(described.columns)
    assert described.columns["threads"] == 2
    assert isinstance(json.loads(str(described.columns["versions"]))["torch"], str)
    assert isinstance(json.loads(str(described.columns["variables"])), dict)
    assert described.attributes["device_index"] is None
    assert set(described.attributes) == {"host", "device_uuid", "device_index", "cpus"}


def test_threads_and_variables_make_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes times changes the id; the same settings give the same id again."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    first = environment.describe("cpu", 0, 2).columns["environment_id"]
    assert environment.describe("cpu", 1, 2).columns["environment_id"] == first
    assert environment.describe("cpu", 0, 1).columns["environment_id"] != first
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert environment.describe("cpu", 0, 2).columns["environment_id"] != first


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2, reason="needs two CPUs on Linux")
def test_which_cpus_is_an_attribute_and_how_many_an_identity() -> None:
    """Workers pinned to different CPUs of one host share an environment; fewer CPUs are another one."""
    code = (
        "import os, sys; os.sched_setaffinity(0, eval(sys.argv[1]));"
        "from runner.environment import _affinity_text; from runner import host;"
        "print(_affinity_text(host.affinity(), {0, 1, 2, 3}), host.format_cpus(host.affinity()))"
    )
    allowed = sorted(os.sched_getaffinity(0))[:2]
    if len(allowed) < 2:
        pytest.skip("this process may use one CPU only")
    runs = [
        subprocess.run([sys.executable, "-c", code, repr(set(cpus))], capture_output=True, text=True, check=True).stdout
        for cpus in (allowed[:1], allowed[1:], allowed)
    ]
    assert [run.rsplit(" ", 1)[0] for run in runs] == ["1 of 4", "1 of 4", "2 of 4"]
    assert runs[0] != runs[1]


def test_an_unknown_backend_is_described_by_what_torch_tells() -> None:
    """A kind without torch support on this machine has empty device columns and does not fail."""
    described = environment.describe("mps", 0, 2)
    assert set(described.columns) == documented_columns()
    assert described.columns["device"] == "mps"
    assert described.columns["multiprocessors"] is None


def test_cuda_limits_of_an_older_torch_are_none() -> None:
    """Properties that a release does not have yet stay unknown."""
    old = SimpleNamespace(name="A card", major=9, minor=0, multi_processor_count=132, total_memory=1)
    limits = environment._cuda_limits(old)
    assert (limits["compute_capability"], limits["multiprocessors"]) == ("9.0", 132)
    assert limits["registers_per_multiprocessor"] is None


@pytest.mark.gpu
def test_a_cuda_device_is_matched_with_its_card() -> None:
    """Torch's device and NVML's card are the same one: driver, clock and power limit are known, registers too."""
    described = environment.describe("cuda", 0, 2)
    known = ("driver", "cuda_runtime", "sm_clock_max_mhz", "power_limit_w", "registers_per_multiprocessor", "l2_bytes")
    assert [name for name in known if described.columns[name] is None] == []
    assert described.attributes["device_uuid"] and described.attributes["device_index"] == 0


def test_the_worker_modules_import_neither_hydra_nor_polars_nor_the_analysis_libraries() -> None:
    """Their import would cost every worker its time; torch is imported when a device is described."""
    code = (
        "import sys, runner.environment, runner.condition, runner.doctor;"
        "print(sorted({'torch', 'hydra', 'polars', 'rich', 'duckdb', 'altair', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
