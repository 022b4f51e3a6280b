"""The command line -> one configuration a point, by Hydra: single points, sweeps and presets alike."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

HERE = Path(__file__).parent
CONF = (HERE.parent / "conf").resolve()

composed: list[DictConfig] = []
"""What Hydra has composed: its task function and the launcher `workers` both put their configurations here."""


def compose() -> list[DictConfig]:
    """The configurations that sys.argv asks for, none for --help and its like. Raises what Hydra raises."""
    plugins = str(HERE / "_plugins")
    if plugins not in sys.path:
        sys.path.append(plugins)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us, so that each is told in one sentence
    composed.clear()
    hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(composed.append)()
    return list(composed)
