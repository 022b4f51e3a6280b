"""The command line -> one configuration a point, by Hydra: single points, sweeps, presets and the jobs of a cluster.

Hydra takes 0.1 s to read the files of a configuration. Which files depends on the groups alone, so each choice of
groups is loaded once; a value is tried once on it; a point's configuration is plain data, made when it is asked for.
"""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import hydra
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, flag_override

HERE = Path(__file__).parent
CONF = (HERE.parent / "conf").resolve()

WORKERS = "hydra_plugins.crossover.grid.Workers"
"""The launcher of this machine's devices, which runs single points too."""

Values = dict[str, Any]


@dataclass
class Composed:
    """What a command line asks for. points: a configuration each, as plain values; code: of what has run elsewhere.

    configs: what Hydra itself gives the task, of a command without -m or of each job of Hydra's own launcher; refused:
    why such a command is not run, told here since Hydra prints a line of its own for what a task raises.
    """

    points: Sequence[Values] = ()
    code: int = 0
    configs: list[DictConfig] = field(default_factory=list)
    refused: str | None = None


composed = Composed()
"""Hydra gives back nothing of a sweep: task function, sweeper and launcher leave here what they have found."""


def compose() -> Composed:
    """What sys.argv asks for; no points for --help and its like, or if they ran as jobs. Raises what Hydra raises."""
    plugins = str(HERE / "_plugins")
    if plugins not in sys.path:
        sys.path.append(plugins)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us, so that each is told in one sentence
    given_arguments = sys.argv[1:]
    sys.argv[1:] = [with_new_variable(each) for each in given_arguments]
    vars(composed).update(vars(Composed()))
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(_take)()
    finally:
        sys.argv[1:] = given_arguments
    if composed.refused:
        raise HydraException(composed.refused)
    given = [values for config in composed.configs for values in expanded(plain(config))]
    return Composed(composed.points or given, composed.code)


def _take(config: DictConfig) -> None:
    """Hydra's task: of a single point, for which Hydra leaves out any launcher without a word."""
    composed.configs.append(config)
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.RUN and _searches(config):
        composed.refused = (
            "hydra/sweeper=crossover: only a sweep searches; write `python -m runner -m hydra/sweeper=crossover ...`"
        )
    if hydra_config.mode == RunMode.RUN and hydra_config.launcher._target_ != WORKERS:
        choice = hydra_config.runtime.choices["hydra/launcher"]
        composed.refused = (
            f"hydra/launcher={choice}: only a sweep has jobs; write `python -m runner -m hydra/launcher={choice} ...`, "
            "even for one point"
        )


def _searches(config: DictConfig) -> bool:
    hydra_config = HydraConfig.get()
    overrides = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)  # one may hold a reference
    asked = isinstance(overrides, list) and any(str(each).startswith("search.") for each in overrides)
    axis = OmegaConf.select(config, "search.axis")
    return asked or axis is not None or hydra_config.runtime.choices["hydra/sweeper"] == "crossover"


def with_new_variable(override: str) -> str:
    """`env.NAME=1` sets a variable that no file of conf/ names, for which Hydra wants `++`."""
    return f"++{override}" if override.startswith("env.") else override


def plain(config: DictConfig) -> Values:
    """A configuration as plain values, without Hydra's own part."""
    values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items() if key != "hydra"}


def expanded(values: Values) -> Sequence[Values]:
    """The configurations of one that holds `points`: what each of them says wins over the rest."""
    points = values.get("points")
    if points is None:
        return [values]
    if not isinstance(points, list) or not points or not all(isinstance(each, dict) for each in points):
        raise ValueError(f"points={points}: allowed is null or a list of mappings; for example points=[{{size:64}}].")
    return [{**values, "points": None, **each} for each in points]


def _documented() -> str:
    """The keys of conf/config.yaml with their comments, as the text of a help template; not what is for jobs alone."""
    lines = (CONF / "config.yaml").read_text().partition("\n\n")[2].partition("\nhydra:")[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith("points:")).rstrip().replace("$", "$$")


OmegaConf.register_new_resolver("crossover.documented", _documented, replace=True)


# -- the points of a sweep ---------------------------------------------------------------------------------------------


