"""A window under Nsight Systems: the command, what becomes of its report, and that nothing of it is left running.

A small program stands in for nsys, so that it may hang, fail or leave its agent behind; the process that it starts is
the real one. Where nsys is installed, the last test runs it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner import nsys, nsys_program
from runner.point import Point, Schedule
from runner.process import OWN
from runner.rounds import Sample, Target
from runner.task import Measurement, Recorder, Task
from runner.trace import read_export

DATA = Path(__file__).parent / "data" / "nsys"
TIMED = Measurement("ok", samples=(Sample("wall", 0, 0, 5.0),), facts={"rounds": 3})

STAND_IN = f"""#!{sys.executable}
import gzip, os, subprocess, sys, time
here, words = os.path.dirname(os.path.realpath(__file__)), sys.argv[1:]
how = open(os.path.join(here, "how")).read()
target = words[words.index("-o") + 1]
if words[0] == "profile":
    session = next(word.partition("=")[2] for word in words if word.startswith("--session-new="))
    agent = [sys.executable, "-c", "import time; time.sleep(300)", "--start-agent", "--session-name=" + session]
    subprocess.Popen(agent, start_new_session=True)
    if how == "hangs":
        time.sleep(300)
    subprocess.call(words[words.index({sys.executable!r}):])
    if how == "says no":
        sys.exit("the driver is too old")
    open(target + (".qdstrm" if how == "unfinished" else ".nsys-rep"), "w").close()
else:
    content = gzip.open({str(DATA / "schema_2025.sqlite.gz")!r}).read()
    open(target, "wb").write(content)
"""
IMPORTER = f"""#!{sys.executable}
import sys
assert sys.argv[sys.argv.index("-i") + 1].endswith(".qdstrm")
open(sys.argv[sys.argv.index("-o") + 1], "w").close()
"""
RANGES = """
import contextlib, os
@contextlib.contextmanager
def annotate(name):
    with open(os.environ["RANGES_TOLD"], "a") as file:
        print(name, file=file)
    yield
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program on the PATH that behaves as nsys does in some case; the file in which its ranges are told."""
    root = tmp_path / "installed"
    for path, content in {"target-linux-x64/nsys": STAND_IN, "host-linux-x64/QdstrmImporter": IMPORTER}.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(content)
        (root / path).chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nsys").symlink_to(root / "target-linux-x64" / "nsys")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "nvtx.py").write_text(RANGES)
    told = tmp_path / "ranges"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("RANGES_TOLD", str(told))
    monkeypatch.setattr(nsys, "AGENT_S", 0.3)

    def behaves(how: str) -> Path:
        (root / "target-linux-x64" / "how").write_text(how)
        return told

    return behaves


def task(folder: Path, size: int = 2, workload: str = "matmul_add") -> Task:
    """One small point of the CPU, three steps recorded behind two others."""
    folder.mkdir(exist_ok=True)
    point = Point(workload, (), size, "fp32", None, False, False, 3, "cpu", Schedule(1, 1, 3), "warm", None, 0)
    return Task(
        point,
        Target("quick", 1.0, 0.01),
        60.0,
        False,
        Recorder(record_shapes=False, tool="nsys"),
        False,
        {},
        str(folder),
    )


def recorded(given: Task, way: str = "warm", timeout_s: float = 120.0) -> Measurement:
    return asyncio.run(nsys.recorded(TIMED, way, given, "cpu", 0, OWN, timeout_s))


def left(done: Measurement) -> list[int]:
    """Processes that carry the session's name or work in its folder."""
    [session] = [word for word in shlex.split(done.facts["profile"]["command"]) if word.startswith("--session-new=")]
    name = session.partition("=")[2].encode()
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            found += [int(each.name)] if name in (each / "cmdline").read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", ["well", "unfinished"])
def test_the_window_becomes_events_and_the_times_stay(stand_in: Any, tmp_path: Path, how: str) -> None:
    """A fresh process records the active steps in ranges, numbered behind the others; a report that nsys has not
    finished is finished by its importer; the agent, which would live on, is ended."""
    ranges = stand_in(how)
    done = recorded(task(tmp_path / "point"))
    assert done.facts["profile"].get("reason") is None
    assert done.samples == TIMED.samples and done.facts["rounds"] == 3 and done.facts["profile"]["tool"] == "nsys"
    assert [event.name for event in read_export(Path(*done.traces))][:1] == ["ProfilerStep#0"]
    assert ranges.read_text().splitlines() == [
        *("ProfilerStep#2", "matmul_add", "ProfilerStep#3", "matmul_add"),
        *("ProfilerStep#4", "matmul_add", "crossover: fence"),
    ]
    assert left(done) == []


