"""Sweeps as the jobs of other launchers: submitit on this machine and through a stand-in for Slurm, Ray, joblib."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytestmark = pytest.mark.cluster

SLURM = Path(__file__).parent / "slurm"
LOCAL = "hydra/launcher=submitit_local"
RAY = ("hydra/launcher=ray", "+hydra.launcher.ray.init.include_dashboard=false")
IDLE = ("workload=noop", "order=given")
HANGS = ("hydra.sweeper.grids=[{workload: fault, workload.how: hang}, {workload: noop}]", "size=1", "measure=quick")


@dataclass(frozen=True)
class Done:
    """A finished command and the folder in which it ran."""

    code: int
    stdout: str
    stderr: str
    folder: Path

    def rows(self, store: str = "outputs/store") -> list[dict[str, Any]]:
        """All runs of the store, in the order in which they were made."""
        files = sorted((self.folder / store / "runs").glob("*/*.parquet"))
        return pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed").sort("run_id").to_dicts()

    @property
    def seeds(self) -> list[int]:
        """The seeds of all runs: with the workload `noop` they tell the points apart."""
        return sorted(json.loads(row["params"])["seed"] for row in self.rows())

    @property
    def log(self) -> str:
        """What the jobs have said."""
        return "".join(file.read_text() for file in sorted((self.folder / "outputs/jobs").rglob("*_log.*")))


def begun(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """A sweep in a folder of its own, on the CPU."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "RAY_USAGE_STATS_ENABLED": "0", **variables}
    return subprocess.Popen(
        [sys.executable, "-m", "runner", "-m", *arguments],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], folder: Path) -> Done:
    """What became of it; nothing that it has started stays behind."""
    try:
        stdout, stderr = process.communicate(timeout=200)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return Done(process.returncode, stdout, stderr, folder)


def sweep(folder: Path, *arguments: str, **variables: str) -> Done:
    """A sweep from its beginning to its end."""
    return ended(begun(folder, *arguments, **variables), folder)


def slurm(folder: Path, **variables: str) -> dict[str, str]:
    """The variables under which the stand-in for Slurm is found, its state in a folder."""
    (folder / "slurm").mkdir()
    return {"PATH": f"{SLURM}:{os.environ['PATH']}", "SLURM_STATE": str(folder / "slurm"), **variables}


def holder(locks: Path, seconds: float = 60) -> int:
    """The process that holds the CPU, as soon as one does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        signed = "".join(lock.read_text() for lock in locks.glob("cpu.lock"))
        if found := re.match(r"process (\d+)", signed):
            return int(found[1])
        time.sleep(0.1)
    raise TimeoutError(f"{locks}: nobody has taken the CPU")


# -- submitit, on this machine -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Four points of work in two jobs that share the CPU."""
    folder = tmp_path_factory.mktemp("local")
    return sweep(folder, LOCAL, "hydra.sweeper.points_per_job=3", "size=8,16,32,64", "measure=quick")


def test_every_point_of_every_job_lands_in_the_store_once(local: Done) -> None:
    """Two jobs, one store, no point lost and none twice; the parent says where to read on and how it went."""
    assert (local.code, local.stderr) == (0, "")
    first, *rest = local.stdout.splitlines()
    assert re.fullmatch(r"4 points in 2 jobs; what they say is kept in outputs/jobs/\S+", first)
    assert rest[0] == "2 jobs: 2 ended well; results in outputs/store"
    assert re.fullmatch(r"Next: \S+ -m analysis report", rest[1]) and len(rest) == 2
    assert sorted(row["size"] for row in local.rows()) == [8, 16, 32, 64]
    assert {row["status"] for row in local.rows()} == {"ok"}


def test_jobs_on_one_machine_take_turns(local: Done) -> None:
    """The device's lock keeps the second job waiting, which names the command that holds it as its user gave it."""
    spans = {}
    for row in local.rows():
        start = row["started_at"]
        end = start + timedelta(seconds=json.loads(row["facts"])["taken_s"])
        first, last = spans.get(row["sweep_id"], (start, end))
        spans[row["sweep_id"]] = (min(first, start), max(last, end))
    (_, end), (start, _) = sorted(spans.values())
    assert end <= start
    assert re.search(r"Waiting for cpu, in use by process \d+ .*: python -m runner -m hydra/launcher=", local.log)


