"""python -m runner.ingest FILE_OR_FOLDER...: profiler traces of any program, into the store (docs/traces.md)."""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from runner.import_workers import Refused, import_all, stop_once, unreadable
from runner.imports import Imported
from runner.store import Store, StoreError
from runner.words import counted

STORE = Path("outputs/store")
ENDINGS = (".json", ".json.gz", ".sqlite")
ENDED = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
MOST_JUDGED = 1000
"""Runs in one question to `analysis`: a command line has its limits."""
MOST_SHOWN = 32
"""Verdicts shown where many files were read."""
WELL, NOTHING_DONE, FAILED, INTERRUPTED = 0, 1, 2, 130

EXAMPLES = """\
After each file: what was read of it, kept and set aside, what is odd, and its steps; then what binds it, and what to
run next. A content that is in the store already with the same --step is not written again. More: docs/traces.md

examples:
  python -m runner.ingest trace.json.gz
  python -m runner.ingest traces/ --store outputs/mine          all traces below a folder, in parallel
  python -m runner.ingest report.sqlite                         from nsys export --type sqlite (docs/nsys.md)
  python -m runner.ingest serve.json --step 'decode|prefill'    ranges with such a name are the steps, each name a kind
  python -m runner.ingest serve.json --step 'batch (\\w+)'       the kind is what the first group finds

exit code:
  0 well; 1 nothing was read, wrong usage included; 2 a file was refused, the others are in the store;
  130, 143 stopped by a signal: the files that were told of are in the store
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What binds a run, as `analysis` says: the word, why, and both with the figures."""

    bound: str
    reason: str
    sentence: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Import every file, tell of each, then the verdicts. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal cannot show every name
    given = _parser().parse_args(arguments)
    try:
        return _ingest(given.paths, given.store, given.step)
    except StoreError as error:
        _say(f"python -m runner.ingest: {error}", sys.stderr)
        return NOTHING_DONE
    except KeyboardInterrupt:
        return INTERRUPTED


def find(given: Sequence[Path]) -> tuple[list[Path], list[Refused]]:
    """The files, and those with a trace's ending below the folders, each once; what cannot be read, and why."""
    found: dict[Path, Path] = {}
    refused: dict[Path, Refused] = {}
    for path in given:
        files, unlisted = _below(path) if _is_folder(path) else ([path], [])
        refused |= {each.path: each for each in unlisted}
        for each in files:
            if why := _no_file(each):
                refused[each] = Refused(each, why)
            else:
                found.setdefault(each.resolve(), each)
    return list(found.values()), list(refused.values())


# -- pieces ------------------------------------------------------------------------------------------------------------


