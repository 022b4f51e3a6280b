"""Steps of the user's own: what may be named, what is read, what is run, and how its errors are told."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import job, values
from sweeps import swept

from runner import custom, measure
from runner.config import Job, Settings
from runner.device import Cpu
from runner.point import Point, PointError
from runner.rounds import Target
from runner.task import Recorder, Task

ROOT = Path(__file__).parent.parent
BENCH = """
import torch
from beside import SCALE

def build(point):
    x = torch.randn(point.size, dtype=point.dtype, device=point.device)
    return torch.mul, (x, SCALE)

def closure(point):
    x = torch.ones(point.size)
    return lambda: x + 1

def module(point):
    return torch.nn.Linear(point.size, 3), [torch.ones(2, point.size)]

def alone(point):
    return torch.ones(1)

def triple(point):
    return torch.add, torch.ones(1), torch.ones(1)

def raises(point):
    raise KeyError("no such shape")

def step_raises(point):
    def step(x):
        return x @ torch.ones(7)
    return step, (torch.ones(3),)
"""
RAISES, STEP_RAISES = 23, 27
"""Lines at which these two raise."""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A file of steps that imports another one beside it."""
    (tmp_path / "beside.py").write_text("SCALE = 2.0\n")
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path / "bench.py"


def point(target: object, **changes: Any) -> Point:
    """The point of a target, as the command line makes it."""
    return Point.checked(values(workload={"name": "custom", "target": target}, dtype="fp32", device="cpu", **changes))


def measured(given: Point, folder: Path) -> Any:
    """What a worker answers when it takes the times alone."""
    return measure.measure_times(
        Task(given, Target("test", 1.0, 0.01), 5.0, True, Recorder(), False, {}, str(folder)), Cpu()
    )


# -- what may be named ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (None, "workload.target=null: allowed is path/to/file.py:build or package.module:build"),
        ("{bench}", "allowed is path/to/file.py:build or package.module:build"),
        ("{bench}:", "allowed is path/to/file.py:build or package.module:build"),
        ("{bench}:a-b", "allowed is path/to/file.py:build or package.module:build"),
        ("nothing/here.py:build", "workload.target=nothing/here.py:build: there is no such file; for example"),
        ("no_such_package.module:build", "no such module is found, nor its source"),
        ("math:sqrt", "no such module is found, nor its source"),
        ("{bench}:Nope", "bench.py defines no Nope at its top level"),
        ("{bench}:x", "bench.py defines no x at its top level"),
        ("{folder}/broken.py:build", "broken.py:2: SyntaxError: "),
    ],
)
def test_a_wrong_target_is_refused_before_anything_runs(target: str | None, told: str, bench: Path) -> None:
    """One sentence: what came, what is wrong with it, an example."""
    (bench.parent / "broken.py").write_text("\ndef build(point)\n")
    given = target.format(bench=bench, folder=bench.parent) if target else target
    with pytest.raises(PointError) as refused:
        point(given)
    assert told in str(refused.value) and str(refused.value).endswith("path/to/file.py:build.")


