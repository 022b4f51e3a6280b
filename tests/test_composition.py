"""runner.composition and the sweeper `grid`: the same points as Hydra's own, and the grids of the ready sweeps."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hydra
import pytest
from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import HydraContext, RunMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf, open_dict

from runner.composition import CONF, Values, compose, composed, plain, with_new_variable
from runner.config import Job
from runner.plan import Plan
from runner.point import DTYPES, PointError


@cache
def configurations(*arguments: str) -> list[Values]:
    """The configurations of a command line, as plain values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["runner", *arguments])
        return list(compose().points)


def hydras(folder: Path, *arguments: str) -> list[Values]:
    """What Hydra composes for a command line with its basic sweeper and launcher."""
    found: list[Values] = []
    given = ["runner", *map(with_new_variable, arguments), "hydra/sweeper=basic", "hydra/launcher=basic"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [*given, f"hydra.sweep.dir={folder}"])
        patch.setenv("HYDRA_FULL_ERROR", "1")
        task = lambda config: found.append(plain(config))  # noqa: E731
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(task)()
    return found


@cache
def context() -> tuple[HydraContext, DictConfig]:
    """What Hydra gives a sweeper, made once: reading the files again costs more than all the rest of a comparison."""
    configurations("size=8")  # Hydra finds plugins once it has been asked for something
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        return HydraContext(loader, Callbacks()), loader.load_configuration("config", [], RunMode.MULTIRUN)


def ours(overrides: list[str]) -> list[Values]:
    """The configurations of a sweep as `grid` and `workers` compose them."""
    hydra_context, config = context()
    from hydra_plugins.crossover.grid import Grid

    grid = Grid({}, [], None)
    grid.setup(hydra_context=hydra_context, task_function=lambda _: None, config=config)
    grid.sweep([with_new_variable(each) for each in overrides])
    return list(composed.points)


def reference(overrides: list[str]) -> list[Values]:
    """The same, composed by what Hydra's basic sweeper and launcher call."""
    hydra_context, config = context()
    loader = hydra_context.config_loader
    parsed = OverridesParser.create(loader).parse_overrides([with_new_variable(each) for each in overrides])
    (points,) = BasicSweeper.split_arguments(parsed, None)
    return [plain(numbered(loader.load_sweep_config(config, each))) for each in points]


def numbered(config: DictConfig) -> DictConfig:
    """The launcher gives each job a number, without which Hydra's own part cannot be resolved."""
    with open_dict(config):
        config.hydra.job.num = 0
    return config


def outcome(compose: Callable[[], list[Values]]) -> list[str]:
    """Configurations as texts, in which 1, 1.0 and true differ and nan is nan; or the kind of error."""
    try:
        return [json.dumps(each, sort_keys=True) for each in compose()]
    except Exception as error:
        return [type(error).__name__]


def jobs(*arguments: str) -> list[Job]:
    """The checked jobs of a command line."""
    return list(Plan(configurations(*arguments)))


OVERRIDES = [
    ["size=64"],
    ["size=64,128"],
    ["size=64,128", "compile=true,false"],
    ["size=range(64,257,64)"],
    ["size=range(3)"],
    ["size=range(10,1,step=-4)"],
    ["measure.target_frac=range(0.1,0.35,0.1)"],
    ["size=choice(8,16)", "batch=null,8"],
    ["size=choice(8)"],
    ["compile=false,true,reduce-overhead"],
    ["workload=glob(matmul_*)"],
    ["workload=glob([a*,e*],exclude=elem*)"],
    ["workload=addmm,elementwise"],
    ["workload=addmm", "workload.bias=1,2"],
    ["workload=elementwise", "workload.ops=1,2", "size=8"],
    ["workload.name=noop"],
    ["measure=quick,thorough", "size=8"],
    ["measure=quick", "measure.limit_s=3"],
    ["measure@profiler=quick"],
    ["warmup=false,3", "schedule=null,0/0/5"],
    ["size=sort(32,8,16)"],
    ["size=sort(8,32,16,reverse=true)"],
    ["seed=tag(a,choice(1))"],
    ["size=tag(a,b,interval(0,1))", "size=8"],
    ["size=shuffle(8)"],
    ["size=int(8.5),16"],
    ["seed=float(1),bool(1)"],
    ["dtype=str(1),str(fp32)"],
    ["store=json_str({a:[1,b]})"],
    ["profiler.with_stack=true,false", "++threads=1", "dtype=fp32"],
    ["+extra=1,2"],
    ["+extra.deep.er=1,2"],
    ["+profiler.more=1"],
    ["++size=8,16"],
    ["++extra=8"],
    ["+size.deep=1"],
    ["+size.deep=1", "++size.deep.er=2,3"],
    ["~size"],
    ["~profiler.with_stack"],
    ["~dtype=auto"],
    ["~measure"],
    ["+extra={a:1,b:{c:2}}", "extra.b.c=3"],
    ["extra.a=2", "+extra={a:1}"],
    ["+extra={a:1}", "extra.a=2"],
    ["+extra={a:1},{b:2}"],
    ["env={A:1}"],
    ["env={A:1}", "env.B=2,3"],
    ["env.A=1,null", "env.B='x y'"],
    ["env.OMP_NUM_THREADS=1,2"],
    ["devices=[0,1]"],
    ["devices=[0],[1],all,null"],
    ["batch=${size},8"],
    ["batch=${size}", "size=4,5"],
    ["seed=${measure.slopes_every}", "measure=quick,thorough"],
    ["store=${oc.env:PATH}"],
    ["store=a${size}b", "size=1,2"],
    ["store='a b','c,d'"],
    ['store="it\'s"'],
    [r"store='it\'s'"],
    [r"store=a\,b"],
    ["store=''"],
    ["store=a:b/c.d-e%f@g+h"],
    ["store=äöü,日本"],
    ["store='${size}'"],
    [r"store='\${size}'"],
    ["store='[1,2]'", "dtype='null'"],
    ["size=null,true,false"],
    ["seed=1.5,-0.0,1e3,1_000,inf"],
    ["seed=nan"],
    ["max_step_s=-1,+2"],
    ["size=8,8"],
    ["size=8", "size=16,32"],
    ["size=16,32", "seed=1", "size=8"],
    ["size=8", "+size=16"],
    ["size=8", "++size=16"],
    ["seed=1,2", "~seed"],
    ["workload=noop", "workload=addmm"],
]


