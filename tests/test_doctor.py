"""The doctor: each check on given facts, and the whole on this machine."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from runner import doctor, nvml
from runner.doctor import OK, PROBLEM, WARNING, Check

CPU_PROBE: dict[str, dict[str, Any]] = {
    "torch": {"version": "2.13.0+cpu", "cuda": None, "hip": None},
    "device": {"kind": "cpu"},
    "profiler": {"cpu_ops": 5, "kernels": 0},
    "triton": {"needed": False},
}
CUDA_PROBE: dict[str, dict[str, Any]] = {
    "torch": {"version": "2.11.0", "cuda": "13.0", "hip": None},
    "device": {"kind": "cuda", "name": "A card", "count": 2, "memory_bytes": 80 * 2**30, "capability": [9, 0]},
    "profiler": {"cpu_ops": 5, "kernels": 1},
    "triton": {"needed": True, "version": "3.6.0"},
}


class NVMLError(Exception):
    """What pynvml raises."""


def unknown(handle: object) -> None:
    """A question this card does not answer."""
    raise NVMLError("Not Supported")


def given_card(limit_mw: int | None = 700_000, reasons: int | None = 0) -> nvml.Card:
    """A card as NVML shows it: 345 of 1980 MHz, a default limit of 700 W, no temperature."""
    answers = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetName=lambda handle: "A card",
        nvmlDeviceGetClockInfo=lambda handle, clock: 345,
        nvmlDeviceGetMaxClockInfo=lambda handle, clock: 1980,
        nvmlDeviceGetPowerManagementLimit=unknown if limit_mw is None else lambda handle: limit_mw,
        nvmlDeviceGetPowerManagementDefaultLimit=lambda handle: 700_000,
        nvmlDeviceGetCurrentClocksEventReasons=unknown if reasons is None else lambda handle: reasons,
    )
    return nvml.Card(nvml=cast(ModuleType, answers), handle=0, instance=0)


def test_a_good_probe_passes_every_check_of_torch() -> None:
    """Both kinds of machine are well: one without a card and one with two."""
    machines: list[tuple[doctor.Probe, list[nvml.Card]]] = [(CPU_PROBE, []), (CUDA_PROBE, [given_card()] * 2)]
    for probe, cards in machines:
        checks = [
            doctor.torch_check(probe),
            doctor.device_check(probe, cards, None),
            doctor.profiler_check(probe),
            doctor.triton_check(probe),
        ]
        assert [check.status for check in checks] == [OK] * 4
        assert [check.cure for check in checks] == [""] * 4


def test_the_build_and_the_cards_are_named() -> None:
    """What a reader needs to know at once."""
    assert doctor.torch_check(CPU_PROBE).found == "2.13.0+cpu (CPU build)"
    assert doctor.torch_check(CUDA_PROBE).found == "2.11.0 (CUDA 13.0 build)"
    assert doctor.device_check(CUDA_PROBE, [], None).found == "2 x A card, 80.0 GiB each"


@pytest.mark.parametrize(
    ("torch", "visible", "cure"),
    [
        ({"version": "2.13.0+cpu", "cuda": None, "hip": None}, None, "CUDA build"),
        ({"version": "2.13.0", "cuda": "13.0", "hip": None}, "", "CUDA_VISIBLE_DEVICES"),
        ({"version": "2.13.0", "cuda": "13.0", "hip": None}, None, "13.0"),
    ],
)
def test_a_card_that_torch_cannot_use_is_a_problem(torch: dict[str, object], visible: str | None, cure: str) -> None:
    """The cure fits the likeliest reason: CPU build, hidden card, old driver."""
    check = doctor.device_check({**CPU_PROBE, "torch": torch}, [given_card()], visible)
    assert check.status == PROBLEM
    assert cure in check.cure


def test_a_profiler_without_kernels_is_a_problem_on_cuda_alone() -> None:
    """The CPU has operator events only; none at all is a problem there too."""
    silent = {**CUDA_PROBE, "profiler": {"cpu_ops": 5, "kernels": 0}}
    assert (doctor.profiler_check(silent).name, doctor.profiler_check(silent).status) == ("CUPTI", PROBLEM)
    assert doctor.profiler_check(CPU_PROBE).status == OK
    assert doctor.profiler_check({**CPU_PROBE, "profiler": {"cpu_ops": 0, "kernels": 0}}).status == PROBLEM


def test_a_stage_that_ended_the_process_is_reported_and_later_ones_were_not_reached() -> None:
    """What was said before the crash still counts."""
    output = f"noise\n{doctor._MARK}{json.dumps({'torch': CPU_PROBE['torch']})}\n"
    probe = doctor.parse_probe(output, "its process ended with -11: Segmentation fault")
    assert doctor.torch_check(probe).status == OK
    assert "-11" in doctor.device_check(probe, [], None).found
    assert doctor.triton_check(probe).found == "not reached"
    assert doctor.triton_check(probe).status == PROBLEM


def test_a_torch_that_cannot_be_imported_is_one_finding_and_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken torch in front of the real one: its own error is shown, and the process comes back."""
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_missing.so: cannot open shared object file')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[1]}")
    monkeypatch.chdir(Path(__file__).parents[1])
    probe = doctor.probe_torch(limit_s=30)
    assert set(probe) == {"torch"}
    assert "libtorch_missing" in doctor.torch_check(probe).found
    assert doctor.torch_check(probe).status == PROBLEM