def test_nothing_lies_beside_the_outputs(local: Done) -> None:
    """Hydra's and submitit's files are below outputs/jobs."""
    assert [path.name for path in local.folder.iterdir()] == ["outputs"]
    assert sorted(path.name for path in (local.folder / "outputs").iterdir()) == ["jobs", "store"]


@pytest.mark.parametrize("launcher", [LOCAL, "hydra/launcher=workers"])
def test_what_jobs_have_measured_is_measured(local: Done, launcher: str) -> None:
    """The command again measures nothing, in whatever jobs, or in none."""
    again = sweep(local.folder, launcher, "hydra.sweeper.points_per_job=2", "size=8,16,32,64", "measure=quick")
    assert (again.code, again.stderr, len(again.rows())) == (0, "", 4)


def test_a_sweep_id_is_that_of_a_job(local: Done) -> None:
    """Two jobs of one command are two sweeps of the store."""
    assert len({row["sweep_id"] for row in local.rows()}) == 2


@pytest.mark.parametrize("launcher", [LOCAL, "hydra/launcher=submitit_slurm", RAY[0], "hydra/launcher=joblib"])
def test_dry_run_submits_nothing(tmp_path: Path, launcher: str) -> None:
    """Nothing runs and nothing is written, even where there is no scheduler."""
    done = sweep(tmp_path, launcher, *IDLE, "seed=1,2,3", "hydra.sweeper.points_per_job=2", "dry_run=true")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("3 points in 2 jobs of up to 2; nothing is submitted. ")
    assert list(tmp_path.iterdir()) == []


