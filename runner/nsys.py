"""The profiled window of a point under Nsight Systems (profiler=nsys), as the parent sees it. Imports no torch.

`nsys profile` starts a process of its own for the window (runner/nsys_worker.py); its report becomes an SQLite file.
nsys starts an agent in a session of its own, which may outlive everything: each run has a session name that nothing
else has, by which all that is left of it is found and ended.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runner.nsys_program import GET_IT, find, importer_of, places
from runner.process import LAST_LINES, OWN, PACKAGE, environment_of
from runner.task import PROTOCOL, Interpreter, Measurement, Recorder, Task

OF_WINDOWS = ("warm", "cold_profile")
"""Ways of measuring that end with a profiled window."""
AGENT_S = 10.0
"""Seconds in which an agent may still have something to write after its session has ended."""
POLL_S = 0.02
EXPORT_S = 120.0
TASK, ANSWER, REPORT = "nsys_task.pickle", "nsys_answer.pickle", "window"
_START = "; ".join([*PACKAGE.strip().splitlines(), "from runner.nsys_worker import main", "main(sys.argv[2])"])


class NsysError(Exception):
    """Nsight Systems has recorded no window: says why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the process under nsys gets: the task, the device, and the process that it ends with."""

    task: Task
    kind: str
    index: int
    parent: int
    way: str


def is_asked(way: str, task: Task) -> bool:
    """Whether the window of a request belongs to Nsight Systems."""
    return way in OF_WINDOWS and task.recorder.tool == "nsys"


def refusal(recorders: Iterable[Recorder]) -> str | None:
    """Why points cannot be recorded as asked for on this machine, with what would have been run; None if they can."""
    if all(each.tool != "nsys" for each in recorders) or find() is not None:
        return None
    command = shlex.join(command_line(Path("nsys"), "crossover", Path("DIR"), "cuda", OWN))
    return (
        f"profiler=nsys: the program nsys of Nsight Systems is neither on the PATH nor under {places()}; {GET_IT}. "
        f"What would have been run: {command}"
    )


def command_line(nsys: Path, session: str, folder: Path, kind: str, interpreter: Interpreter) -> list[str]:
    """The command that records a point's window into `folder`.

    On CUDA only what lies between cudaProfilerStart and cudaProfilerStop; the CPU has no such calls, so that all of the
    process is recorded there. Nodes of CUDA graphs are traced one by one: a graph as a whole would hide its pauses.
    """
    on_cuda = ["--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--cuda-graph-trace=node"]
    return [
        str(nsys), "profile", "-t", "cuda,nvtx,osrt" if kind == "cuda" else "nvtx,osrt",
        *(on_cuda if kind == "cuda" else []), "--sample=none", "--cpuctxsw=none", f"--session-new={session}",
        "--force-overwrite=true", "--export=none", "-o", str(folder / REPORT),
        interpreter.python or sys.executable, "-c", _START, str(Path(__file__).parent), str(folder),
    ]  # fmt: skip


async def recorded(
    done: Measurement, way: str, task: Task, kind: str, index: int, interpreter: Interpreter, timeout_s: float
) -> Measurement:
    """A measurement with the window that Nsight Systems has recorded. Without one it stands, and says why."""
    folder = Path(task.folder)
    session = f"crossover{os.getpid()}x{secrets.token_hex(4)}"
    facts: dict[str, Any] = {"tool": "nsys", "options": asdict(task.recorder)}
    try:
        nsys = find()
        if nsys is None:
            raise NsysError(str(refusal([task.recorder])))
        command = command_line(nsys, session, folder, kind, interpreter)
        facts["command"] = shlex.join(command)
        (folder / TASK).write_bytes(pickle.dumps(Watched(task, kind, index, os.getpid(), way), PROTOCOL))
        environment = {**environment_of(interpreter), "TMPDIR": str(folder)}
        answer = await _window(command, session, folder, environment, timeout_s)
        facts |= answer.facts.get("profile", {})
        exported = await exported_report(nsys, folder, environment)
        return replace(done, facts={**done.facts, "profile": facts}, traces=(str(exported),))
    except (NsysError, OSError, pickle.PickleError) as error:
        facts["reason"] = " ".join(str(error).split())[:1000]
        return replace(done, facts={**done.facts, "profile": facts})


async def exported_report(nsys: Path, folder: Path, environment: Mapping[str, str]) -> Path:
    """The SQLite export of the report in `folder`; one that nsys has left unfinished is finished first. NsysError."""
    report = folder / f"{REPORT}.nsys-rep"
    raw = report.with_suffix(".qdstrm")
    if not report.exists() and raw.exists():
        importer = importer_of(nsys)
        if importer is None:
            raise NsysError(f"nsys has left {raw.name}, and no QdstrmImporter beside it makes a report of that")
        await _called([str(importer), "-f", "-i", str(raw), "-o", str(report)], environment, folder, EXPORT_S)
    if not report.exists():
        raise NsysError(f"nsys has written no report{_last_words(folder)}")
    exported = report.with_suffix(".sqlite")
    command = [str(nsys), "export", "--type", "sqlite", "--force-overwrite", "true", "-o", str(exported), str(report)]
    await _called(command, environment, folder, EXPORT_S)
    if not exported.exists():
        raise NsysError(f"nsys has exported no SQLite file{_last_words(folder)}")
    return exported


async def end_session(session: str, wait_s: float = AGENT_S) -> int:
    """End what is left of an nsys session, after some time for it to end by itself; how many processes were killed."""
    deadline = asyncio.get_running_loop().time() + wait_s
    while left := list(_of_session(session)):
        if asyncio.get_running_loop().time() >= deadline:
            for pid in left:
                _kill(pid)
            return len(left)
        await asyncio.sleep(POLL_S)
    return 0


# -- pieces ------------------------------------------------------------------------------------------------------------


async def _window(
    command: Sequence[str], session: str, folder: Path, environment: Mapping[str, str], timeout_s: float
) -> Measurement:
    """Run the window; the answer of its process. Whatever happens, nothing of the session is left. Raises NsysError."""
    wait_s = 0.0
    try:
        await _called(command, environment, folder, timeout_s)
        wait_s = AGENT_S
    finally:
        await asyncio.shield(end_session(session, wait_s))
    try:
        answer = pickle.loads((folder / ANSWER).read_bytes())
    except FileNotFoundError as error:
        raise NsysError(f"the process under nsys ended before it answered{_last_words(folder)}") from error
    assert isinstance(answer, Measurement)
    if answer.status != "ok":
        raise NsysError(f"the process under nsys could not record the window: {answer.reason}")
    return answer


async def _called(command: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float) -> None:
    """Run a program to its end; what it says goes to a file. Raises NsysError: it takes too long.

    What matters is what it leaves: nsys passes on the exit code of the program that it has watched.
    """
    with (folder / "nsys.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(environment), start_new_session=True,
            cwd=folder,
        )  # fmt: skip
    try:
        async with asyncio.timeout(timeout_s):
            while process.poll() is None:
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise NsysError(f"{Path(command[0]).name} {command[1]} has not ended within {timeout_s:g} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _of_session(session: str) -> Iterator[int]:
    """Processes that carry the session's name among their arguments; those that have ended are none."""
    wanted = {f"--session-name={session}".encode(), f"--session-new={session}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted.intersection(arguments):
            yield int(folder.name)


def _kill(pid: int) -> None:
    """Kill a process, and its whole session where it leads one."""
    try:
        if os.getsid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _last_words(folder: Path) -> str:
    """The last lines that nsys has said, behind a colon; empty if there are none."""
    try:
        lines = (folder / "nsys.log").read_text(errors="replace").replace("\r", "\n").splitlines()
    except OSError:
        return ""
    told = [line.strip() for line in lines if line.strip() and not line.strip().startswith(("Processing [", "USDT:"))]
    return f": {' | '.join(told[-LAST_LINES:])[:600]}" if told else ""
