"""runner.jobs: points become overrides of jobs and come out of them as they went in; how jobs end becomes one code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from runner.composition import Values, compose
from runner.jobs import Ended, _text, as_jobs, previewed, run_all
from runner.point import PointError
from runner.progress import PYTHON


def configurations(*arguments: str) -> list[Values]:
    """The configurations of a command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["runner", *arguments])
        return list(compose().points)


def points_of(jobs: list[list[str]]) -> list[list[Values]]:
    """The configurations that each job composes from its override."""
    return [configurations(*overrides) for overrides in jobs]


def without_slopes(points: list[Values]) -> list[str]:
    """Configurations as texts, sorted, the store's path absolute, but for what each job says of its points' slopes."""
    stripped = [
        {**each, "measure": {**each["measure"], "slopes_every": None}, "store": str(Path(each["store"]).absolute())}
        for each in points
    ]
    return sorted(json.dumps(each, sort_keys=True) for each in stripped)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "size=8,16,32", "compile=true,false,reduce-overhead", "batch=null,8"),
        ("-m", "workload=matmul_add,addmm,noop", "measure=quick,thorough", "dtype=auto,fp16"),
        ("-m", "+experiment=article_cpu"),
        ("-m", "size=8,16", "measure.limit_s=0.25", "profiler.with_stack=true", "devices=[0,2]"),
        ("-m", "env.A='x, y',\"it's\",null,1", "env.B=true", "store='a \\${b} $c {d}'"),
        ("-m", "size=range(8,20,4)", "warmup=true,3", "schedule=null,0/0/3"),
    ],
)
def test_jobs_hold_the_points_of_the_sweep(arguments: tuple[str, ...]) -> None:
    """Every configuration comes out of some job as the command line made it, each once."""
    points = configurations(*arguments)
    (defaults,) = configurations()
    jobs = points_of(as_jobs(defaults, points, 5))
    assert [len(job) for job in jobs[:-1]] == [5] * (len(jobs) - 1)
    assert without_slopes([point for job in jobs for point in job]) == without_slopes(points)


def test_the_cut_does_not_decide_which_points_get_slopes() -> None:
    """Every 8th point of the sweep has them, so that jobs of another length ask for nothing new."""
    points = configurations("-m", "size=range(8,28)", "order=given")
    (defaults,) = configurations()
    for size in (3, 100):
        jobs = points_of(as_jobs(defaults, points, size))
        asked = [point["size"] for job in jobs for point in job if point["measure"]["slopes_every"]]
        assert asked == [8, 16, 24]


def test_paths_mean_the_same_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may begin anywhere: the store and the interpreter are those of the folder where the command was given."""
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    jobs = as_jobs(configurations()[0], configurations("-m", "size=8", "store=a/b", "python=bin/python"), None)
    monkeypatch.chdir("/")
    ((point,),) = points_of(jobs)
    assert (point["store"], point["python"]) == (str(tmp_path / "a/b"), str(python))


def test_the_points_are_shuffled_before_the_cut() -> None:
    """Neighbouring sizes go to different jobs, as they are measured at different times without jobs."""
    (defaults,) = configurations()
    jobs = points_of(as_jobs(defaults, configurations("-m", "size=range(8,40)"), 16))
    assert sorted(point["size"] for point in jobs[0]) != list(range(8, 24))


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "many"])
def test_a_job_has_a_point_at_least(size: Any) -> None:
    """What is no number of points is refused with an example."""
    (defaults,) = configurations()
    with pytest.raises(PointError, match=r"points_per_job=.*: allowed is a whole number from 1 on; for example"):
        as_jobs(defaults, configurations("-m", "size=8,16"), size)


letters = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
marks = st.sampled_from(["${", "}", "\\", "'", '"', "$", ",", ":", "{", "]", " ", "=", "null", "a"])
texts = st.lists(marks | letters, max_size=5).map("".join)
values = texts | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.lists(texts, max_size=2)
names = st.sampled_from(["size", "OMP_NUM_THREADS", "_a1"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(names, values), max_size=2))
def test_values_survive_hydras_grammar(points: list[dict[str, Any]]) -> None:
    """What is written as an override is read as the same values, whatever the texts hold."""
    (override,) = OverridesParser.create().parse_overrides([f"points={_text(points)}"])
    read = OmegaConf.to_container(OmegaConf.create({"points": override.value()}), resolve=True)
    assert read == {"points": points}


# -- how jobs end ------------------------------------------------------------------------------------------------------


class Finished(Launcher):
    """A launcher whose jobs have ended as they were said to; an exception is raised behind the others' begin."""

    def __init__(self, folder: Path, *ends: Ended | Exception) -> None:
        self.folder, self.ends = folder, ends

    def setup(self, **_: Any) -> None:
        """Nothing is needed."""

    def launch(self, job_overrides: Any, initial_job_idx: int) -> list[JobReturn]:
        """Begin every job that is no exception, then raise the exception, if there is one."""
        for number, end in enumerate(self.ends):
            if isinstance(end, Exception):
                raise end
            (self.folder / str(number)).mkdir()
        return [JobReturn(status=JobStatus.COMPLETED, _return_value=end) for end in self.ends]