@pytest.mark.parametrize("overrides", OVERRIDES, ids=" ".join)
def test_a_sweep_has_the_points_of_hydras_sweeper(overrides: list[str]) -> None:
    """The same configurations, in the same order."""
    assert outcome(lambda: ours(overrides)) == outcome(lambda: reference(overrides))


COMMANDS = [
    ["size=8,16", "compile=true,false", "+extra={a:1}"],
    ["workload=glob(*add*)", "measure=quick", "env.A='x y'"],
    ["batch=${size}", "size=4,5", "hydra.job.num=3"],
    ["size=8", "nope=1"],
]


@pytest.mark.parametrize("overrides", COMMANDS, ids=" ".join)
def test_a_command_has_the_points_of_hydras_command(tmp_path: Path, overrides: list[str]) -> None:
    """The same from the command line on, with Hydra's own launcher running what it composed."""
    assert outcome(lambda: configurations("-m", *overrides)) == outcome(lambda: hydras(tmp_path, "-m", *overrides))


WRONG = [
    ["nope=1"],
    ["size=8", "nope=1,2"],
    ["~nope"],
    ["~size=3"],
    ["workload=nope,addmm"],
    ["workload=addmm,noop", "workload.bias=1"],
    ["workload.nope=1"],
    ["measure.limit_s.deep=1"],
    ["size=${nope}"],
    ["size=${oc.env:NO_SUCH_VARIABLE}"],
    ["size=interval(1,2)"],
    ["size=nope(1)"],
    ["size=[1"],
    ["size='8"],
    ["size"],
    ["=8"],
    ["experiment=first"],
    ["+experiment=nope"],
    ["extra={a:1}"],
]


@pytest.mark.parametrize("overrides", WRONG, ids=" ".join)
def test_what_hydra_refuses_is_refused_in_its_words(overrides: list[str]) -> None:
    """The same kind of error, and no configuration, for whatever is wrong with an override."""
    (kind,) = outcome(lambda: ours(overrides))
    assert [kind] == outcome(lambda: reference(overrides))
    assert kind.isidentifier()


