"""What is asked of a warm step when its times and its profile have been taken: what it costs, who holds its memory, and
whether its results are right. Nothing of it may come before, since each leaves traces in caches and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from runner import counting, holders, numerics
from runner.device import Device
from runner.point import Point
from runner.task import Measurement, Task
from runner.workloads import Built

Step = Callable[[], Any]


def examined(done: Measurement, step: Step, built: Built, task: Task, device: Device) -> Measurement:
    """The answer with facts.cost, .phase_memory, .memory_sums, .train and .numerics as far as they apply to the point;
    a wrong result is a failed point, however fast. Called in the point's settings."""
    done.facts.update(_cost(built, task.point, done.facts))
    done.facts.update(_memory(step, built, task, device))
    walls = [sample.value for sample in done.samples if sample.quantity == "wall"]
    found = numerics.check(task.point, built, min(walls, default=None), done.facts.get("peak_bytes"), device)
    done.facts["numerics"] = asdict(found)
    if found.passed is False:
        return replace(done, status="failed", reason=f"numerics: {found.reason}")
    return done


def _cost(built: Built, point: Point, facts: Mapping[str, Any]) -> dict[str, Any]:
    """facts.cost of a step whose workload has no cost model: a step of the user's own, an unknown language model."""
    if point.spec.idle or point.spec.cost(point) is not None:
        return {}
    try:
        return {"cost": counting.cost_of(built, point.compile is not False, point.dtype)}
    except Exception as error:
        why = f"not counted: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return {"reasons": {**facts.get("reasons", {}), "cost": why}}


def _memory(step: Step, built: Built, task: Task, device: Device) -> dict[str, Any]:
    """Who holds memory, by a pass of its own: for steps with a module, and for all with profile_memory=true.

    A training step's facts.train says as well what it would hold with this or that cure, by arithmetic.
    """
    roots = (built.function, *built.arguments)
    if not (task.recorder.profile_memory or holders.holds_module(roots)):
        return {}
    predicted = task.point.spec.predicted(task.point)
    return {**holders.watched(step, roots, device), **({"train": predicted} if predicted else {})}
