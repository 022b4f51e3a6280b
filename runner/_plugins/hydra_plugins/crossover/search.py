"""The sweeper that searches: each combination of the swept values is a series, its points follow from one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf

from .grid import Grid, Workers

DEFAULT_AXIS = "size"


class Crossover(Grid):
    """Expands like Grid, without the searched axis."""

    def __init__(self, params: Mapping[str, Any], grids: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(params, grids, points_per_job=None)

    def sweep(self, arguments: list[str]) -> Any:
        """Hand all series to this machine's launcher."""
        if not isinstance(self.launcher, Workers):
            raise HydraException(
                "hydra/launcher: a search runs where its command is given, since each point follows from those before; "
                "leave it out, or give the command without it inside of a job"
            )
        return self.launcher.launch(self._points(arguments), initial_job_idx=0)

    def _overrides(self, grid: Mapping[str, str], arguments: list[str]) -> list[Override]:
        assert self.config is not None
        axis = OmegaConf.select(self.config, "search.axis") or DEFAULT_AXIS
        overrides = super()._overrides(grid, [*arguments, f"search.axis={axis}"])
        _refuse_swept_search(overrides)
        _refuse_searched_axis(overrides, str(axis))
        return overrides


def _refuse_swept_search(overrides: Sequence[Override]) -> None:
    for each in overrides:
        if each.key_or_group.partition(".")[0] == "search" and each.is_sweep_override():
            raise HydraException(f"{each.input_line}: allowed is one value, since it holds for all series of a command")


def _refuse_searched_axis(overrides: Sequence[Override], axis: str) -> None:
    name = axis.removeprefix("workload.")
    for each in overrides:
        if each.key_or_group in (name, f"workload.{name}"):
            raise HydraException(
                f"{each.input_line}: it is the axis of the search, which chooses its values; leave it out, and give "
                "the range by search.low=64 search.high=4096, say"
            )
