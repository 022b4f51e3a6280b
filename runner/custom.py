"""A step of the user's own, named `path/to/file.py:build` or `package.module:build`.

The parent reads the file, to check that it defines the name and to hash it, and never runs it; the worker imports it
and calls `build(point)` (see `Setting`), which returns the step: `(function, arguments)`, where the function may be a
torch.nn.Module, or a function that needs no arguments. Every further keyword of `build` is an axis of its own:
`def build(point, heads=8)` is swept by `+heads=8,16`. What a step computes and moves may be told as well: a third part
of the tuple, `{"flops": ..., "bytes": ...}`, or attributes of the function by these names; else runner/counting.py
counts it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from runner.point import Point

EXAMPLE = "workload.target=path/to/file.py:build"
RETURNS = "a function and a tuple of its arguments (and {'flops': ..., 'bytes': ...} if you know them), or a function"
TAKEN = (
    "name", "target", "workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device", "schedule", "l2",
    "threads", "seed", "static_inputs",
)  # fmt: skip
"""Names of the axes that every point has: no keyword of a function may be one."""


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


def sources(params: Mapping[str, Any]) -> list[str]:
    """Hashes of the files that a point's parameters name: a target's, and a model's config.json."""
    target, model = params.get("target"), params.get("model")
    files = [file_of(target)] if isinstance(target, str) else []
    hashes = [_read(each).digest for each in files]
    if isinstance(model, str) and model.endswith(".json"):
        hashes.append(hashlib.sha256(Path(model).read_bytes()).hexdigest()[:12])
    return hashes


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


def keywords(target: Any) -> dict[str, Any] | None:
    """Keywords of the target behind its first argument, each with its default: a plain value, `NEEDED` where it has
    none, `COMPUTED` where only running the file would tell. None where the file does not show them: a name that is
    imported or assigned, or `**keywords`. Raises TargetError for one that is an axis of every point."""
    _, name = _parts(target)
    found = _read(file_of(target)).keywords.get(name)
    for each in sorted(set(found or ()) & set(TAKEN)):
        raise TargetError(
            f"{name} has a keyword {each}, which every point has already; read point.{each}, or call it otherwise"
        )
    return None if found is None else dict(found)


def value(given: Any) -> Any:
    """A keyword's value as a point holds it, lists as tuples. Raises ValueError for what is no plain value."""
    if isinstance(given, list | tuple):
        return tuple(value(each) for each in given)
    finite = not isinstance(given, float) or math.isfinite(given)
    if not isinstance(given, str | int | float | None) or not finite:
        raise ValueError("allowed are numbers, words, true, false, null and lists of them; for example +heads=8,16")
    return given


class _Default:
    """Why a keyword's default is no value."""


NEEDED, COMPUTED = _Default(), _Default()


@dataclass(frozen=True, slots=True)
class _Source:
    names: frozenset[str]
    keywords: Mapping[str, Mapping[str, Any] | None]
    digest: str


@cache
def _read(file: Path) -> _Source:
    """A file's top-level names, its functions' keywords, and its hash, read once a command. Raises TargetError."""
    try:
        content = file.read_bytes()
        tree = ast.parse(content, str(file))
    except OSError as error:
        raise TargetError(f"{shown(file)}: {error.strerror}") from error
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        raise TargetError(f"{shown(file)}{line}: SyntaxError: {error.msg}") from error
    except ValueError as error:  # a null byte, say
        raise TargetError(f"{shown(file)}: {error}") from error
    functions = {each.name: _keywords(each) for each in tree.body if isinstance(each, ast.FunctionDef)}
    return _Source(frozenset(_defined(tree.body)), functions, hashlib.sha256(content).hexdigest()[:12])


def _keywords(function: ast.FunctionDef) -> dict[str, Any] | None:
    """Names and defaults of a function's arguments behind the first; None where it takes any, or another wraps it.

    Left out: what has a default and no name for its caller, as `heads` in `def build(point, heads=8, /)`.
    """
    takes, named = function.args, [*function.args.posonlyargs, *function.args.args]
    if takes.kwarg is not None or function.decorator_list:
        return None
    defaults = [None] * (len(named) - len(takes.defaults)) + list(takes.defaults)
    placed = zip(named[1:], defaults[1:], strict=True)
    pairs = [
        *((each, default) for each, default in placed if default is None or each not in takes.posonlyargs),
        *zip(takes.kwonlyargs, takes.kw_defaults, strict=True),
    ]
    return {each.arg: _default(default) for each, default in pairs}


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return NEEDED
    try:
        return value(ast.literal_eval(node))
    except ValueError:
        return COMPUTED


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


@dataclass(frozen=True, slots=True)
class Step:
    """What the user's function has made: the step, its arguments, and its FLOPs and bytes where they are told."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    flops: int | None = None
    bytes: int | None = None


def build(target: str, point: Point) -> Step:
    """The step of a point, as the user's function makes it. Raises whatever the user's code raises.

    The function is called with the point's seed set, so that random inputs are the same at every run.
    """
    import torch

    from runner.workloads.base import torch_dtype

    setting = Setting(point.size, point.batch, torch_dtype(point.dtype), torch.device(point.device), point.seed)
    torch.manual_seed(point.seed)
    function = getattr(_imported(target), _parts(target)[1])
    try:
        own = {name: _as_given(each) for name, each in point.params if name != "target"}
        return _step(function(setting, **own), target)
    except SystemExit as end:
        raise RuntimeError(f"{target} ends the process (exit code {end.code})") from end


def _as_given(stored: Any) -> Any:
    return [_as_given(each) for each in stored] if isinstance(stored, tuple) else stored


def _step(built: Any, target: str) -> Step:
    parts = built if isinstance(built, tuple) else (built, ())
    told = parts[2] if len(parts) == 3 and isinstance(parts[2], Mapping) else {}
    whole = len(parts) == 2 or (len(parts) == 3 and isinstance(parts[2], Mapping))
    if not whole or not callable(parts[0]) or not isinstance(parts[1], tuple | list):
        raise TypeError(f"{target} returned {_kind(built)}; it must return {RETURNS}")
    if further := sorted(set(told) - {"flops", "bytes"}):
        raise TypeError(f"{target} returned {further[0]!r} beside its step; allowed are 'flops' and 'bytes'")
    cost = {name: _cost(name, told.get(name, getattr(parts[0], name, None)), target) for name in ("flops", "bytes")}
    return Step(parts[0], tuple(parts[1]), **cost)


def _cost(name: str, number: Any, target: str) -> int | None:
    """What is told of a step; an attribute that is no number at all, as a method, tells nothing."""
    if number is None or callable(number):
        return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**63:
        raise TypeError(f"{target}: {name}={number!r}; allowed is a number from 0 on, of one step")
    return int(number)


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
