"""runner.config: the one door for every value of a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from configured import DEFAULTS, job, values
from omegaconf import OmegaConf

from runner.composition import CONF, expanded
from runner.config import Job, Settings
from runner.point import PointError
from runner.task import Interpreter


def settings(**changes: Any) -> Settings:
    """The checked settings of the defaults with some changed."""
    return Settings.checked(values(**changes))


REFUSED: list[tuple[str, Any, str]] = [
    ("devices", -1, "devices=-1: allowed is null (the first), all, or a list of numbers; for example devices=[0,2]."),
    ("devices", [0, 0], "devices=[0, 0]: allowed is"),
    ("devices", [0, -1], "devices=[0, -1]: allowed is"),
    ("devices", [], "devices=[]: allowed is"),
    ("devices", "first", "devices=first: allowed is"),
    ("devices", True, "devices=True: allowed is"),
    ("devices", [1.0], "devices=[1.0]: allowed is"),
    ("wait", None, "wait=None: allowed is true or false; for example wait=true."),
    ("order", "random", "order=random: allowed is shuffled, given; for example order=shuffled."),
    ("order", True, "order=True: allowed is"),
    ("order", [], "order=[]: allowed is"),
    ("order_seed", -1, "order_seed=-1: allowed is a whole number from 0 on; for example order_seed=8."),
    ("order_seed", 1.0, "order_seed=1.0: allowed is"),
    ("rerun", 1, "rerun=1: allowed is true or false"),
    ("dry_run", "yes", "dry_run=yes: allowed is true or false"),
    ("on_error", "maybe", "on_error=maybe: allowed is continue, stop; for example on_error=continue."),
    ("on_error", None, "on_error=None: allowed is"),
    ("skip_after_oom", 0, "skip_after_oom=0: allowed is true or false"),
    ("recycle_after", 0, "recycle_after=0: allowed is a whole number from 1 on; for example recycle_after=8."),
    ("recycle_after", True, "recycle_after=True: allowed is"),
    (
        "memory_limit_gb",
        0,
        "memory_limit_gb=0: allowed is null or a number from 0.5 to 1e6; for example memory_limit_gb=8.",
    ),
    ("memory_limit_gb", "2", "memory_limit_gb=2: allowed is"),
    ("store", "", "store='': allowed is the path of a folder; for example store=outputs/store."),
    ("store", None, "store=None: allowed is"),
    ("store", 3, "store=3: allowed is"),
    ("points", [{"size": 8}], "points: a list of points is a sweep of its own; leave out -m."),
    ("point_timeout", 0, "point_timeout=0: allowed is a number above 0; for example point_timeout=1."),
    ("point_timeout", None, "point_timeout=None: allowed is a number above 0"),
    ("point_timeout", float("nan"), "point_timeout=nan: allowed is"),
    ("max_step_s", float("inf"), "max_step_s=inf: allowed is a number above 0"),
    ("artifacts", "yes", "artifacts=yes: allowed is true or false"),
    ("python", "nope", "python=nope: allowed is null or a Python that can be run; for example python=.venv/bin/py"),
    ("python", 3, "python=3: allowed is null or a Python"),
    ("python", "", "python=: allowed is null or a Python"),
    ("env", None, "env=None: allowed are variables by name; for example env.OMP_NUM_THREADS=1."),
    ("env", {"A": [1]}, "env.A=[1]: allowed is a text or a number; for example env.OMP_NUM_THREADS=1."),
    ("env", {"A": {"b": 1}}, "env.A={'b': 1}: allowed is"),
    ("env", {"1A": "x"}, "env.1A=x: allowed is"),
    ("env", {"A B": "x"}, "env.A B=x: allowed is"),
    ("measure", "quick", "measure=quick: allowed is a group; see conf/measure."),
    ("search", "size", "search=size: allowed is a group; see conf/config.yaml."),
    ("measure", {"slopes_every": -1}, "measure.slopes_every=-1: allowed is a whole number from 0 on"),
    ("measure", {"rounds": 3}, "measure.rounds: there is no such key; allowed are name, target_frac, limit_s"),
    ("profiler", {"with_stack": 2}, "profiler.with_stack=2: allowed is true or false"),
    ("sizes", 3, "sizes: there is no such key; allowed are workload, size"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), REFUSED, ids=[f"{key}={value}" for key, value, _ in REFUSED])
def test_a_wrong_value_is_one_sentence(key: str, value: Any, sentence: str) -> None:
    """What came, what is allowed, and an example or the cure."""
    with pytest.raises(PointError) as refusal:
        Job.checked(values(**{key: value}))
        settings(**{key: value})
    told = str(refusal.value)
    assert told.startswith(sentence)
    assert told.endswith(".") and "\n" not in told


@pytest.mark.parametrize("points", [3, [], [3], {}, "x", [[]]])
def test_points_are_a_list_of_mappings(points: Any) -> None:
    """Anything else is refused with what came and an example."""
    with pytest.raises(ValueError, match=r"^points=.*: allowed is null or a list of mappings; for example points=\["):
        expanded(values(points=points))


@pytest.mark.parametrize("key", [key for key in DEFAULTS if key != "points"])
def test_a_missing_key_is_told(key: str) -> None:
    """One taken away with `~`."""
    given = values()
    del given[key]
    with pytest.raises(PointError, match=rf"^{key}: it is missing; leave out ~{key}\.$"):
        Job.checked(given)


def test_the_defaults_here_are_those_of_the_files() -> None:
    """So that every key of conf/config.yaml is among those that are checked above."""
    content = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"))
    assert isinstance(content, dict)
    groups = {next(iter(each)) for each in content.pop("defaults") if isinstance(each, dict)}
    del content["hydra"]
    assert {*content, *(name for name in groups if " " not in name)} == set(DEFAULTS)
    assert all(DEFAULTS[key] == value for key, value in content.items())


@pytest.mark.parametrize(("given", "wanted"), [(None, None), ("all", "all"), (0, (0,)), ([2, 0], (2, 0)), (7, (7,))])
def test_devices_are_numbers_all_or_the_first(given: Any, wanted: Any) -> None:
    """One number is a list of one."""
    assert settings(devices=given).devices == wanted


def test_settings_have_their_units() -> None:
    """Gigabytes of the command line are bytes inside."""
    found = settings(memory_limit_gb=1.5, store="a/b")
    assert (found.memory_limit_bytes, found.store) == (1_500_000_000, Path("a/b"))
    assert settings().memory_limit_bytes is None


def test_a_python_is_known_by_its_own_path(tmp_path: Path) -> None:
    """A virtual environment's python is a link: following it would lose the environment."""
    python = tmp_path / "python"
    python.symlink_to("/bin/sh")
    assert job(python=str(python)).interpreter == Interpreter(str(python))
    assert job().interpreter == Interpreter()


def test_variables_are_texts() -> None:
    """As a shell would have them; null takes one away, and their order means nothing."""
    found = job(env={"B": True, "A": 1, "C": None, "D": 0.5, "E": ""}).interpreter
    assert found.env == (("A", "1"), ("B", "true"), ("C", None), ("D", "0.5"), ("E", ""))
    assert job(env={"A": 1, "B": 2}).interpreter == job(env={"B": 2, "A": 1}).interpreter


def test_slopes_are_taken_at_every_nth_point() -> None:
    """Of measure.slopes_every=n the points 0, n, 2n, ...; of 0 none. An index counts interpreters, a turn does not."""
    given = values(measure={"slopes_every": 3})
    assert [Job.checked(given, 9, turn).slopes for turn in range(7)] == [True, False, False, True, False, False, True]
    assert not Job.checked(values(measure={"slopes_every": 0}), 0).slopes


def test_a_label_tells_interpreters_apart() -> None:
    """Behind the point's own."""
    assert job(size=8, env={"A": 1}, python="/bin/sh").label == "matmul_add size=8 fp32 eager python=/bin/sh env.A=1"