SIMPLE = ["1", "0", "-3", "2.5", "1e3", "true", "null", "abc", "a b", "a-b_c", "x:y", "1_0", "${size}", "${seed}x"]
KEYS = [
    "size",
    "+new",
    "++new",
    "new",
    "dtype",
    "measure.limit_s",
    "++measure.more",
    "+env.A",
    "~batch",
    "env",
    "store",
]
QUOTED = st.text("ab ,[]{}()=:+~'\"\\$%é", max_size=6).map(lambda text: "'" + text.replace("'", "\\'") + "'")
ELEMENTS = st.one_of(st.sampled_from(SIMPLE), QUOTED, st.sampled_from(["[1,a]", "{a:1}", "{a:{b:null}}", "[]", "{}"]))
RANDOM = st.lists(
    st.one_of(
        st.builds(
            lambda key, values: f"{key}={','.join(values)}",
            st.sampled_from(KEYS),
            st.lists(ELEMENTS, min_size=1, max_size=2),
        ),
        st.sampled_from(["workload=addmm", "workload=addmm,noop", "measure=quick", "profiler=default"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=25, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
@given(overrides=RANDOM)
def test_any_overrides_have_the_points_of_hydras_sweeper(overrides: list[str]) -> None:
    """Whatever is set, in whatever order: the same configurations, or the same kind of error."""
    assert outcome(lambda: ours(overrides)) == outcome(lambda: reference(overrides))


def test_shuffle_gives_its_values_in_some_order() -> None:
    """Hydra's shuffle has no seed, so that the order alone is free."""
    found = configurations("-m", "size=shuffle(range(1,9))", "seed=1,2")
    assert Counter((each["size"], each["seed"]) for each in found) == Counter(
        (n, s) for n in range(1, 9) for s in (1, 2)
    )


def test_a_million_points_are_made_only_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is known, and each can be had by its place, in the order of a product: the last axis fastest."""
    monkeypatch.setattr(sys, "argv", ["runner", "-m", "size=range(1,1001)", "seed=range(1000)"])
    tracemalloc.start()
    points = compose().points
    assert len(points) == 10**6
    assert [(points[place]["size"], points[place]["seed"]) for place in (0, 999, 1000, 999_999)] == [
        (1, 0), (1, 999), (2, 0), (1000, 999),
    ]  # fmt: skip
    assert len(points[5:10]) == 5
    with pytest.raises(IndexError):
        points[10**6]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6  # a list of all override lists takes more than 100 MB


def test_a_product_has_its_elements_by_place() -> None:
    """As itertools.product gives them; a slice too, and no element beyond the last."""
    context()
    from hydra_plugins.crossover.grid import Product

    axes = [["a", "b"], ["c"], ["d", "e", "f"]]
    product = Product(axes)
    assert list(product) == list(itertools.product(*axes))
    assert list(product[1:5:2]) == list(itertools.product(*axes))[1:5:2]
    assert len(Product([["a"], []])) == 0
    assert len(Product([range(10)] * 12)) == 10**12


def test_configurations_are_apart_from_each_other() -> None:
    """What a reader does to one reaches no other."""
    points = configurations("-m", "size=8,16")
    points[0]["measure"]["limit_s"] = 99
    points[0]["env"]["A"] = 1
    assert points[1]["measure"]["limit_s"] == 1 and points[1]["env"] == {}


def test_a_ready_sweep_has_the_points_of_hydras_sweeper(tmp_path: Path) -> None:
    """A preset's own parameters, some of them given again on the command line, expand as they do in Hydra."""
    overrides = ["+experiment=first", "size=8,16"]
    assert configurations(*overrides) == hydras(tmp_path, *overrides)


def test_no_sweep_is_one_point() -> None:
    """Without -m there is one configuration, with the defaults of conf/config.yaml."""
    (only,) = plan = Plan(configurations("size=64"))
    assert (only.point.workload, only.point.size, only.point.batch) == ("matmul_add", 64, None)
    assert plan.settings.store == Path("outputs/store")


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


def test_the_truth_covers_what_there_is() -> None:
    """150 points or more, none twice, slopes at each: every workload below a layer, every dtype, eager and compiled."""
    found = jobs("+experiment=truth")
    points = [each.point.resolved("cuda") for each in found]
    assert len(points) == len({each.point_id for each in points}) >= 150
    assert all(each.slopes for each in found)
    assert {each.workload for each in points} == {"matmul_add", "matmul_item", "addmm", "elementwise", "intensity"}
    assert {each.dtype for each in points} == set(DTYPES)
    assert Counter(each.compile is False for each in points)[False] >= 40
    assert {each.batch for each in points} == {None, 8}


def test_the_truth_on_a_cpu_is_of_the_cpu_alone() -> None:
    """The same workloads in fp32, slopes (there: twice the work) at each."""
    found = jobs("+experiment=truth_cpu")
    assert {(each.point.device, each.point.dtype, each.slopes) for each in found} == {("cpu", "fp32", True)}
    assert {each.point.workload for each in found} == {each.point.workload for each in jobs("+experiment=truth")}


def test_interventions_change_one_thing_at_a_time() -> None:
    """FLOPs and bytes of one workload, all combinations of them, nothing else."""
    points = [each.point for each in jobs("+experiment=interventions")]
    assert {(each.workload, each.size, each.dtype, each.compile) for each in points} == {
        ("intensity", 65536, "fp32", True)
    }
    assert len({each.params for each in points}) == len(points) == 12


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
    with pytest.raises(PointError, match="store=a,b: allowed is one value a sweep"):
        jobs("-m", "store=a,b")


def test_a_list_of_points_is_a_sweep_without_m() -> None:
    """Each of its points wins over the rest of the command line; swept, it would be a sweep of sweeps."""
    found = jobs("points=[{size:8},{workload:{name:noop},seed:2}]", "dtype=fp32", "seed=1")
    assert [(each.point.workload, each.point.size, each.point.seed) for each in found] == [
        ("matmul_add", 8, 1), ("noop", None, 2),
    ]  # fmt: skip
    with pytest.raises(PointError, match=r"^points: a list of points is a sweep of its own; leave out -m\.$"):
        jobs("-m", "points=[{size:8},{size:16}]")


def test_a_wrong_value_anywhere_refuses_all() -> None:
    """The last of many points is checked before the first one could run."""
    with pytest.raises(PointError, match="size=x"):
        jobs("-m", "size=8,16,x")
