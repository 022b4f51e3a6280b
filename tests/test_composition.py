"""runner.composition and the sweeper `grid`: the same points as Hydra's own, and the grids of the ready sweeps."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from runner.composition import CONF, compose
from runner.config import Job
from runner.launch import checked
from runner.point import PointError


@cache
def composed(*arguments: str) -> tuple[DictConfig, ...]:
    """What Hydra composes for a command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["runner", *arguments])
        return tuple(compose())


def configurations(*arguments: str) -> list[dict[str, Any]]:
    """The configurations of a command line, as plain values."""
    return [dict(OmegaConf.to_container(config, resolve=True)) for config in composed(*arguments)]  # type: ignore[arg-type]


def jobs(*arguments: str) -> list[Job]:
    """The checked jobs of a command line."""
    return checked(composed(*arguments))


OVERRIDES = [
    ["size=64"],
    ["size=64,128"],
    ["size=64,128", "compile=true,false"],
    ["size=range(64,257,64)"],
    ["size=choice(8,16)", "batch=null,8"],
    ["compile=false,true,reduce-overhead"],
    ["workload=glob(matmul_*)"],
    ["workload=addmm,elementwise"],
    ["workload=addmm", "workload.bias=1,2"],
    ["measure=quick,thorough", "size=8"],
    ["warmup=false,3", "schedule=null,0/0/5"],
    ["size=sort(32,8,16)", "seed=tag(a,choice(1))"],
    ["profiler.with_stack=true,false", "++threads=1", "dtype=fp32"],
]


@pytest.mark.parametrize("overrides", OVERRIDES, ids=" ".join)
def test_a_sweep_has_the_points_of_hydras_sweeper(tmp_path: Path, overrides: list[str]) -> None:
    """The basic sweeper with the basic launcher composes the same configurations, in the same order."""
    ours = configurations("-m", *overrides)
    basic = ["hydra/sweeper=basic", "hydra/launcher=basic", f"hydra.sweep.dir={tmp_path}"]
    assert ours == configurations("-m", *basic, *overrides)
    assert all("hydra" not in each for each in ours)


def test_a_ready_sweep_has_the_points_of_hydras_sweeper(tmp_path: Path) -> None:
    """A preset's own parameters, some of them given again on the command line, expand as they do in Hydra."""
    overrides = ["+experiment=first", "size=8,16"]
    basic = ["hydra/sweeper=basic", "hydra/launcher=basic", f"hydra.sweep.dir={tmp_path}"]
    assert configurations(*overrides) == configurations(*overrides, *basic)


def test_no_sweep_is_one_point() -> None:
    """Without -m there is one configuration, with the defaults of conf/config.yaml."""
    (only,) = jobs("size=64")
    assert (only.point.workload, only.point.size, only.point.batch, only.store) == (
        "matmul_add", 64, None, Path("outputs/store"),
    )  # fmt: skip


def test_a_sweep_of_one_value_is_the_single_point() -> None:
    """-m or not, the same values are the same configuration."""
    assert configurations("-m", "size=64") == configurations("size=64")


def test_first_goes_over_powers_of_two() -> None:
    """8 to 8,192, eager and compiled; a step beyond a quarter of a second is not measured."""
    found = jobs("+experiment=first")
    assert sorted({each.point.size for each in found}) == [2**power for power in range(3, 14)]
    assert Counter(each.point.compile for each in found) == {False: 11, True: 11}
    assert {each.max_step_s for each in found} == {0.25}