def test_a_probe_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that never answers must not hold the doctor."""
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[1]}")
    monkeypatch.chdir(Path(__file__).parents[1])
    assert "did not answer" in doctor.torch_check(doctor.probe_torch(limit_s=2)).found


def test_missing_nvml_matters_only_with_a_cuda_device() -> None:
    """Without a card nobody needs it; with one, clocks and power would be missing from the results."""
    assert doctor.nvml_check(CPU_PROBE, []).status == OK
    assert doctor.nvml_check(CUDA_PROBE, []).status == WARNING


def test_a_missing_compiler_or_header_names_the_packages(tmp_path: Path) -> None:
    """Both families of distributions, and the way round it."""
    check = doctor.compiler_check("no-such-compiler", tmp_path)
    assert check.status == PROBLEM
    assert "no-such-compiler and Python.h" in check.found
    assert "apt install" in check.cure and "dnf install" in check.cure and "compile=false" in check.cure
    (tmp_path / "Python.h").touch()
    assert doctor.compiler_check(sys.executable, tmp_path).status == OK


def test_an_old_card_has_no_triton() -> None:
    """Compute capability 6.1: torch.compile has no backend there."""
    old = {**CUDA_PROBE, "device": {**CUDA_PROBE["device"], "capability": [6, 1]}}
    assert doctor.triton_check(old).status == PROBLEM


@pytest.mark.parametrize(
    ("allowed", "quota", "governor", "status", "cure"),
    [
        (frozenset({0, 1}), None, "performance", OK, ""),
        (frozenset({0, 1}), None, None, OK, ""),
        (frozenset({0, 1}), 1.5, None, WARNING, "threads=1"),
        (frozenset({0, 1}), None, "powersave", WARNING, "cpupower"),
        (frozenset({3}), None, None, WARNING, "second CPU"),
        (None, None, None, WARNING, "unknown"),
    ],
)
def test_limits_of_the_cpu_are_warnings(
    allowed: frozenset[int] | None, quota: float | None, governor: str | None, status: str, cure: str
) -> None:
    """Quota, governor and a single CPU each name their cure; what is not set is no fault."""
    check = doctor.cpu_check(allowed, frozenset(range(4)), quota, governor)
    assert check.status == status
    assert cure in check.cure and bool(check.cure) == (status != OK)


@pytest.mark.parametrize(("frac", "status"), [(0.0, OK), (0.05, OK), (0.3, WARNING), (None, WARNING)])
def test_pressure_above_the_limit_is_a_warning(frac: float | None, status: str) -> None:
    """The limit is the one that makes a host contended; unreadable is said, not passed over."""
    assert doctor.pressure_check(frac).status == status


@pytest.mark.parametrize(
    ("card", "status", "cure"),
    [
        (given_card(), OK, ""),
        (given_card(limit_mw=None, reasons=None), OK, ""),
        (given_card(reasons=0x4), OK, ""),
        (given_card(limit_mw=500_000), WARNING, "-pl 700"),
        (given_card(reasons=0x2), WARNING, "-rac"),
        (given_card(reasons=0x40), WARNING, "cool"),
    ],
)
def test_capped_and_hot_cards_are_warnings(card: nvml.Card, status: str, cure: str) -> None:
    """A busy card at its power cap is normal; a lowered limit, a fixed clock and heat are not."""
    check = doctor.clocks_check(card)
    assert check.status == status
    assert cure in check.cure
    assert "345 of 1980 MHz" in check.found


def test_the_disk_is_looked_at_where_the_store_would_lie(tmp_path: Path) -> None:
    """Neither the store nor its parents need to exist, and nothing is left behind."""
    check = doctor.disk_check(tmp_path / "not" / "there")
    assert check.status in (OK, WARNING)
    assert "fsync" in check.found
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_place_that_is_no_folder_is_a_problem(tmp_path: Path) -> None:
    """A file where the folder should be cannot hold a store."""
    (tmp_path / "file").touch()
    assert doctor.disk_check(tmp_path / "file").status == PROBLEM


@pytest.mark.parametrize(("value", "status"), [("1", PROBLEM), ("0", OK), ("", OK)])
def test_blocking_launches_are_a_problem(value: str, status: str) -> None:
    """Set to 0 or nothing, the variable has no effect."""
    assert doctor.blocking_check({"CUDA_LAUNCH_BLOCKING": value}).status == status
    assert doctor.blocking_check({}).status == OK


def test_an_old_python_is_a_problem() -> None:
    """3.11 is the oldest that works."""
    assert doctor.python_check((3, 11, 0)).status == OK
    assert doctor.python_check((3, 10, 14)).status == PROBLEM


def test_each_check_is_one_line_with_its_cure() -> None:
    """Names are aligned, and only what is not well has an arrow."""
    text = doctor.render([Check("Python", OK, "3.11.2"), Check("disk", WARNING, "0.5 GiB free", "free some space")])
    assert text.splitlines() == [
        "ok       Python  3.11.2",
        "warning  disk    0.5 GiB free  ->  free some space",
    ]


def test_the_whole_on_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every check is there with a known status; the exit code says whether one is a problem; each fault has a cure."""
    code = doctor.main(["--json", "--store", str(tmp_path / "store")])
    checks = json.loads(capsys.readouterr().out)
    names = {check["name"] for check in checks}
    assert {
        "Python",
        "torch",
        "device",
        "NVML",
        "compiler",
        "triton",
        "CPU",
        "CPU pressure",
        "disk",
        "launches",
    } <= names
    assert names & {"profiler", "CUPTI"}
    assert {check["status"] for check in checks} <= {OK, WARNING, PROBLEM}
    assert all(bool(check["cure"]) == (check["status"] != OK) for check in checks)
    assert code == int(any(check["status"] == PROBLEM for check in checks))


def test_a_problem_exits_1(tmp_path: Path) -> None:
    """A broken torch, and a variable that spoils every time, are both named and end the command with 1."""
    (tmp_path / "torch.py").write_text("raise ImportError('broken')\n")
    code = f"import sys; from runner.doctor import main; sys.exit(main(['--store', {str(tmp_path)!r}]))"
    environ = {"PATH": "/usr/bin:/bin", "CUDA_LAUNCH_BLOCKING": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, cwd=Path(__file__).parents[1]
    )
    assert done.returncode == 1
    assert "problem  torch" in done.stdout
    assert "problem  launches" in done.stdout


def test_wrong_usage_exits_1() -> None:
    """2 is kept for failed points."""
    with pytest.raises(SystemExit) as ended:
        doctor.main(["--nonsense"])
    assert ended.value.code == 1