def test_a_profiler_that_hangs_costs_its_window_alone(stand_in: Any, tmp_path: Path) -> None:
    """Past its time nsys and its agent are ended; the point keeps its times and says why it has no window."""
    stand_in("hangs")
    begun = time.monotonic()
    done = recorded(task(tmp_path / "point"), timeout_s=1.0)
    assert time.monotonic() - begun < 30
    assert done.facts["profile"]["reason"] == "nsys profile has not ended within 1 s"
    assert (done.status, done.samples, done.traces) == ("ok", TIMED.samples, ())
    assert left(done) == []


def test_what_nsys_says_is_the_reason(stand_in: Any, tmp_path: Path) -> None:
    """Without a report the last words of nsys are told."""
    stand_in("says no")
    done = recorded(task(tmp_path / "point"))
    assert "nsys has written no report" in done.facts["profile"]["reason"]
    assert "the driver is too old" in done.facts["profile"]["reason"]


def test_a_step_that_fails_there_is_the_reason(stand_in: Any, tmp_path: Path) -> None:
    """The exception of the watched process reaches the row."""
    stand_in("well")
    given = task(tmp_path / "point")
    failing = replace(given, point=replace(given.point, l2="nowhere"))
    done = recorded(failing)
    assert "the process under nsys could not record the window" in done.facts["profile"]["reason"]
    assert done.status == "ok" and done.traces == ()


def test_without_nsys_the_command_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says where it was looked for, where to get it and what would have been run; the times stand."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nsys_program, "FOLDERS", (f"{tmp_path}/*/bin",))
    told = nsys.refusal([Recorder(), Recorder(tool="nsys")])
    assert told is not None and "https://developer.nvidia.com/nsight-systems" in told
    assert "nsys profile -t cuda,nvtx,osrt --capture-range=cudaProfilerApi --capture-range-end=stop" in told
    assert nsys.refusal([Recorder()]) is None
    done = recorded(task(tmp_path / "point"))
    assert (
        done.facts["profile"]["reason"].startswith("profiler=nsys: the program nsys") and done.samples == TIMED.samples
    )


def test_nsys_is_found_where_its_installers_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off the PATH the newest installation is taken; its importer is found however it is linked to."""
    for year in ("2023", "2024"):
        place = tmp_path / year / "bin"
        place.mkdir(parents=True)
        (place / "nsys").write_text("")
        (place / "nsys").chmod(0o755)
        os.utime(place / "nsys", (int(year), int(year)))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(nsys_program, "FOLDERS", (f"{tmp_path}/*/bin",))
    assert nsys_program.find() == tmp_path / "2024" / "bin" / "nsys"
    assert nsys_program.importer_of(tmp_path / "2024" / "bin" / "nsys") is None
    host = tmp_path / "2024" / "host-linux-x64"
    host.mkdir()
    (host / "QdstrmImporter").write_text("")
    (tmp_path / "nsys").symlink_to("2024/bin/nsys")
    assert nsys_program.importer_of(tmp_path / "nsys") == host / "QdstrmImporter"


def test_an_agent_with_time_left_is_waited_for() -> None:
    """What ends by itself is not killed; of another session nothing is touched."""

    async def ended() -> tuple[int, int]:
        script = [sys.executable, "-c", "import time; time.sleep({})", "--session-name=sessionA{}"]
        brief = await asyncio.create_subprocess_exec(*(word.format(0.3) for word in script), start_new_session=True)
        other = await asyncio.create_subprocess_exec(*(word.format(60) for word in script), start_new_session=True)
        try:
            killed = await nsys.end_session("sessionA0.3", 20.0)
            alive = other.returncode is None and Path(f"/proc/{other.pid}").exists()
            assert await brief.wait() == 0 and alive
            return killed, await nsys.end_session("sessionA60", 0.0)
        finally:
            with suppress(ProcessLookupError):
                other.kill()
            await other.wait()

    assert asyncio.run(ended()) == (0, 1)


@pytest.mark.skipif(
    nsys_program.find() is None or importlib.util.find_spec("nvtx") is None,
    reason="needs Nsight Systems and the package nvtx",
)
def test_nsys_itself_records_the_window(tmp_path: Path) -> None:
    """The real program: the steps of the schedule are there, with the workload's range inside each."""
    done = recorded(task(tmp_path / "point"))
    assert done.facts["profile"].get("reason") is None
    events = read_export(Path(*done.traces))
    steps = [event for event in events if event.name.startswith("ProfilerStep#")]
    assert [event.step for event in steps] == [2, 3, 4]
    inside = [event for event in events if event.name == "matmul_add"]
    assert [event.parent_id for event in inside] == [event.event_id for event in steps]
    assert left(done) == []