def test_the_file_is_read_and_not_run(tmp_path: Path) -> None:
    """Checking a file that would end the process, and a module in a package that would."""
    (tmp_path / "ends.py").write_text("import sys\ndef build(point): ...\nsys.exit(9)\n")
    package = tmp_path / "package_that_ends"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nsys.exit(9)\n")
    (package / "steps.py").write_text("build = print\n")
    check = (
        "import sys; from runner import custom; "
        f"print(custom.checked('{tmp_path}/ends.py:build'), custom.checked('package_that_ends.steps:build')); "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [f"{tmp_path}/ends.py:build", "package_that_ends.steps:build"]


def test_names_are_found_wherever_a_module_defines_them(tmp_path: Path) -> None:
    """Functions, classes, values, imports, under if, try and with; not what a function holds."""
    (tmp_path / "names.py").write_text(
        "from a import b as c, d\nimport e.f\nx: int = 1\ny, (z, w) = 1, (2, 3)\n"
        "try:\n    import g\nexcept ImportError:\n    g1 = None\nelse:\n    g2 = 1\n"
        "if x:\n    def h(): inner = 1\nelse:\n    class K: attribute = 1\nwith open(x):\n    k = u\n"
    )
    for name in ("c", "d", "e", "x", "y", "z", "w", "g", "g1", "g2", "h", "K", "k"):
        assert custom.checked(f"{tmp_path}/names.py:{name}")
    for name in ("a", "b", "f", "inner", "attribute", "u"):
        with pytest.raises(custom.TargetError):
            custom.checked(f"{tmp_path}/names.py:{name}")


def test_a_path_below_the_folder_is_stored_relative(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is written, one file is one point, and its text holds no folder of the machine."""
    monkeypatch.chdir(bench.parent)
    written = [
        "bench.py:build",
        "./bench.py:build",
        f"{bench}:build",
        f"{bench.parent}/../{bench.parent.name}/bench.py:build",
    ]
    assert {point(each).params for each in written} == {(("target", "bench.py:build"),)}
    assert len({point(each).point_id for each in written}) == 1


def test_a_changed_file_is_another_point(tmp_path: Path) -> None:
    """The id holds the file's text; a command reads it once, so the second file stands for a second command."""
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bench.py").write_text(f"def build(point): return {folder!r}\n")
    ids = {custom.source(f"{tmp_path}/{folder}/bench.py:build") for folder in ("before", "after")}
    assert len(ids) == 2
    other = point(f"{tmp_path}/before/bench.py:build")
    assert other.point_id != replace(other, size=8).point_id


def test_inputs_that_rotate_are_refused(bench: Path) -> None:
    """l2=cold needs inputs that the runner makes."""
    with pytest.raises(PointError, match="l2=cold: allowed is warm, since custom makes its inputs itself"):
        point(f"{bench}:build", l2="cold")


# -- what is run ------------------------------------------------------------------------------------------------------


def test_build_is_told_the_point_in_torchs_words(bench: Path) -> None:
    """A size, a torch dtype, a torch device; inputs are the same at every run, the file beside is importable."""
    given = replace(point(f"{bench}:build", size=5), dtype="bf16")
    made = custom.build(f"{bench}:build", given)
    function, (x, scale) = made.function, made.arguments
    again = custom.build(f"{bench}:build", given).arguments[0]
    assert function is torch.mul and scale == 2.0
    assert (x.shape, x.dtype, x.device.type) == ((5,), torch.bfloat16, "cpu")
    assert torch.equal(x, again)


@pytest.mark.parametrize("name", ["build", "closure", "module"])
def test_a_step_is_a_function_with_its_arguments_or_without_any(name: str, bench: Path, tmp_path: Path) -> None:
    """On the CPU: wall, no floor, and no bound."""
    done = measured(point(f"{bench}:{name}", size=4), tmp_path)
    assert done.status == "ok", done.reason
    assert {sample.quantity for sample in done.samples} == {"wall"}
    assert "no size at which it is known to do nothing" in done.facts["reasons"]["floor_us"]
    assert done.traces == ()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("alone", "TypeError: {bench}:alone returned Tensor; it must return a function and a tuple of its arguments"),
        ("triple", "returned (builtin_function_or_method, Tensor, Tensor); it must return"),
        ("raises", f"{{bench}}:{RAISES}: KeyError: 'no such shape'"),
        ("step_raises", f"{{bench}}:{STEP_RAISES}: RuntimeError: "),
    ],
)
def test_errors_name_the_line_of_the_users_file(name: str, told: str, bench: Path, tmp_path: Path) -> None:
    """A failed point whose reason begins with the place, when building and in the step itself."""
    done = measured(point(f"{bench}:{name}", size=4), tmp_path)
    assert done.status == "failed"
    assert told.format(bench=bench) in done.reason


