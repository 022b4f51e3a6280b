"""The project's launcher: composes and checks every point, then hands them all to the runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from runner.launch import launch


class Workers(Launcher):
    """Feeds the points of a sweep to one long-lived worker process."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what composing needs."""
        self.loader = hydra_context.config_loader
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Compose all, check all, run all."""
        launch([self.compose(overrides) for overrides in job_overrides])
        return []

    def compose(self, overrides: Sequence[str]) -> Any:
        """The configuration of one point."""
        return self.loader.load_sweep_config(self.config, list(overrides))