def test_jobs_need_m(tmp_path: Path) -> None:
    """Without it Hydra would leave the launcher out and measure here."""
    command = [sys.executable, "-m", "runner", LOCAL, "size=4"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "write `python -m runner -m hydra/launcher=submitit_local ...`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failed_point_makes_the_exit_code(tmp_path: Path) -> None:
    """A point that fails in one job is a row and exit code 2; the other job's points are well."""
    grids = "hydra.sweeper.grids=[{workload: fault}, {workload: noop}]"
    done = sweep(tmp_path, LOCAL, grids, "size=8", "hydra.sweeper.points_per_job=1", "measure=quick")
    assert (done.code, done.stderr) == (2, "")
    assert "2 jobs: 1 ended well, 1 left points that failed or are missing; results in outputs/store\n" in done.stdout
    assert {row["workload"]: row["status"] for row in done.rows()} == {"fault": "failed", "noop": "ok"}


def test_awkward_texts_arrive_as_they_are(tmp_path: Path) -> None:
    """Spaces, quotes, commas, braces, references and letters of all kinds, in a path and in variables."""
    store, text = "my 'own' ünì,{cöde} $x", "a 'b', \"c\" {d: [e]} \\${f} $g ü=ß"
    argument = "env.OMP_AFFINITY_FORMAT='" + text.replace("'", r"\'") + "'"
    quoted = "store='" + store.replace("'", r"\'") + "'"
    done = sweep(tmp_path, LOCAL, *IDLE, quoted, argument, "env.OTHER='x y','null','1,2'", "seed=1,2")
    assert (done.code, done.stderr) == (0, "")
    (tables := list((tmp_path / store / "environments").glob("*.parquet"))).sort()
    found = [json.loads(pl.read_parquet(table)["variables"][0]) for table in tables]
    assert {each["OMP_AFFINITY_FORMAT"] for each in found} == {text.replace("\\${", "${")}
    assert sorted(each["OTHER"] for each in found) == ["1,2", "null", "x y"]
    assert len(done.rows(store)) == 6


def test_a_ready_sweep_with_grids_is_cut_into_jobs(tmp_path: Path) -> None:
    """Grids are expanded before the cut, and what two of them share is one point."""
    grids = "hydra.sweeper.grids=[{seed: '1,2,3'}, {seed: '3,4'}]"
    done = sweep(tmp_path, LOCAL, *IDLE, grids, "hydra.sweeper.points_per_job=3")
    assert (done.code, done.stderr, done.seeds) == (0, "", [1, 2, 3, 4])
    assert done.stdout.startswith("4 points in 2 jobs")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("size=8,0", "size=0: allowed is a whole number from 1 on"),
        ("hydra.sweeper.points_per_job=0", "hydra.sweeper.points_per_job=0: allowed is a whole number"),
        ("store=a,b", "store=a,b: allowed is one value a sweep"),
        ("hydra.launcher.partition=gpu", "hydra.launcher.partition"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_submitted(tmp_path: Path, argument: str, said: str) -> None:
    """One sentence, exit code 1, no job and no file."""
    done = sweep(tmp_path, LOCAL, argument)
    assert done.code == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_keeps_every_job_from_measuring_is_said_once(tmp_path: Path) -> None:
    """A store that cannot be written is found out where it lies, and told where the command was given."""
    (tmp_path / "file").touch()
    done = sweep(tmp_path, LOCAL, *IDLE, "store=file/store", "seed=1,2", "hydra.sweeper.points_per_job=1")
    assert done.code == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "file/store" in done.stderr


# -- jobs that end before their points ---------------------------------------------------------------------------------


def disturbed(folder: Path, number: signal.Signals, *arguments: str) -> Done:
    """Two jobs, of which the first, whose points hang, gets a signal while it holds the CPU."""
    (folder / "locks").mkdir()
    process = begun(folder, LOCAL, *HANGS, "order=given", *arguments, CROSSOVER_LOCKS=str(folder / "locks"))
    os.kill(holder(folder / "locks"), number)
    return ended(process, folder)


def test_a_killed_job_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    """One sentence and exit code 2; the other job's points are there; the same command measures what is missing."""
    asked = ("seed=1,2", "hydra.sweeper.points_per_job=2")
    done = disturbed(tmp_path, signal.SIGKILL, *asked)
    assert done.code == 2
    assert re.fullmatch(r"error: Job \d+ ended without an answer \(\w+\); .*_log\.err\.\n", done.stderr)
    assert [row["workload"] for row in done.rows()] == ["noop", "noop"]
    again = sweep(tmp_path, LOCAL, *HANGS, "order=given", *asked, "point_timeout=1")
    assert (again.code, again.stderr) == (2, "")
    assert Counter((row["workload"], row["status"]) for row in again.rows()) == {
        ("noop", "ok"): 2,
        ("fault", "timeout"): 2,
    }


def test_a_terminated_job_says_how_to_go_on(tmp_path: Path) -> None:
    """A job that its scheduler ends stops as a sweep does: exit code 143, and the command as its user gave it."""
    done = disturbed(tmp_path, signal.SIGTERM, "hydra.sweeper.points_per_job=1")
    assert (done.code, done.stderr) == (143, "")
    assert re.search(r"The same command goes on: \S+ -m runner -m hydra/launcher=submitit_local", done.log)
    assert [row["workload"] for row in done.rows()] == ["noop"]


def test_a_preempted_job_is_queued_again_and_repeats_nothing(tmp_path: Path) -> None:
    """submitit queues a job again that gets its signal; the second time it measures only what is missing."""
    done = disturbed(tmp_path, signal.SIGUSR2, "hydra.sweeper.points_per_job=2", "point_timeout=4")
    assert (done.code, done.stderr) == (2, "")
    assert done.log.count("Starting with JobEnvironment") == 2
    assert Counter(row["status"] for row in done.rows()) == {"ok": 1, "timeout": 1}


# -- Slurm, by a stand-in for the scheduler ----------------------------------------------------------------------------


def test_points_pass_through_a_batch_script(tmp_path: Path) -> None:
    """The array has a task a job, the script what was asked for; where the command is given there is no torch."""
    (tmp_path / "login/torch").mkdir(parents=True)
    (tmp_path / "login/torch/__init__.py").write_text("raise ImportError('there is no torch here')")
    done = sweep(
        tmp_path, "hydra/launcher=submitit_slurm", "hydra.launcher.partition=gpu", "hydra.launcher.gpus_per_node=1",
        "hydra.launcher.timeout_min=30", "hydra.sweeper.points_per_job=3", "size=8,16,32,64", "measure=quick",
        **slurm(tmp_path, PYTHONPATH=str(tmp_path / "login")),
    )  # fmt: skip
    assert (done.code, done.stderr) == (0, "")
    assert [(row["size"], row["status"]) for row in sorted(done.rows(), key=lambda row: row["size"])] == [
        (8, "ok"), (16, "ok"), (32, "ok"), (64, "ok"),
    ]  # fmt: skip
    (script,) = (tmp_path / "outputs/jobs").rglob("*_submission.sh")
    asked = {line.removeprefix("#SBATCH ") for line in script.read_text().splitlines() if line.startswith("#SBATCH")}
    assert {"--array=0-1%2", "--partition=gpu", "--gpus-per-node=1", "--time=30", "--job-name=runner"} <= asked
    assert shlex.split(script.read_text())[-2:] == ["submitit.core._submit", str(script.parents[1] / "%j")]


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGKILL, r"Job 4711_0 ended without an answer \(FAILED\); what it said last is in .*_log\.err\."),
        (signal.SIGUSR2, r".*Job not requeued because: timed-out too many times\."),
    ],
)
def test_a_task_that_is_lost_or_out_of_time_is_told(tmp_path: Path, number: signal.Signals, told: str) -> None:
    """One sentence and exit code 2; the other task's point is there."""
    locks = tmp_path / "locks"
    process = begun(
        tmp_path, "hydra/launcher=submitit_slurm", *HANGS, "order=given", "hydra.sweeper.points_per_job=1",
        "hydra.launcher.timeout_min=5", "point_timeout=60", **slurm(tmp_path, CROSSOVER_LOCKS=str(locks)),
    )  # fmt: skip
    os.kill(holder(locks), number)
    done = ended(process, tmp_path)
    assert done.code == 2
    assert re.fullmatch(f"error: {told}\n", done.stderr)
    assert [row["workload"] for row in done.rows()] == ["noop"]