class Points(Sequence[Values]):
    """The configuration of each list of overrides, composed whenever it is asked for."""

    def __init__(self, composer: Composer, overrides: Sequence[Sequence[str]]) -> None:
        self._composer, self._overrides = composer, overrides

    def __len__(self) -> int:
        return len(self._overrides)

    @overload
    def __getitem__(self, index: int) -> Values: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Values]: ...
    def __getitem__(self, index: int | slice) -> Values | Sequence[Values]:
        if isinstance(index, slice):
            return Points(self._composer, self._overrides[index])
        return self._composer.values(self._overrides[index])

    def __iter__(self) -> Iterator[Values]:
        return (self._composer.values(each) for each in self._overrides)


@dataclass(frozen=True, slots=True)
class _Change:
    """One override of a value: where it goes, and what it sets there."""

    path: tuple[str, ...]
    value: Any

    def apply(self, values: Values) -> None:
        """Make the change in plain values whose inner mappings belong to the caller."""
        *parents, last = self.path
        for name in parents:
            if not isinstance(values.get(name), dict):  # as in Hydra, what is no mapping makes way for one
                values[name] = {}
            values = values[name]
        values[last] = self.value


@dataclass
class _Base:
    """The configuration of a choice of groups; values: plain, None where one refers to another.

    changes: what each override is, once it was tried on this configuration alone; None = only Hydra can tell; paths:
    where a value goes, by what stands before its `=`, once one has been accepted.
    """

    config: DictConfig
    values: Values | None
    changes: dict[str, _Change | None] = field(default_factory=dict)
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Composer:
    """Composes configurations as Hydra's basic sweeper does, without reading a file twice."""

    def __init__(self, loader: ConfigLoaderImpl, config: DictConfig) -> None:
        self._loader, self._config = loader, config
        self._parser = OverridesParser.create(config_loader=loader)
        self._groups: dict[str, bool] = {}
        self._bases: dict[tuple[str, ...], _Base] = {}

    def values(self, overrides: Sequence[str]) -> Values:
        """The plain values of a list of overrides. Raises what Hydra raises."""
        base = self._base(tuple(each for each in overrides if self._is_group(each)))
        rest = [each for each in overrides if not self._is_group(each)]
        changes = [self._change(base, each) for each in rest]
        simple = [each for each in changes if each is not None]
        if base.values is None or len(simple) < len(changes):
            return self._by_hydra(base, rest)
        values = copy.deepcopy(base.values)
        for change in simple:
            change.apply(values)
        return values

    def _by_hydra(self, base: _Base, overrides: Sequence[str]) -> Values:
        config = copy.deepcopy(base.config)
        self._loader._apply_overrides_to_config(self._parser.parse_overrides(list(overrides)), config)
        return plain(config)

    def _is_group(self, override: str) -> bool:
        key = override.partition("=")[0].lstrip("+~")
        if key not in self._groups:
            self._groups[key] = self._loader.repository.group_exists(key.partition("@")[0])
        return self._groups[key]

    def _base(self, groups: tuple[str, ...]) -> _Base:
        if groups not in self._bases:
            config = self._loader.load_sweep_config(self._config, list(groups))
            with flag_override(config, ["struct", "readonly"], [False, False]):
                del config["hydra"]
            refers = "${" in OmegaConf.to_yaml(config)
            self._bases[groups] = _Base(config, None if refers else plain(config))
        return self._bases[groups]

    def _change(self, base: _Base, text: str) -> _Change | None:
        """What an override changes. A whole number needs no parser, of which a long range would have thousands."""
        head, _, value = text.partition("=")
        if head in base.paths and re.fullmatch(r"0|-?[1-9]\d*", value):
            return _Change(base.paths[head], int(value))
        if text not in base.changes:
            (override,) = self._parser.parse_overrides([text])
            base.changes[text] = self._tried(base, head, override)
        return base.changes[text]

    def _tried(self, base: _Base, head: str, override: Override) -> _Change | None:
        """The change of an override that stands for itself: a plain key and a value without structure or reference."""
        value, key = override.value(), override.key_or_group
        if isinstance(value, dict | list) or "$" in str(value) or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
            return None
        if override.package is not None or override.is_delete() or not self._accepted(base, head, override):
            return None
        base.paths[head] = tuple(key.split("."))
        return _Change(base.paths[head], value)

    def _accepted(self, base: _Base, head: str, override: Override) -> bool:
        """Whether Hydra takes the override on the bare configuration: the files give no types, so once for each key."""
        if head not in base.paths:
            try:
                self._loader._apply_overrides_to_config([override], copy.deepcopy(base.config))
            except Exception:  # it may need what another override adds; Hydra will say, for the point as a whole
                return False
        return True
