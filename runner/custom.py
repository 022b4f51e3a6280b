"""A step of the user's own, named `path/to/file.py:build` or `package.module:build`.

The parent reads the file, to check that it defines the name and to hash it, and never runs it; the worker imports it
and calls `build(point)` (see `Setting`), which returns the step: `(function, arguments)`, where the function may be a
torch.nn.Module, or a function that needs no arguments.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from runner.point import Point

EXAMPLE = "workload.target=path/to/file.py:build"
RETURNS = "a function and a tuple of its arguments, or a function that needs none"


class TargetError(ValueError):
    """A target that cannot be a step: says what is wrong with it, and the cure."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What `build` is told of the point. dtype and device are torch's own; size and batch are the user's to interpret.

    With dtype=tf32 it is torch.float32, and the products run in TF32. batch: None = none is asked for.
    """

    size: int | None
    batch: int | None
    dtype: torch.dtype
    device: torch.device
    seed: int


# -- what the parent does: read, never run -----------------------------------------------------------------------------


def checked(target: Any) -> str:
    """The target as it is stored: a path below the current folder relative to it. Raises TargetError."""
    try:
        return _checked(target)
    except TargetError as error:
        raise TargetError(f"{error}; for example {EXAMPLE}") from None


def _checked(target: Any) -> str:
    place, name = _parts(target)
    file = file_of(target)
    if not {name, "*"} & _read(file).names:
        raise TargetError(f"{shown(file)} defines no {name} at its top level")
    return f"{shown(file) if _is_path(place) else place}:{name}"


def file_of(target: str) -> Path:
    """The file that defines the target. Raises TargetError."""
    place, _ = _parts(target)
    file = Path(place).expanduser().absolute() if _is_path(place) else _module_file(place)
    if file is None or not file.is_file():
        raise TargetError("there is no such file" if _is_path(place) else "no such module is found, nor its source")
    return Path(os.path.normpath(file))


def source(target: str) -> str:
    """Hash of the file: a changed step is another point. What the file imports is left out."""
    return _read(file_of(target)).digest


def shown(file: Path) -> str:
    """A file for people and for the store: relative to the current folder where it lies below it."""
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def is_target(text: str) -> bool:
    """Whether a word names a target, and no workload."""
    return ":" in text or _is_path(text)


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def _parts(target: Any) -> tuple[str, str]:
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    dotted = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place)
    if not name.isidentifier() or not (_is_path(place) or dotted):
        raise TargetError("allowed is path/to/file.py:build or package.module:build")
    return place, name


def _module_file(dotted: str) -> Path | None:
    """Source of a module, found as an import finds it; its packages are not imported, since they may import torch."""
    spec, path, name = None, None, ""
    for part in dotted.split("."):
        name = f"{name}.{part}" if name else part
        found = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next((each for each in found if each is not None), None)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@dataclass(frozen=True, slots=True)
class _Source:
    names: frozenset[str]
    digest: str


@cache
def _read(file: Path) -> _Source:
    """A file's top-level names and hash, read once a command. Raises TargetError."""
    try:
        content = file.read_bytes()
        names = frozenset(_defined(ast.parse(content, str(file)).body))
    except OSError as error:
        raise TargetError(f"{shown(file)}: {error.strerror}") from error
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        raise TargetError(f"{shown(file)}{line}: SyntaxError: {error.msg}") from error
    except ValueError as error:  # a null byte, say
        raise TargetError(f"{shown(file)}: {error}") from error
    return _Source(names, hashlib.sha256(content).hexdigest()[:12])


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that a module's statements define, those under `if`, `try` and `with` included."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (each.asname or each.name.partition(".")[0] for each in statement.names)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            for field in ("body", "orelse", "finalbody", "handlers"):
                for each in getattr(statement, field, ()):
                    yield from _defined(each.body if isinstance(each, ast.ExceptHandler) else [each])


# -- what the worker does ----------------------------------------------------------------------------------------------


def build(target: str, point: Point) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The step of a point, as the user's function makes it, and its arguments. Raises whatever the user's code raises.

    The function is called with the point's seed set, so that random inputs are the same at every run.
    """
    import torch

    from runner.workloads.base import torch_dtype

    setting = Setting(point.size, point.batch, torch_dtype(point.dtype), torch.device(point.device), point.seed)
    torch.manual_seed(point.seed)
    function = getattr(_imported(target), _parts(target)[1])
    try:
        return _step(function(setting), target)
    except SystemExit as end:
        raise RuntimeError(f"{target} ends the process (exit code {end.code})") from end


def _step(built: Any, target: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if callable(built):
        return built, ()
    if isinstance(built, tuple) and len(built) == 2 and callable(built[0]) and isinstance(built[1], tuple | list):
        return built[0], tuple(built[1])
    raise TypeError(f"{target} returned {_kind(built)}; it must return {RETURNS}")


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_kind(each) for each in value)})"
    return type(value).__name__


@cache
def _imported(target: str) -> ModuleType:
    """The target's module; a file's own folder is importable for it, as when Python runs the file."""
    file = file_of(target)
    place, _ = _parts(target)
    _files.add(file)
    try:
        return _of_file(file) if _is_path(place) else importlib.import_module(place)
    except SystemExit as end:
        raise RuntimeError(f"{shown(file)} ends the process (exit code {end.code}) when it is imported") from end


def _of_file(file: Path) -> ModuleType:
    folder = hashlib.sha256(str(file.parent).encode()).hexdigest()[:8]
    name = f"{file.stem}_{folder}"  # two files of one name are two modules
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)
    return module


_files: set[Path] = set()
"""Files of the user's that this process has imported by name."""


def place(error: BaseException) -> str:
    """Where in the user's file an exception arose, `file.py:12: `; empty if it arose elsewhere."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename) in _files]
    return f"{shown(Path(frames[-1].filename))}:{frames[-1].lineno}: " if frames else ""
