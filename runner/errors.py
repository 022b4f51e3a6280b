"""Errors as users see them: what came, what is allowed, the cure, in one sentence without a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from runner.point import PointError
from runner.process import WorkerDied, WorkerError
from runner.store import StoreError


@contextmanager
def told_in_one_sentence() -> Iterator[None]:
    """Turn every error of the input or the machine into a sentence on stderr and exit code 1."""
    try:
        yield
    except (PointError, StoreError, WorkerDied, WorkerError) as error:
        _leave(str(error))
    except (HydraException, OmegaConfBaseException) as error:
        _leave(sentence(error))


def sentence(error: Exception) -> str:
    """Hydra's and OmegaConf's messages run over several lines, of which the first says what came."""
    text = str(error)
    if missing := re.search(r"Could not override '([^']+)'", text):
        return f"{missing[1]}: there is no such key; allowed are the keys of conf/config.yaml, see `python -m runner --cfg job`."
    if group := re.search(r"In '[^']*': Could not find '(\w+)/([^']*)'(?:\s+Available options in '\w+':\s+(.*))?", text, re.S):
        allowed = ", ".join((group[3] or "").split("Config search path")[0].split())
        return f"{group[1]}={group[2]}: allowed is {allowed or 'a file of conf/' + group[1]}."
    if "Ambiguous value for argument" in text:
        given = re.search(r"argument '([^']+)'", text)
        return f"{given[1] if given else 'a list'}: several values make a sweep; write `python -m runner -m ...`."
    return " ".join(text.split("\n\n")[0].split())


def _leave(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