def test_a_file_that_ends_the_process_is_an_error(tmp_path: Path) -> None:
    """The worker lives on."""
    (tmp_path / "ends.py").write_text("import sys\ndef build(point): ...\nsys.exit(9)\n")
    done = measured(point(f"{tmp_path}/ends.py:build"), tmp_path)
    assert done.status == "failed"
    assert "ends.py ends the process (exit code 9) when it is imported" in done.reason
    (tmp_path / "late.py").write_text("def build(point):\n    raise SystemExit(3)\n")
    late = measured(point(f"{tmp_path}/late.py:build"), tmp_path)
    assert late.status == "failed" and "late.py:build ends the process (exit code 3)" in late.reason


def test_arguments_are_handed_out_once(bench: Path) -> None:
    """Nothing of a point stays alive in the description of its workload."""
    given = point(f"{bench}:build", size=4)
    built = given.spec.build(given, torch.device("cpu"), torch.Generator(), lambda function: function)
    alive = weakref.ref(next(each for each in built.arguments if isinstance(each, torch.Tensor)))
    assert alive() is not None
    del built
    gc.collect()
    assert alive() is None


def test_a_sweep_stores_its_points_and_resumes(bench: Path, tmp_path: Path) -> None:
    """Workload custom, the target among the params, a line a point; the same command measures nothing again."""
    asked = ("workload=custom", f"workload.target={bench}:build", "size=4,8", "measure=quick")
    done = swept(tmp_path / "store", *asked)
    assert done.code == 0, done.stderr
    assert [(row["workload"], row["size"], row["status"]) for row in done.rows] == [
        ("custom", 4, "ok"),
        ("custom", 8, "ok"),
    ]
    assert {json.loads(row["params"])["target"] for row in done.rows} == {f"{bench}:build"}
    again = swept(tmp_path / "store", *asked)
    assert again.code == 0 and "Nothing is left to measure" in again.stdout


def test_jobs_know_their_target_by_name(bench: Path) -> None:
    """The label tells two targets apart."""
    labels = [job(workload={"name": "custom", "target": f"{bench}:{name}"}).label for name in ("build", "module")]
    assert labels == [f"custom target={bench}:{name} size=1024 fp32 eager" for name in ("build", "module")]


# -- keywords are axes -------------------------------------------------------------------------------------------------

AXES = """
import functools, torch

def build(point, heads=8, impl="sdpa", *, shape=(1, 2), scale=2 ** 0.5, flag=None):
    return torch.add, (torch.ones(heads), 1.0)

def needs(point, heads):
    return torch.add, (torch.ones(heads), 1.0)

def anything(point, **keywords):
    return torch.add, (torch.ones(keywords["heads"]), 1.0)

def collides(point, batch=4):
    return torch.add, (torch.ones(batch), 1.0)

def sees(point, shape=()):
    raise ValueError(repr(shape))
"""


@pytest.fixture
def axes(tmp_path: Path) -> Path:
    """A file of steps with keywords."""
    (tmp_path / "axes.py").write_text(AXES)
    return tmp_path / "axes.py"


def own(target: str, group: dict[str, Any] | None = None, **top: Any) -> Point:
    """The point of a target with keywords, given beside `size` or in the workload's group."""
    return job(workload={"name": "custom", "target": target, **(group or {})}, **top).point


def test_keywords_are_axes_wherever_they_are_given(axes: Path) -> None:
    """On top or in the group: one point; one that is not given has its default, one that is computed is left out."""
    default, given = own(f"{axes}:build"), own(f"{axes}:build", heads=16, impl="naive")
    assert dict(default.params) == {
        "target": f"{axes}:build", "heads": 8, "impl": "sdpa", "shape": (1, 2), "flag": None,
    }  # fmt: skip
    assert given == own(f"{axes}:build", {"heads": 16, "impl": "naive"})
    assert own(f"{axes}:build", heads=8).point_id == default.point_id != given.point_id
    assert "heads=16 impl=naive" in given.label and given.axes["params"]["heads"] == 16


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("build", {"hedas": 8}, "whose keywords are flag, heads, impl, scale, shape; leave it out"),
        ("needs", {}, "heads: {file}:needs needs a value for it; for example +heads=1"),
        ("needs", {"heads": {"a": 1}}, "allowed are numbers, words, true, false, null and lists of them"),
        ("collides", {}, "collides has a keyword batch, which every point has already; read point.batch"),
        ("build", {"heads": float("nan")}, "allowed are numbers, words, true, false, null and lists of them"),
    ],
)
def test_a_wrong_keyword_is_refused_before_anything_runs(
    name: str, given: dict[str, Any], told: str, axes: Path
) -> None:
    """One sentence, with the keywords that there are."""
    with pytest.raises(PointError) as refused:
        own(f"{axes}:{name}", **given)
    assert told.format(file=axes) in str(refused.value)