def test_without_slurm_nothing_is_submitted(tmp_path: Path) -> None:
    """A machine from which no job can be submitted is told in one sentence."""
    done = sweep(tmp_path, "hydra/launcher=submitit_slurm", *IDLE, "seed=1,2")
    assert done.code == 1
    assert done.stderr.startswith("error: ")
    assert "srun" in done.stderr
    assert done.stderr.count("\n") == 1


# -- other launchers ---------------------------------------------------------------------------------------------------


def test_ray_runs_the_jobs(tmp_path: Path) -> None:
    """Points of work in two tasks of a Ray of their own; the command again measures nothing."""
    asked = (
        *RAY,
        "+hydra.launcher.ray.remote.num_cpus=1",
        "size=8,16",
        "measure=quick",
        "hydra.sweeper.points_per_job=1",
    )
    done = sweep(tmp_path, *asked)
    assert (done.code, sorted(row["size"] for row in done.rows())) == (0, [8, 16])
    again = sweep(tmp_path, *asked)
    assert (again.code, len(again.rows())) == (0, 2)


def test_ray_repeats_a_task_whose_process_was_killed(tmp_path: Path) -> None:
    """The task begins again elsewhere and measures what is missing; its failed point makes the exit code."""
    locks = tmp_path / "locks"
    process = begun(
        tmp_path, *RAY, *HANGS, "order=given", "hydra.sweeper.points_per_job=1", "point_timeout=5",
        CROSSOVER_LOCKS=str(locks),
    )  # fmt: skip
    os.kill(killed := holder(locks), signal.SIGKILL)
    done = ended(process, tmp_path)
    assert done.code == 2
    assert holder(locks) != killed
    assert {row["workload"]: row["status"] for row in done.rows()} == {"fault": "timeout", "noop": "ok"}


@pytest.mark.parametrize("launcher", ["joblib", "basic"])
def test_hydras_other_launchers_run_the_jobs(tmp_path: Path, launcher: str) -> None:
    """joblib's processes, whose OMP_NUM_THREADS makes another environment than that of no jobs, and this one."""
    done = sweep(tmp_path, f"hydra/launcher={launcher}", *IDLE, "seed=1,2,3", "hydra.sweeper.points_per_job=2")
    assert (done.code, done.stderr, done.seeds) == (0, "", [1, 2, 3])
    again = sweep(tmp_path, *IDLE, "seed=1,2,3")
    assert (again.code, again.seeds) == (0, [1, 1, 2, 2, 3, 3] if launcher == "joblib" else [1, 2, 3])
