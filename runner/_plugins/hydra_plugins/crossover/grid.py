"""The project's sweeper (a product of all swept values, over one grid or a union of them) and its launcher."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, Sweep
from hydra.core.utils import JobReturn
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from runner.composition import Composer, Points, composed, with_new_variable
from runner.jobs import as_jobs, previewed, run_all, run_job
from runner.words import counted


class Product(Sequence[tuple[str, ...]]):
    """The cartesian product of lists of overrides, the last list fastest; an element is made when it is asked for."""

    def __init__(self, axes: Sequence[Sequence[str]]) -> None:
        self.axes = axes

    def __len__(self) -> int:
        return math.prod(len(axis) for axis in self.axes)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | Sequence[tuple[str, ...]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        places = []
        for axis in reversed(self.axes):
            index, place = divmod(index, len(axis))
            places.append(axis[place])
        return tuple(reversed(places))


class Workers(Launcher):
    """Leaves the points in runner.composition: runner.launch feeds them to this machine's devices behind Hydra."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what composing needs."""
        loader = hydra_context.config_loader
        assert isinstance(loader, ConfigLoaderImpl)
        self.composer = Composer(loader, config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Compose nothing yet: each point is composed when it is checked, and again when it is handed out."""
        composed.points = Points(self.composer, job_overrides)
        return []


class Grid(BasicSweeper):
    """Expands like Hydra's basic sweeper, for each of `grids`; what the command line says wins over both.

    Nothing is composed here and no file is written. Another launcher than `workers` gets points_per_job points a job,
    each job one override: points=[...].
    """

    def __init__(
        self, params: Mapping[str, Any], grids: Sequence[Mapping[str, Any]], points_per_job: int | None
    ) -> None:
        super().__init__(max_batch_size=None, params={key: _text(value) for key, value in params.items()})
        self.grids = [{key: _text(value) for key, value in grid.items()} for grid in grids] or [{}]
        self.points_per_job = points_per_job

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """What a job runs is not what this process runs: it measures its points where it is."""
        job = partial(run_job, tuple(sys.argv[1:]))
        super().setup(hydra_context=hydra_context, task_function=job, config=config)

    def sweep(self, arguments: list[str]) -> Any:
        """Hand all points to the launcher, each override list once."""
        assert self.launcher is not None and self.config is not None
        preset = OmegaConf.select(self.config, "search.axis")
        asked = [each for each in arguments if each.startswith("search.")] or [f"search.axis={preset}"] * bool(preset)
        if asked:
            raise HydraException(f"{asked[0]}: this sweeper does not search; write hydra/sweeper=crossover")
        points = self._points(arguments)
        if isinstance(self.launcher, Workers):
            return self.launcher.launch(points, initial_job_idx=0)
        return self._as_jobs(points)

    def _points(self, arguments: list[str]) -> Sequence[tuple[str, ...]]:
        products = [self._product(grid, arguments) for grid in self.grids]
        points = products[0] if len(products) == 1 else list(dict.fromkeys(itertools.chain(*products)))
        if not points:
            raise HydraException(f"{' '.join(arguments)}: a list of these is empty, so there is no point to measure")
        return points

    def _as_jobs(self, points: Sequence[tuple[str, ...]]) -> None:
        assert self.launcher is not None and self.hydra_context is not None and self.config is not None
        loader = self.hydra_context.config_loader
        assert isinstance(loader, ConfigLoaderImpl)
        composer = Composer(loader, self.config)
        first = composer.values(points[0])
        jobs = as_jobs(composer.values([]), Points(composer, points), self.points_per_job)
        if first["dry_run"]:
            print(previewed(len(points), len(jobs), self.points_per_job))
            return
        folder = Path(self.config.hydra.sweep.dir)
        many = f"{counted(len(points), 'point')} in {counted(len(jobs), 'job')}"
        print(f"{many}; what they say is kept in {folder}", flush=True)
        composed.code = run_all(self.launcher, jobs, folder, first["store"])

    def _product(self, grid: Mapping[str, str], arguments: list[str]) -> Product:
        overrides = self._overrides(grid, arguments)
        # as in the basic sweeper: of an override that is given twice the last value counts, at the first one's place
        return Product(list({each.get_key_element(): _values(each) for each in overrides}.values()))

    def _overrides(self, grid: Mapping[str, str], arguments: list[str]) -> list[Override]:
        assert self.hydra_context is not None
        preset = [with_new_variable(f"{key}={value}") for key, value in {**self.params, **grid}.items()]
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides(preset + arguments)
        if any(each.key_or_group == "experiment" and each.is_sweep_override() for each in overrides):
            raise HydraException("experiment: one ready sweep a command, since each brings its own axes")
        return overrides


def _values(override: Override) -> list[str]:
    """Every value of an override, as the text of an override each."""
    if not override.is_sweep_override():
        return [f"{override.get_key_element()}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise HydraException(f"{override.input_line}: allowed are lists, range and choice; an interval has no points")
    values = override.value()
    if isinstance(values, ChoiceSweep) and any(isinstance(each, Sweep) for each in values.list):
        raise HydraException(
            f"{override.input_line}: allowed is a list of values, or one range(...) or choice(...) alone; "
            "sweep the rest by a second command, since one store holds both"
        )
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _text(value: Any) -> str:
    """A preset's value as an override's text: YAML's false and null are Hydra's false and null."""
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
