"""`python -m runner [-m] key=value ...`: compose with Hydra -> check -> measure -> store. `doctor` looks at the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Entry point. Bad input is one sentence on stderr and exit code 1."""
    if sys.argv[1:2] == ["doctor"]:
        from runner.doctor import main as doctor

        sys.exit(doctor(sys.argv[2:]))
    sys.path.append(str(HERE / "_plugins"))  # where Hydra looks for the sweeper and the launcher
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions reach us, so that each is told in one sentence
    from runner.errors import told_in_one_sentence

    with told_in_one_sentence():
        run()


def run() -> None:
    """Hand the command line to Hydra: a sweep goes through its launcher, a single point comes to `launch` directly."""
    import hydra
    from omegaconf import DictConfig

    from runner.launch import launch

    @hydra.main(version_base="1.3", config_path=str((HERE.parent / "conf").resolve()), config_name="config")
    def single(config: DictConfig) -> None:
        launch([config])

    single()


if __name__ == "__main__":
    main()
