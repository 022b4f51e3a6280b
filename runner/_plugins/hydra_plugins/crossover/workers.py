"""The project's launcher: composes every point of a sweep, so that all are checked before the first one is measured."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, flag_override

from runner.composition import composed


class Workers(Launcher):
    """Collects configurations; runner.launch feeds them to a worker process when Hydra has returned."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what composing needs."""
        self.loader = hydra_context.config_loader
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Compose all. Raises what Hydra raises for the first that cannot be composed."""
        composed.extend(self._compose(overrides) for overrides in job_overrides)
        return []

    def _compose(self, overrides: Sequence[str]) -> DictConfig:
        config = self.loader.load_sweep_config(self.config, list(overrides))
        with flag_override(config, ["struct", "readonly"], [False, False]):
            del config["hydra"]
        return config
