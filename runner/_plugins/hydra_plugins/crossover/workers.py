"""The project's launcher: composes every point of a sweep, so that all are checked before the first one is measured."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, flag_override

from runner.composition import composed


class Workers(Launcher):
    """Collects configurations; runner.launch feeds them to a worker process when Hydra has returned.

    Hydra takes 0.1 s to read files for a configuration. Which files depends on the groups alone, so each choice of
    groups is loaded once, and the values of a point are applied to a copy of it as Hydra itself applies them.
    """

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what composing needs."""
        loader = hydra_context.config_loader
        assert isinstance(loader, ConfigLoaderImpl)
        self.loader, self.config = loader, config
        self.parser = OverridesParser.create(config_loader=loader)
        self.loaded: dict[tuple[str, ...], DictConfig] = {}

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Compose all. Raises what Hydra raises for the first that cannot be composed."""
        composed.extend(self._compose(overrides) for overrides in job_overrides)
        return []

    def _compose(self, overrides: Sequence[str]) -> DictConfig:
        parsed = self.parser.parse_overrides(list(overrides))
        groups = [each for each in parsed if self._is_group(each)]
        config = copy.deepcopy(self._load(tuple(each.input_line or "" for each in groups)))
        self.loader._apply_overrides_to_config([each for each in parsed if each not in groups], config)
        return config

    def _is_group(self, override: Override) -> bool:
        return self.loader.repository.group_exists(override.key_or_group)

    def _load(self, groups: tuple[str, ...]) -> DictConfig:
        """The configuration of a choice of groups, without Hydra's own part."""
        if groups not in self.loaded:
            config = self.loader.load_sweep_config(self.config, list(groups))
            with flag_override(config, ["struct", "readonly"], [False, False]):
                del config["hydra"]
            self.loaded[groups] = config
        return self.loaded[groups]