@pytest.mark.parametrize(
    ("codes", "code"),
    [((0, 0), 0), ((0, 2), 2), ((1, 1), 1), ((0, 1), 2), ((1, 2), 2), ((0, 143), 143), ((2, 130), 130)],
)
def test_the_exit_code_of_a_sweep_is_that_of_its_jobs(tmp_path: Path, codes: tuple[int, ...], code: int) -> None:
    """The worst; 1 only where no job could do anything."""
    launcher = Finished(tmp_path, *(Ended(each) for each in codes))
    assert run_all(launcher, [[]] * len(codes), tmp_path, "s") == code


def test_jobs_with_failed_points_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The points themselves are told in the jobs' own words, elsewhere."""
    run_all(Finished(tmp_path, Ended(0), Ended(2), Ended(0)), [[]] * 3, tmp_path, "my store")
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "3 jobs: 2 ended well, 1 left points that failed or are missing; results in my store",
        "What is missing, or failed for a passing reason, is measured by the same command.",
        f"Next: {PYTHON} -m analysis report --store 'my store'",
    ]
    assert said.err == ""


def test_a_sweep_of_jobs_ends_with_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the points lie and what comes next, as behind a sweep without jobs."""
    run_all(Finished(tmp_path, Ended(0)), [[]], tmp_path, "outputs/store")
    assert capsys.readouterr().out.splitlines() == [
        "1 job: 1 ended well; results in outputs/store",
        f"Next: {PYTHON} -m analysis report",
    ]


@pytest.mark.parametrize(
    ("points", "jobs", "size", "said"),
    [(1, 1, None, "1 point in 1 job of up to 100; "), (7, 3, 3, "7 points in 3 jobs of up to 3; ")],
)
def test_what_would_be_submitted_is_counted(points: int, jobs: int, size: int | None, said: str) -> None:
    """dry_run says how many jobs there would be, and where to ask for the points themselves."""
    told = previewed(points, jobs, size)
    assert told.startswith(said + "nothing is submitted.") and "dry_run=true with hydra/launcher=workers" in told


def test_the_same_reason_of_many_jobs_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred jobs without a device are one sentence, and there is no result to speak of."""
    assert run_all(Finished(tmp_path, *[Ended(1, "no device")] * 100), [[]] * 100, tmp_path, "s") == 1
    assert capsys.readouterr() == ("", "error: no device\n")


def test_a_launcher_that_fails_before_any_job_begins_is_wrong_input(tmp_path: Path) -> None:
    """Nothing could be done: the error goes on to where all wrong input is told."""
    with pytest.raises(RuntimeError, match="no scheduler"):
        run_all(Finished(tmp_path, RuntimeError("no scheduler")), [[]], tmp_path, "s")


def test_a_launcher_that_fails_behind_a_job_has_lost_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Something was done, and not all: exit code 2 and the launcher's words on one line."""
    launcher = Finished(tmp_path, Ended(0), RuntimeError("the worker\ndied"))
    assert run_all(launcher, [[], []], tmp_path, "s") == 2
    said = capsys.readouterr()
    assert said.err == "error: A job was lost (the worker died).\n"
    assert said.out.startswith("2 jobs: how each of them ended is not known; results in s\n")
