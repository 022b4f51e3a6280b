"""Points as the jobs of another launcher than ours: many points a job, in one override, looped inside the job."""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig

from runner.composition import Values, expanded, plain
from runner.words import counted

if TYPE_CHECKING:
    from runner.config import Job

POINTS_PER_JOB = 100
NOTHING, FAILED = 1, 2


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended. code: as if its points had been a command; why: what kept it from measuring, in a sentence."""

    code: int
    why: str | None = None


# -- on the machine where the command is given -------------------------------------------------------------------------


def as_jobs(defaults: Values, points: Sequence[Values], points_per_job: int | None) -> list[list[str]]:
    """The overrides of each job: one, which lists its points by what sets them apart from the defaults.

    All points are checked first. Raises PointError for the first value that is not allowed.
    """
    from runner.plan import Plan
    from runner.point import PointError

    size = POINTS_PER_JOB if points_per_job is None else points_per_job
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise PointError(
            f"hydra.sweeper.points_per_job={size}: allowed is a whole number from 1 on; "
            f"for example hydra.sweeper.points_per_job={POINTS_PER_JOB}."
        )
    plan = Plan(points)
    order = [index for batch in plan.batches() for index in batch]
    differences = [_difference(defaults, _elsewhere(points[index], plan[index])) for index in order]
    return [[f"points={_text(differences[first : first + size])}"] for first in range(0, len(order), size)]


def previewed(points: int, jobs: int, points_per_job: int | None) -> str:
    """What would be submitted. What would become of each point depends on the machine that it meets."""
    size = POINTS_PER_JOB if points_per_job is None else points_per_job
    return (
        f"{counted(points, 'point')} in {counted(jobs, 'job')} of up to {size}; nothing is submitted. "
        "On a machine like those of the jobs, dry_run=true with hydra/launcher=workers tells what each point would do."
    )


def run_all(launcher: Launcher, jobs: Sequence[Sequence[str]], folder: Path, store: str) -> int:
    """Launch all jobs and wait for them. The exit code of the whole; how they ended is told.

    folder: where a launcher gives each job that begins a folder; store: where their points go, as its user names it.
    Raises what the launcher raises before a job has begun.
    """
    from runner.progress import say

    try:
        with _all_awaited(launcher):
            ended = [each.return_value for each in launcher.launch(jobs, initial_job_idx=0)]
    except Exception as error:
        if not any((folder / str(number)).is_dir() for number in range(len(jobs))):
            raise
        ended = [Ended(FAILED, f"A job was lost ({' '.join(str(error).split())[:300]}).")]
    for why in dict.fromkeys(each.why for each in ended if each.why):
        print(f"error: {why}", file=sys.stderr)
    codes = [each.code for each in ended]
    if (code := _code(codes)) != NOTHING:
        say(_summary(codes, len(jobs), store))
    return code


def _summary(codes: Sequence[int], jobs: int, store: str) -> str:
    """How the jobs ended, where their points lie, and what to do next. codes: of all, or of a launcher that broke."""
    from runner.progress import PYTHON

    well, bad = codes.count(0), len(codes) - codes.count(0)
    ends = [f"{well} ended well"] if well else []
    ends += [f"{bad} left points that failed or are missing"] if bad else []
    told = ", ".join(ends) if len(codes) == jobs else "how each of them ended is not known"
    lines = [f"{counted(jobs, 'job')}: {told}; results in {store}"]
    if bad:
        lines.append("What is missing, or failed for a passing reason, is measured by the same command.")
    option = "" if store == "outputs/store" else f" --store {shlex.quote(store)}"
    return "\n".join([*lines, f"Next: {PYTHON} -m analysis report{option}"])


def _code(codes: Sequence[int]) -> int:
    """The worst; where some jobs could do nothing and others could, a part of the sweep has failed."""
    worst = max(codes, default=0)
    return FAILED if worst == NOTHING and 0 in codes else worst


@contextmanager
def _all_awaited(launcher: Launcher) -> Iterator[None]:
    """Within, a job that submitit has lost is one that failed: its launcher would wait for no other behind it."""
    if "submitit" not in type(launcher).__module__:
        yield
        return
    from submitit import Job

    results = Job.results

    def results_or_loss(job: Any) -> list[Any]:
        try:
            return list(results(job))
        except Exception:  # lost, or failed outside of what it was to run
            why = f"Job {job.job_id} ended without an answer ({job.state}); what it said last is in {job.paths.stderr}."
            return [JobReturn(status=JobStatus.COMPLETED, _return_value=Ended(FAILED, why))]

    Job.results = results_or_loss
    try:
        yield
    finally:
        Job.results = results


# -- inside a job ------------------------------------------------------------------------------------------------------


def run_job(command: Sequence[str], config: DictConfig) -> Ended:
    """What a job runs, where it is: its points, on the devices and with the store of its machine.

    command: the arguments that its user has given, for what is told of it.
    """
    from runner.errors import plainly
    from runner.launch import launch
    from runner.plan import Plan
    from runner.point import PointError

    sys.argv[1:] = command
    try:
        return Ended(launch(Plan(expanded(plain(config)))))
    except Exception as error:
        told = str(error) if isinstance(error, PointError) else plainly(error)
        if told is None:
            traceback.print_exc()
        why = f"{os.uname().nodename}: {told or f'{type(error).__name__}: {error}'}"
        print(f"error: {why}", file=sys.stderr)
        return Ended(NOTHING, why)


# -- points as the text of an override ---------------------------------------------------------------------------------


def _elsewhere(values: Values, job: Job) -> Values:
    """The configuration of a job's point, with the same meaning in any folder and among any other points."""
    return {
        **values,
        "store": str(Path(values["store"]).absolute()),
        "python": job.interpreter.python,
        "measure": {**values["measure"], "slopes_every": int(job.slopes)},  # every n-th point of the whole sweep
    }


def _difference(defaults: Values, values: Values) -> Values:
    return {key: value for key, value in values.items() if key not in defaults or defaults[key] != value}


def _text(value: Any) -> str:
    """A value in Hydra's grammar; every text in quotes, so that whatever it holds stays a text."""
    return str(Override._get_value_element_as_str(_quoted(value)))


def _quoted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _quoted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_quoted(each) for each in value]
    return QuotedString(_unreferring(value), Quote.single) if isinstance(value, str) else value


def _unreferring(text: str) -> str:
    """The same text without a reference to another key: what was to be resolved has been resolved."""
    return re.sub(r"(\\*)\$\{", lambda found: 2 * found[1] + r"\${", text)
