"""`python -m runner` as a user meets it: exit codes, and one sentence for whatever is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command in the repository's root."""
    return subprocess.run(
        [sys.executable, "-m", "runner", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip


WRONG: dict[str, tuple[list[str], str]] = {
    "value": (["size=1e3"], "size=1000.0: allowed is"),
    "last of a sweep": (["-m", "size=8,16", "dtype=fp32,float32"], "dtype=float32: allowed is"),
    "list without -m": (["size=64,128"], "size=64,128: several values make a sweep; write"),
    "no such key": (["sizes=64"], "sizes: there is no such key; allowed are"),
    "parameter": (["autocast=bf16"], "as a parameter of train_step it is written workload.autocast."),
    "own name": (["name=mine"], "name: there is no such key; allowed are"),
    "added key": (["+sizes=64"], "sizes: there is no such key; allowed are"),
    "no such workload": (["workload=conv"], "workload=conv: allowed is"),
    "no such parameter": (["workload.ops=3"], "workload.ops"),
    "no such sweep": (["+experiment=nope"], "experiment=nope: allowed is allocator, article"),
    "two sweeps": (["-m", "+experiment=first,article"], "experiment: one ready sweep"),
    "grammar": (["size=["], "allowed is key=value with a value, a list of values, range(...) or choice(...)"),
    "no key": (["check"], "check: allowed are arguments key=value, or `doctor` alone as the first"),
    "range in a list": (["-m", "size=range(8,72,4),3000"], "size=range(8,72,4),3000: allowed is a list of values, or"),
    "jobs without -m": (["hydra/launcher=basic"], "write `python -m runner -m hydra/launcher=basic ...`"),
    "no such launcher": (["-m", "hydra/launcher=pbs"], "hydra/launcher=pbs: allowed are workers, basic and, once inst"),
    "one choice": (["hydra/help=nope"], "hydra/help=nope: allowed is crossover; this is the file of conf/hydra/help."),
    "no such profiler": (["profiler=nope"], "profiler=nope: allowed is default, nsys; these are the files of conf"),
    "no point": (["points=[]"], "points=[]: allowed is null or a list of mappings"),
    "workload of a point": (["points=[{workload:noop}]"], "workload=noop: allowed is a mapping with a name"),
    "reference": (["size=${nope}"], "nope"),
    "interval": (["-m", "size=interval(1,2)"], "size=interval(1,2): allowed are lists, range and choice"),
    "two orders": (["-m", "order=given,shuffled"], "order=given,shuffled: allowed is one value a sweep"),
    "interpreter": (["python=nope"], "python=nope: allowed is null or a Python that can be run"),
    "option": (["--nope"], "--nope"),
    "cold and warm-up": (["warmup=false", "schedule=1/1/5"], "schedule=1/1/5: allowed is 0/0/active"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[subprocess.CompletedProcess[str], Path]]:
    """All wrong commands, two at a time: each spends a second on nothing but imports."""
    stores = {name: tmp_path_factory.mktemp("wrong") / "store" for name in WRONG}
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda name: run(*WRONG[name][0], f"store={stores[name]}"), WRONG)
        return {name: (each, stores[name]) for name, each in zip(WRONG, done, strict=True)}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_sentence(name: str, told: dict[str, tuple[subprocess.CompletedProcess[str], Path]]) -> None:
    """Exit code 1, one line on stderr that names what is wrong, no traceback, nothing measured, no store made."""
    done, store = told[name]
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert WRONG[name][1] in done.stderr
    assert done.stdout == ""
    assert not store.exists()
    if name != "option":  # argparse prints its usage line first
        assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1, done.stderr


def test_help_and_cfg_run_nothing() -> None:
    """Both exit 0 and show the keys that may be set."""
    told = [run("--help"), run("--cfg", "job")]
    assert [each.returncode for each in told] == [0, 0]
    assert all("max_step_s: 5" in each.stdout for each in told)


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["doctor", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: list[str]) -> None:
    """As in `| head`: nothing on stderr."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments], stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        timeout=120,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_shows_how_to_begin() -> None:
    """Examples, exit codes, every key with its comment; neither Hydra's name nor what is for jobs alone."""
    told = run("--help").stdout
    for part in (
        "python -m runner -m size=64,4096",
        "+experiment=first",
        "dry_run=true",
        "doctor",
        "exit code: 0 well",
    ):
        assert part in told
    keys = (ROOT / "conf/config.yaml").read_text().partition("# -- axes")[2].partition("\npoints:")[0]
    assert keys.strip() in told
    assert "\n  points:" not in told and "Hydra" not in told and "$" not in told


def test_dry_run_submits_nothing(tmp_path: Path) -> None:
    """With a launcher that runs jobs: how many there would be, exit code 0, no job and no store."""
    asked = ("hydra/launcher=basic", "hydra.sweeper.points_per_job=2", f"hydra.sweep.dir={tmp_path / 'jobs'}")
    done = run("-m", *asked, "workload=noop", "seed=1,2,3", "dry_run=true", f"store={tmp_path / 'store'}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 points in 2 jobs of up to 2; nothing is submitted.")
    assert list(tmp_path.iterdir()) == []


def test_jobs_end_with_their_result(tmp_path: Path) -> None:
    """Behind the jobs' own words: how they ended, the store, and what to do next."""
    asked = ("hydra/launcher=basic", "workload=noop", "seed=1", f"hydra.sweep.dir={tmp_path / 'jobs'}")
    done = run("-m", *asked, f"store={tmp_path / 'store'}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"1 point in 1 job; what they say is kept in {tmp_path / 'jobs'}"
    assert lines[-2] == f"1 job: 1 ended well; results in {tmp_path / 'store'}"
    assert lines[-1].startswith("Next: ") and lines[-1].endswith(f" -m analysis report --store {tmp_path / 'store'}")


def test_a_store_that_cannot_be_written_ends_before_the_first_point(tmp_path: Path) -> None:
    """A file in the place of the folder: exit code 1 and one sentence."""
    (tmp_path / "file").write_text("in the way")
    done = run("workload=noop", f"store={tmp_path / 'file'}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: store={tmp_path / 'file'}: cannot be written")
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_a_device_that_is_not_there_ends_before_the_first_point(tmp_path: Path) -> None:
    """cuda where torch sees none: what there is, and where to look; nothing is measured."""
    done = run("device=cuda", f"store={tmp_path / 'store'}", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: device=cuda: torch can use cpu here; see `python -m runner doctor`.",
    ]
    assert not (tmp_path / "store" / "runs").exists()


def test_a_sweep_of_nothing_is_refused() -> None:
    """An empty range has no point, and is not a silent success."""
    done = run("-m", "size=range(8,1)")
    assert done.returncode == 1
    assert "no point" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_before_the_first_point_is_silent(tmp_path: Path) -> None:
    """While the device opens nothing is lost: exit code 130, no traceback, and soon."""
    command = [sys.executable, "-m", "runner", "size=8", f"store={tmp_path / 'store'}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told
