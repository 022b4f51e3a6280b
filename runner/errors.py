"""Errors as users see them: what came, what is allowed, the cure, in one sentence without a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from omegaconf import OmegaConf

from runner.composition import CONF
from runner.locks import DeviceBusy
from runner.process import WorkerDied, WorkerError
from runner.store import StoreError

INSTALLED_BY = {
    "submitit_slurm": "pip install -e '.[slurm]'",
    "submitit_local": "pip install -e '.[slurm]'",
    "ray": "pip install -e '.[ray]'",
    "joblib": "pip install hydra-joblib-launcher",
}
"""Launchers that are not built in, and what installs them, given in the repository's folder."""


def plainly(error: Exception) -> str | None:
    """The sentence of an error that is the machine's or the user's; None for every other, which is a fault of ours."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'this machine'}: {error.strerror}"
    told = isinstance(error, StoreError | WorkerDied | WorkerError | DeviceBusy)
    return " ".join(str(error).split()) if told else None


def wrong_input(error: Exception) -> str | None:
    """The sentence of any error raised while the command line is read and checked."""
    told = sentence(f"{error} {error.__cause__ or ''}")
    given = getattr(error, "override", None)  # Hydra's grammar says where it stumbled, not over what
    return _no_override(given, told) if given else told


@contextmanager
def in_one_sentence(tell: Callable[[Exception], str | None] = plainly) -> Iterator[None]:
    """Turn errors into a sentence on stderr and exit code 1, wrong usage of options included."""
    try:
        yield
    except BrokenPipeError:  # whoever read the output has seen enough
        raise
    except Exception as error:
        told = tell(error)
        if told is None:
            raise
        print(f"error: {told}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        sys.exit(1 if end.code == 2 else end.code)


def sentence(text: str) -> str:
    """Hydra's and OmegaConf's messages run over several lines, of which one says what came."""
    if missing := re.search(r"Could not override '([^']+)'", text):
        return _no_such_key(missing[1])
    if group := re.search(r"Could not find '([\w/]+)/([^'/]*)'", text):
        return _no_such_launcher(group[2]) if group[1] == "hydra/launcher" else _no_such_choice(group[1], group[2])
    if given := re.search(r"Ambiguous value for argument '([^']+)'", text):
        return f"{given[1]}: several values make a sweep; write `python -m runner -m {given[1]}`."
    return " ".join(text.split("\n\n")[0].split())


def _no_such_launcher(name: str) -> str:
    if name in INSTALLED_BY:
        cure = f"give `{INSTALLED_BY[name]}` in the folder of this project"
        return f"hydra/launcher={name}: it is not installed; {cure}. Built in are workers and basic."
    return f"hydra/launcher={name}: allowed are workers, basic and, once installed, {', '.join(sorted(INSTALLED_BY))}."


def _no_such_choice(group: str, name: str) -> str:
    """A group's option that does not exist, and those that do."""
    allowed = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    these = "this is the file" if len(allowed) == 1 else "these are the files"
    return f"{group}={name}: allowed is {', '.join(allowed) or 'nothing'}; {these} of conf/{group}."


def _no_override(given: str, told: str) -> str:
    """An argument that Hydra's grammar cannot read. told: where it stumbled, in its words."""
    if "=" not in given and not given.startswith("~"):
        return (
            f"{given}: allowed are arguments key=value, or `doctor` alone as the first; "
            "`python -m runner --help` names every key."
        )
    stumbled = re.sub(r"\s*See https://\S+.*", "", told).removeprefix(f"Error parsing override '{given}' ")
    return (
        f"{given}: {stumbled}; allowed is key=value with a value, a list of values, range(...) or choice(...), and "
        f"""text with other signs in quotes of its own, key="'text'"."""
    )


def _no_such_key(key: str) -> str:
    """A key that does not exist, and those that do at its place."""
    owner, _, name = key.rpartition(".")
    if owner == "workload":
        return f"{key}: this workload has no parameter {name}; see its file in conf/workload."
    if not owner and (workloads := _workloads_with(name)):
        return f"{key}: there is no such key; as a parameter of {', '.join(workloads)} it is written workload.{name}."
    place = CONF / owner / "default.yaml" if owner else CONF / "config.yaml"
    return f"{key}: there is no such key; allowed are {', '.join(_keys(place)) or 'those of conf/config.yaml'}."


def _workloads_with(name: str) -> list[str]:
    """Workloads that have a parameter of this name; their own name is none."""
    if name == "name":
        return []
    return sorted(path.stem for path in (CONF / "workload").glob("*.yaml") if name in _keys(path))


def _keys(path: Path) -> list[str]:
    """Top-level keys of a configuration file, the groups of its defaults included."""
    if not path.exists():
        return []
    content = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(content, dict)
    groups = [next(iter(entry)) for entry in content.pop("defaults", []) if isinstance(entry, dict)]
    return [str(key) for key in (*groups, *content) if " " not in str(key) and key != "hydra"]
