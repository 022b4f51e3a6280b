"""Make the exports of Nsight Systems under tests/data/nsys.

    python scripts/make_nsys_fixtures.py             what is invented: schema_<year>.sqlite.gz
    python scripts/make_nsys_fixtures.py --record    what is real as well: recorded_<release>.sqlite.gz

`recorded_*` is a real export: nsys has watched PROGRAM on a machine without a GPU, which shows ranges of NVTX, calls of
the C library and the profiler's own overhead. It needs nsys on the PATH (Debian's non-free package nsight-systems has
one) and the package nvtx (`pip install 'nvtx<0.2.9'`: 0.2.17 records nothing with 2022.4 and 2023.4). What no reader of
ours looks at is removed, since it describes the machine, the variables of its environment among the rest.

`schema_*` are invented: tables as releases of 2020, 2022 and 2025 lay them out, as far as a reader of ours looks at
them, with the few rows of STORY. They show that columns which come and go do no harm, and nothing about real times.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "data" / "nsys"
PROGRAM = """
import threading, time
import nvtx

def steps(first):
    for number in range(first, first + 3):
        with nvtx.annotate(f"ProfilerStep#{number}"):
            with nvtx.annotate("forward", domain="model"):
                time.sleep(0.002)
            with nvtx.annotate("optimizer"):
                time.sleep(0.001)
            nvtx.mark("step is done")