def _ingest(given: Sequence[Path], folder: Path, step: str | None) -> int:
    started = time.monotonic()
    paths, refused = find(given)
    if paths:
        Store(folder).check()
    done = [*_told(refused), *_told(import_all(paths, folder, step))]
    read = [each for each in done if isinstance(each, Imported)]
    if read:
        _tell_speed(read, time.monotonic() - started)
        _tell_verdicts(read, folder)
    return WELL if len(read) == len(done) else FAILED if read else NOTHING_DONE


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(NOTHING_DONE, f"{self.prog}: {_plain(message)} (--help lists what is allowed)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m runner.ingest",
        description="Read profiler traces that any program wrote (Chrome/Kineto JSON, plain or gzip; SQLite exports of "
        "Nsight Systems) into the store.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    paths = f"a trace of any name, or a folder: every file below it that ends in {ENDED}"
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER", help=paths)
    parser.add_argument("--store", type=Path, default=STORE, metavar="DIR", help=f"folder of the store ({STORE})")
    step = (
        "the steps are the host's ranges in whose name it is found (default: the profiler's marks, else repeated "
        "sequences of kernels, else the whole trace)"
    )
    parser.add_argument("--step", type=_pattern, metavar="REGEX", help=step)
    return parser


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _below(folder: Path) -> tuple[list[Path], list[Refused]]:
    """What has a trace's ending below a folder, links to folders left out; folders that cannot be listed."""
    found: list[Path] = []
    refused: list[Refused] = []

    def unlisted(error: OSError) -> None:
        refused.append(Refused(Path(error.filename), unreadable(error)))

    for parent, _, names in os.walk(folder, onerror=unlisted):
        found += [Path(parent, name) for name in names if name.lower().endswith(ENDINGS)]
    if not found and not refused:
        refused.append(Refused(folder, f"the folder holds no file that ends in {ENDED}"))
    return sorted(found), refused


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _no_file(path: Path) -> str | None:
    """Why a path cannot be read as a file, if so. A pipe or a device might never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "there is no such file or folder"
    except OSError as error:
        return unreadable(error)
    return None if stat.S_ISREG(mode) else "it is a pipe or a device, not a file; write its content to a file first"


# -- words -------------------------------------------------------------------------------------------------------------


def _told(done: Iterable[Imported | Refused]) -> Iterator[Imported | Refused]:
    """Say of each file what became of it."""
    for each in done:
        if isinstance(each, Refused):
            _say(f"{each.path}: not read: {each.why}", sys.stderr)
        else:
            again = " has the same content, nothing was written" if each.earlier else ""
            _say(f"{each.path}: run {each.run_id}{again}: {each.audit}; {each.steps}")
        yield each


def _tell_speed(read: list[Imported], seconds: float) -> None:
    megabytes, traces = sum(each.json_bytes for each in read) / 1e6, counted(len(read), "trace")
    _say(f"{traces}, {megabytes:,.1f} MB of JSON in {seconds:.1f} s, {megabytes / seconds:,.0f} MB/s")


def _tell_verdicts(read: list[Imported], folder: Path) -> None:
    """What binds each trace, and what to run next."""
    runs = {each.run_id: each for each in read}
    judged = _verdicts(list(runs), folder)
    if isinstance(judged, str):
        _say(f"no verdict: {judged}")
    elif len(runs) == 1:
        _say(f"verdict: {_of_run(judged, *runs).sentence}")
    else:
        _tell_several(sorted(runs.values(), key=_by_rank), judged)
    _tell_next(list(runs.values()), "" if folder == STORE else f" --store {shlex.quote(str(folder))}")


def _tell_several(read: list[Imported], judged: dict[str, Verdict]) -> None:
    """A line each, by rank, the first of them; then how many there are of each verdict."""
    for each in read[:MOST_SHOWN]:
        verdict = _of_run(judged, each.run_id)
        rank = "" if each.rank is None else f"rank {each.rank}, "
        _say(f"{rank}{each.path.name}: {verdict.bound}: {verdict.reason}")
    bounds = Counter(_of_run(judged, each.run_id).bound for each in read)
    more = f"; {len(read) - MOST_SHOWN} of them are not shown" if len(read) > MOST_SHOWN else ""
    _say(f"{counted(len(read), 'run')}: " + ", ".join(f"{n} {bound}" for bound, n in bounds.most_common()) + more)


def _by_rank(each: Imported) -> tuple[bool, int]:
    return each.rank is None, each.rank or 0


def _tell_next(read: list[Imported], store: str) -> None:
    """Commands that have something to show."""
    one, *others = read
    commands = {f"audits{store}": "what was read of each file, in columns"}
    if others:
        commands[f"compare {one.run_id} {others[0].run_id}{store}"] = "two of them side by side"
    elif one.kept:
        gaps = {f"gaps {one.run_id}{store}": "why the device was idle, and when"} if one.device_events else {}
        commands = {**gaps, f"trace {one.run_id}{store} --open": "the trace in Perfetto"}
    for number, (command, shows) in enumerate(commands.items()):
        _say(f"{'      ' if number else 'next: '}python -m analysis {command}     {shows}")


def _say(text: str, stream: IO[str] | None = None) -> None:
    """Print a line; where nobody reads any more (`| head`), go on in silence: the import matters more."""
    stream = stream or sys.stdout
    if stream is None:  # closed by whoever started this
        return
    try:
        print(_plain(text), file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _plain(text: str) -> str:
    """Names come from files: what would end a line or steer a terminal is written as its escape."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def _of_run(judged: dict[str, Verdict], run_id: str) -> Verdict:
    """A point has one verdict, that of its latest run: the same content, read again, may have found other steps."""
    told = "the same content was read again later, with other steps, and has the verdict of that run"
    return judged.get(run_id, Verdict("not told", told, f"not told, since {told}"))


def _verdicts(runs: list[str], folder: Path) -> dict[str, Verdict] | str:
    """The verdicts of runs, or why there are none. A process of its own reads the store: the runner knows no SQL."""
    if not (importlib.util.find_spec("duckdb") and importlib.util.find_spec("analysis")):
        return "duckdb, which finds it, is not installed here (pip install duckdb)"
    found: dict[str, Verdict] = {}
    for first in range(0, len(runs), MOST_JUDGED):
        answer = _asked(runs[first : first + MOST_JUDGED], folder)
        if isinstance(answer, str):
            return answer
        found |= answer
    return found


def _asked(runs: list[str], folder: Path) -> dict[str, Verdict] | str:
    listed = ", ".join(f"'{run_id}'" for run_id in runs)
    query = f"SELECT run_id, bound, reason, sentence FROM bounds WHERE run_id IN ({listed})"
    command = [sys.executable, "-m", "analysis", "sql", query, "--store", str(folder), "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "CROSSOVER_MEMORY": "200MB"})
    try:
        rows: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        return told[-1] if told else f"python -m analysis ended with exit code {done.returncode}"
    return {row["run_id"]: Verdict(row["bound"], row["reason"], row["sentence"]) for row in rows}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, stop_once)
    signal.signal(signal.SIGTERM, stop_once)
    sys.exit(main())