def test_a_keyword_that_is_given_twice_is_refused(axes: Path) -> None:
    """On top and in the group."""
    with pytest.raises(PointError, match=r"heads=8: it is given twice; leave out workload\.heads"):
        own(f"{axes}:build", {"heads": 4}, heads=8)


def test_other_workloads_take_no_further_key() -> None:
    """Only a function of the user's own has keywords."""
    with pytest.raises(PointError, match="heads: there is no such key"):
        job(heads=8)


def test_what_has_no_name_for_its_caller_keeps_its_default(tmp_path: Path) -> None:
    """It is no axis: handed over by its name, it would be an error."""
    (tmp_path / "own.py").write_text(
        "import torch\ndef build(point, a=2, /, b=3, *, c=4): return torch.add, (torch.ones(a, b), c)\n"
    )
    target = f"{tmp_path}/own.py:build"
    assert custom.keywords(target) == {"b": 3, "c": 4}
    assert custom.build(target, point(target)).arguments[0].shape == (2, 3)


def test_a_function_that_takes_any_keyword_gets_them(axes: Path, tmp_path: Path) -> None:
    """The file does not say which there are."""
    assert measured(own(f"{axes}:anything", heads=3), tmp_path).status == "ok"
    missing = measured(own(f"{axes}:anything"), tmp_path)
    assert missing.status == "failed" and "KeyError: 'heads'" in missing.reason


def test_a_list_arrives_as_a_list(axes: Path, tmp_path: Path) -> None:
    """As it was written."""
    assert "ValueError: [2, [3]]" in measured(own(f"{axes}:sees", shape=[2, [3]]), tmp_path).reason


def test_a_search_may_go_over_a_keyword(axes: Path) -> None:
    """Given on top, in the group, or nowhere."""
    search = {"axis": "heads", "low": 1, "high": 64}
    given = values(workload={"name": "custom", "target": f"{axes}:build"}, search=search, dtype="fp32", device="cpu")
    checked = Settings.checked(given).search
    assert checked is not None
    for changed in (given, {**given, "heads": 2}, {**given, "workload": {**given["workload"], "heads": 2}}):
        found = Job.checked(checked.at(changed, 32)).point
        assert dict(found.params)["heads"] == 32 == checked.place(found)
    with pytest.raises(PointError, match=r"search\.axis=heads: allowed is size, batch, threads"):
        checked.at(values(), 32)


# -- the worked example ------------------------------------------------------------------------------------------------


def test_the_worked_example_runs(tmp_path: Path) -> None:
    """docs/custom.md: eight points, keywords among the params, FLOPs counted, both ways to the same result."""
    target = "workload.target=docs/examples/heads.py:build"
    done = swept(
        tmp_path / "store", "workload=custom", target, "size=16", "+heads=4,8", "+impl=naive,sdpa", "measure=quick",
        "threads=1",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    seen = [(each["heads"], each["impl"]) for each in (json.loads(row["params"]) for row in done.rows)]
    assert sorted(seen) == [(4, "naive"), (4, "sdpa"), (8, "naive"), (8, "sdpa")]
    costs = [done.facts(place)["cost"] for place in range(4)]
    assert {each["source"] for each in costs} == {"counted"}
    products = 2 * 2 * 16 * 16 * 512
    for (_, impl), cost in zip(seen, costs, strict=True):
        flops = sum(each["flops"] for each in cost["operations"])
        assert flops == products if impl == "sdpa" else products <= flops < 1.1 * products