def test_the_article_has_44_points() -> None:
    """A union of grids without a point twice; schedules only without a batch and for matmul_add."""
    points = [each.point.resolved("cuda") for each in jobs("+experiment=article")]
    assert len(points) == len({each.point_id for each in points}) == 44
    assert {each.size for each in points} == {64, 4096}
    scheduled = [each for each in points if str(each.schedule) in ("0/0/3/1", "0/0/20/1") and not each.cold]
    assert len(scheduled) == 8
    assert {(each.workload, each.batch) for each in scheduled} == {("matmul_add", None)}
    assert {each.compile for each in points} == {
        False, True, "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",
    }  # fmt: skip
    assert Counter(each.workload for each in points) == {"matmul_add": 36, "addmm": 8}
    assert {each.params for each in points if each.workload == "addmm"} == {(("bias", 1),), (("bias", 2),)}


def test_the_article_on_a_cpu_differs_in_its_sizes_alone() -> None:
    """article_cpu is article at sizes that a CPU can bear."""
    full, small = (OmegaConf.load(CONF / "experiment" / f"{name}.yaml") for name in ("article", "article_cpu"))
    assert small.hydra.sweeper.params.pop("size") == "16,512"
    assert full.hydra.sweeper.params.pop("size") == "64,4096"
    assert full == small


def test_cold_points_of_the_article_are_eager_and_compiled() -> None:
    """Every compile mode is measured warm; cold ones only eager and compile=true."""
    points = [each.point for each in jobs("+experiment=article")]
    assert {(each.compile, each.batch) for each in points if each.cold} == {
        (False, None), (True, None), (False, 8), (True, 8),
    }  # fmt: skip


def test_the_command_line_wins_over_a_ready_sweep() -> None:
    """What is given again replaces the preset's value in every grid, and no point comes twice."""
    found = jobs("+experiment=article", "size=128", "batch=null", "warmup=true")
    assert {(each.point.size, each.point.batch, each.point.warmup) for each in found} == {(128, None, True)}
    assert len(found) == len({each.point for each in found})


def test_a_ready_sweep_takes_further_axes() -> None:
    """An axis that the preset does not name multiplies its points."""
    found = jobs("+experiment=first", "size=8", "dtype=fp32,bf16")
    assert Counter(each.point.dtype for each in found) == {"fp32": 2, "bf16": 2}


@pytest.mark.parametrize("names", ["first,article", "choice(first,article)"])
def test_two_ready_sweeps_at_once_are_refused(names: str) -> None:
    """Each brings its own axes, and Hydra would drop them without a word."""
    with pytest.raises(HydraException, match="one ready sweep a command"):
        configurations("-m", f"+experiment={names}")


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("+bathc=8", "bathc: there is no such key"),
        ("~size", "size: it is missing; leave out ~size"),
        ("+measure.rounds=3", "measure.rounds: there is no such key"),
        ("~profiler.with_stack", "profiler.with_stack: it is missing"),
        ("measure.target_frac=0", "measure.target_frac=0: allowed is a number above 0"),
        ("measure.limit_s=-1", "measure.limit_s=-1: allowed is a number above 0"),
        ("measure.slopes_every=1.5", "measure.slopes_every=1.5: allowed is a whole number"),
        ("max_step_s=null", "max_step_s=None: allowed is a number above 0"),
        ("artifacts=yes", "artifacts=yes: allowed is true or false"),
        ("profiler.with_stack=2", "profiler.with_stack=2: allowed is true or false"),
        ("store=''", "store='': allowed is the path of a folder"),
    ],
)
def test_settings_are_checked_too(argument: str, sentence: str) -> None:
    """A setting that nobody reads, or that has no meaning, is refused with its name."""
    with pytest.raises(PointError) as refusal:
        jobs(argument)
    assert str(refusal.value).startswith(sentence)


def test_a_sweep_has_one_store() -> None:
    """Two folders in one command are refused; nothing would say which run lies where."""
    with pytest.raises(PointError, match="store=a,b: allowed is one folder a sweep"):
        jobs("-m", "store=a,b")


def test_a_wrong_value_anywhere_refuses_all() -> None:
    """The last of many points is checked before the first one could run."""
    with pytest.raises(PointError, match="size=x"):
        jobs("-m", "size=8,16,x")