across = nvtx.start_range("whole run")
steps(0)
other = threading.Thread(target=lambda: nvtx.end_range(across))
other.start()
other.join()
"""
KEPT = ("NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD", "StringIds", "EXPORT_META_DATA", "META_DATA_EXPORT",
        "TARGET_INFO_SESSION_START_TIME")  # fmt: skip
NAMED = (("OSRT_API", "nameId"), ("PROFILER_OVERHEAD", "nameId"), ("NVTX_EVENTS", "textId"))
"""Who refers to StringIds; its other texts (the variables of the environment are among them) are removed."""
NAMES = {
    1: "cudaLaunchKernel_v7000", 2: "gemm", 3: "void gemm<float>(float*, int)", 4: "cudaMemcpyAsync_v3020",
    5: "cudaMemsetAsync_v3020", 6: "cudaStreamSynchronize_v3020", 7: "ProfilerStep#0", 8: "ProfilerStep#1",
    9: "forward", 10: "cudaGraphLaunch_v10000", 11: "read", 12: "cuLaunchKernelEx", 13: "CUPTI buffer flush",
}  # fmt: skip
"""StringIds of STORY."""
DOMAIN_CREATED, MARK, PUSHED = 75, 34, 59


def thread_id(pid: int, tid: int) -> int:
    """A thread as Nsight Systems writes it."""
    return 1 << 48 | pid << 24 | tid


FIRST, SECOND = 100, 200
"""Two processes. Both number their calls from 1, as CUDA does."""


def story() -> list[tuple[str, dict[str, Any]]]:
    """Two steps of the first process, and one kernel of the second, as rows; times in nanoseconds."""
    rows: list[tuple[str, dict[str, Any]]] = []
    main, other = thread_id(FIRST, 101), thread_id(SECOND, 201)
    rows.append(
        ("NVTX_EVENTS", {"start": 0, "eventType": DOMAIN_CREATED, "text": "model", "globalTid": main, "domainId": 1})
    )
    for step in (0, 1):
        at = 100_000 * (step + 1)
        span = {"eventType": PUSHED, "globalTid": main, "domainId": 0}
        rows += [
            ("NVTX_EVENTS", {**span, "start": at, "end": at + 90_000, "textId": 7 + step}),
            ("NVTX_EVENTS", {**span, "start": at + 1_000, "end": at + 40_000, "text": "forward", "domainId": 1}),
            ("NVTX_EVENTS", {**span, "start": at + 50_000, "eventType": MARK, "text": "a mark"}),
        ]
        calls = ((2_000, 1, "KERNEL"), (10_000, 4, "MEMCPY"), (20_000, 5, "MEMSET"), (30_000, 6, "SYNCHRONIZATION"))
        for number, (offset, name, work) in enumerate(calls):
            correlation = 10 * step + number + 1
            call = {"start": at + offset, "end": at + offset + 3_001, "globalTid": main, "correlationId": correlation}
            rows.append(("CUPTI_ACTIVITY_KIND_RUNTIME", {**call, "nameId": name}))
            rows.append((f"CUPTI_ACTIVITY_KIND_{work}", _work(at + offset + 5_000, FIRST, correlation)))
        graph = 10 * step + 9
        call = {"start": at + 60_000, "end": at + 64_000, "globalTid": main, "correlationId": graph, "nameId": 10}
        rows.append(("CUPTI_ACTIVITY_KIND_RUNTIME", call))
        rows.append(("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {**_work(at + 66_000, FIRST, graph), "graphId": 5}))
        rows.append(("OSRT_API", {"start": at + 45_000, "end": at + 46_000, "globalTid": main, "nameId": 11}))
    rows.append(("CUPTI_ACTIVITY_KIND_RUNTIME",
                 {"start": 120_000, "end": 121_000, "globalTid": other, "correlationId": 1, "nameId": 12}))  # fmt: skip
    rows.append(("CUPTI_ACTIVITY_KIND_KERNEL", _work(300_000, SECOND, 1)))
    rows.append(("PROFILER_OVERHEAD", {"start": 90_000, "end": 95_000, "globalTid": main, "nameId": 13}))
    rows += [("SCHED_EVENTS", {"start": at, "cpu": 0, "isSchedIn": 1, "globalTid": main}) for at in (1, 2, 3)]
    return rows


def _work(start: int, pid: int, correlation: int) -> dict[str, Any]:
    return {
        "start": start, "end": start + 5_003, "deviceId": 0, "contextId": 1, "streamId": 7,
        "globalPid": thread_id(pid, 0), "correlationId": correlation, "demangledName": 3, "shortName": 2,
        "mangledName": 2, "registersPerThread": 64,
        "gridX": 8, "gridY": 4, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "staticSharedMemory": 1024,
        "dynamicSharedMemory": 512, "bytes": 4096, "copyKind": 1, "srcKind": 0, "dstKind": 2, "value": 0, "memKind": 2,
        "syncType": 3, "eventId": 0, "graphId": 5,
    }  # fmt: skip


_OF_WORK = "start end deviceId contextId streamId correlationId globalPid"
_SIZES = "registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory"
SCHEMAS: dict[str, dict[str, str]] = {
    "2020": {
        "StringIds": "id value",
        "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId returnValue",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{_OF_WORK} demangledName shortName launchType cacheConfig {_SIZES}",
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_OF_WORK} bytes copyKind",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_OF_WORK} value bytes",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_OF_WORK} syncType eventId",
        "OSRT_API": "start end globalTid nameId returnValue callchainId",
        "SCHED_EVENTS": "id start cpu isSchedIn globalTid",
        "TARGET_INFO_GPU": "id name totalMemory smCount",
    },
    "2022": {
        "StringIds": "id value",
        "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId "
        "uint64Value jsonTextId jsonText",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{_OF_WORK} demangledName shortName mangledName {_SIZES} gridId graphNodeId",
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_OF_WORK} bytes copyKind srcKind dstKind graphNodeId virtualAddress",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_OF_WORK} value bytes graphNodeId memKind",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_OF_WORK} syncType eventId",
        "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
        "PROFILER_OVERHEAD": "start end globalTid nameId returnValue",
        "SCHED_EVENTS": "start cpu isSchedIn globalTid",
        "EXPORT_META_DATA": "name value",
        "ENUM_CUDA_MEM_KIND": "id name label",
        "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
        "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
        "TARGET_INFO_GPU": "vmId id name totalMemory smCount maxShmemPerSm maxRegistersPerSm threadsPerWarp "
        "maxWarpsPerSm computeMajor computeMinor",
    },
}
_GREEN = "greenContextId"
SCHEMAS["2025"] = {
    **{name: columns for name, columns in SCHEMAS["2022"].items() if name != "EXPORT_META_DATA"},
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{SCHEMAS['2022']['CUPTI_ACTIVITY_KIND_KERNEL']} {_GREEN} graphId clusterX",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_OF_WORK} {_GREEN} graphId graphExecId",
    "PROFILER_OVERHEAD": "start end globalTid nameId returnValue overheadType correlationId",
    "META_DATA_EXPORT": "name value",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid numMultiprocessors",
}
FACTS: dict[str, list[dict[str, Any]]] = {
    "StringIds": [{"id": number, "value": name} for number, name in NAMES.items()],
    "EXPORT_META_DATA": [{"name": "EXPORT_PRODUCT_VERSION", "value": "2022.4.2.1"}],
    "META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION", "value": "2025.1.1.0"}],
    "ENUM_CUDA_MEM_KIND": [{"id": 0, "label": "Pageable"}, {"id": 1, "label": "Pinned"}, {"id": 2, "label": "Device"}],
    "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_001}],
    "TARGET_INFO_SYSTEM_ENV": [{"name": "NvDriverVersion", "value": "570.00"}],
    "TARGET_INFO_GPU": [
        {
            "id": 0, "name": "An invented card", "totalMemory": 2**30, "smCount": 100, "maxShmemPerSm": 2**17,
            "maxRegistersPerSm": 2**16, "threadsPerWarp": 32, "maxWarpsPerSm": 64, "computeMajor": 9, "computeMinor": 0,
        }
    ],
    "TARGET_INFO_CUDA_DEVICE": [
        {"gpuId": 0, "cudaId": 0, "pid": FIRST},
        {"gpuId": 1, "cudaId": 0, "pid": SECOND},
    ],
}  # fmt: skip
"""What else the invented exports say; the second process calls another card its first."""


def write_invented(schema: dict[str, str], path: Path) -> None:
    """An export with these tables and the rows of the story, as far as it has tables and columns for them."""
    told = [*((table, row) for table, rows in FACTS.items() for row in rows), *story()]
    with sqlite3.connect(path) as database:
        for table, columns in schema.items():
            typed = ", ".join(f'"{name}" {_type(table, name)}' for name in columns.split())
            database.execute(f"CREATE TABLE {table} ({typed})")
        for table, row in told:
            present = [name for name in schema.get(table, "").split() if name in row]
            if present:
                listed, marks = ", ".join(f'"{name}"' for name in present), ", ".join("?" * len(present))
                database.execute(f"INSERT INTO {table} ({listed}) VALUES ({marks})", [row[name] for name in present])
    database.close()


def _type(table: str, column: str) -> str:
    if table == "StringIds" and column == "id":
        return "INTEGER PRIMARY KEY"
    return "TEXT" if column in ("text", "name", "value") and table != "CUPTI_ACTIVITY_KIND_MEMSET" else "INTEGER"


def record(folder: Path) -> Path:
    """A real export of PROGRAM, without what describes the machine; its path tells the release."""
    from runner.nsys import REPORT, exported_report
    from runner.nsys_program import find

    nsys = find()
    if nsys is None:
        raise SystemExit("nsys is neither on the PATH nor where its installers put it")
    flags = ["-t", "nvtx,osrt", "--sample=none", "--cpuctxsw=none", "--export=none", "--force-overwrite=true"]
    report = str(folder / REPORT)
    variables = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    subprocess.run(
        [str(nsys), "profile", *flags, "-o", report, sys.executable, "-c", PROGRAM], check=True, env=variables
    )
    exported = asyncio.run(exported_report(nsys, folder, os.environ))
    with sqlite3.connect(exported) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table not in KEPT:
                database.execute(f'DROP TABLE "{table}"')
        used = " UNION ".join(f"SELECT {column} FROM {table} WHERE {column} NOTNULL" for table, column in NAMED)
        database.execute(f"DELETE FROM StringIds WHERE id NOT IN (SELECT * FROM ({used}))")
        (release,) = database.execute(
            "SELECT value FROM EXPORT_META_DATA WHERE name = 'EXPORT_PRODUCT_VERSION'"
        ).fetchone()
        for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                database.execute(f"DELETE FROM {table} WHERE name NOT LIKE 'EXPORT_%VERSION%'")
        database.commit()
        database.execute("VACUUM")
    database.close()
    return exported.rename(folder / f"recorded_{'.'.join(release.split('.')[:2])}.sqlite")


def pack(path: Path) -> None:
    """The file, packed, among the test's data; the same content gives the same bytes."""
    target = FOLDER / f"{path.name}.gz"
    target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the invented exports, and the real one where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="run nsys as well")
    given = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    try:
        for year, schema in SCHEMAS.items():
            write_invented(schema, folder / f"schema_{year}.sqlite")
            pack(folder / f"schema_{year}.sqlite")
        if given.record:
            pack(record(folder))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
