"""The project's sweeper: the cartesian product of all swept values, over one grid or a union of grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException


class Grid(BasicSweeper):
    """Expands like Hydra's basic sweeper, for each of `grids`; what the command line says wins over both.

    The launcher composes and checks every point itself, so nothing is composed twice and no file is written here.
    """

    def __init__(self, params: Mapping[str, Any], grids: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(max_batch_size=None, params={key: _text(value) for key, value in params.items()})
        self.grids = [{key: _text(value) for key, value in grid.items()} for grid in grids] or [{}]

    def sweep(self, arguments: list[str]) -> Any:
        """Hand all points to the launcher in one batch, each override list once."""
        assert self.launcher is not None
        jobs = dict.fromkeys(tuple(job) for grid in self.grids for job in self._product(grid, arguments))
        if not jobs:
            raise HydraException(f"{' '.join(arguments)}: a list of these is empty, so there is no point to measure")
        return self.launcher.launch([list(job) for job in jobs], initial_job_idx=0)

    def _product(self, grid: Mapping[str, str], arguments: list[str]) -> list[list[str]]:
        assert self.hydra_context is not None
        preset = [f"{key}={value}" for key, value in {**self.params, **grid}.items()]
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides(preset + arguments)
        if any(each.key_or_group == "experiment" and each.is_sweep_override() for each in overrides):
            raise HydraException("experiment: one ready sweep a command, since each brings its own axes")
        return self.split_arguments(overrides, None)[0]


def _text(value: Any) -> str:
    """A preset's value as an override's text: YAML's false and null are Hydra's false and null."""
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
