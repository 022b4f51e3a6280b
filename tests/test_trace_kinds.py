"""What a file seems to be that is no trace."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.trace.kinds import seems

HEAD_BYTES = 65536
TABLE = b"-----------------  ------------\n             Name    Self CPU %\n-----------------  ------------\n"


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("rank0.json"))
    return buffer.getvalue()


def database(folder: Path) -> bytes:
    path = folder / "report.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE kernels (name)")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("head", "phrase"),
    [
        (b"", "an empty file"),
        (b"  \n ", "a file of blanks"),
        (
            b'{"schemaVersion": 1, "deviceProperties": []}',
            "JSON without traceEvents (its keys: schemaVersion, deviceProperties)",
        ),
        (
            b'\xef\xbb\xbf{"a": {"inner": 1}, "b": [{"inner": 2}], "c": "x: y"',
            "JSON without traceEvents (its keys: a, b, c)",
        ),
        (b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}', "JSON without traceEvents (its first keys: a, b, c, d, e, f)"),
        (b"{}", "JSON without traceEvents"),
        (b'{"traceEvents": null}', "JSON whose traceEvents are no list"),
        (
            b'{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1',
            "a PyTorch execution trace (Chakra), which holds operators without times",
        ),
        (b'{"rocprofiler-sdk-tool": [{"metadata"', "a rocprofiler-sdk result"),
        (b'{"segments": [], "device_traces": []}', "a memory snapshot of PyTorch"),
        (b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]", "the raw memory timeline of torch.profiler"),
        (b"[[169, 170, 171], [[0, 1, 2]]]", "a JSON list of lists of numbers (the memory timeline of torch.profiler?)"),
        (b'["a", "b"]', "a JSON list of something else"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (TABLE, "a table of key_averages()"),
        (b"main;forward;aten::mm 120\nmain;backward 3\nmain;opt", "a collapsed stack file of export_stacks"),
        (b"Name,Calls,Total\nmm,1,2\nadd,3,4\n", "a table of comma-separated values"),
        (b"Traceback (most recent call last):\n", "text"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer, not the file itself"),
        ('{"traceEvents": []}'.encode("utf-16"), "UTF-16 text"),
        ('{"traceEvents": []}'.encode("utf-16-le"), "UTF-16 text"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "zstd-compressed data"),
        (b"\x04\x22\x4d\x18\x00\x00", "lz4-compressed data"),
        (lzma.compress(b"x"), "xz-compressed data"),
        (bz2.compress(b"x"), "bzip2-compressed data"),
        (gzip.compress(b"x"), "gzip-compressed data"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"\x7fELF\x02\x01", "an ELF program"),
        (b"\x01\x00\x00\x00Nsight Systems\x00\x02", "an Nsight Systems report (.nsys-rep/.qdstrm)"),
        (b"\x0a\x03\x08\x01\x10\x0a\x84\x01" + b"\x00" * 132 + b"\x0a\x7f\x01\x02", "a Perfetto protobuf trace"),
        (pickle.dumps({"segments": [1]}), "a Python pickle (a memory snapshot?)"),
        (zipped("rank0.json"), "a zip archive"),
        (zipped("archive/data.pkl"), "a zip archive (saved by torch.save?)"),
        (tarred(), "a tar archive"),
        (b"\x00\x01\x02\x03\xff\xfe", "binary data"),
    ],
    ids=lambda given: given if isinstance(given, str) else "head",  # packed heads hold the time of their packing
)
def test_a_file_is_named_by_its_first_bytes(head: bytes, phrase: str) -> None:
    """Each kind has one phrase."""
    assert seems(head) == phrase


def test_a_database_is_named(tmp_path: Path) -> None:
    """What Nsight Systems exports is an SQLite database."""
    assert seems(database(tmp_path)) == "an SQLite database (Nsight Systems export?)"


def test_a_text_that_is_cut_within_a_character_stays_a_text() -> None:
    """The head ends anywhere."""
    assert seems("naïveté".encode()[:-1]) == "text"


def test_a_long_or_strange_key_is_shown_in_short() -> None:
    """A phrase stays one line, whatever the file holds."""
    phrase = seems(b'{"' + b"k" * 5000 + b'": 1, "\x01\xff": 2}')
    assert phrase == f"JSON without traceEvents (its keys: {'k' * 40}..., ??)".replace("??", "?\ufffd")


@given(st.binary(max_size=2000))
@example(b"\x0a")
@example(b"\x0a\xff\xff\xff\xff\xff\xff")
@example(b'{"' * 1000)
@example(b"[" * 1000)
def test_no_bytes_raise(head: bytes) -> None:
    """Whatever comes, one line comes back."""
    phrase = seems(head)
    assert phrase and "\n" not in phrase


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("neg_chakra_small.json", "a PyTorch execution trace (Chakra), which holds operators without times"),
        ("hta_memory_timeline.raw.json.gz", "the raw memory timeline of torch.profiler"),
        ("tl_rocprof_908.json.gz", "a rocprofiler-sdk result"),
    ],
)
def test_public_files_that_are_no_traces_are_named(name: str, phrase: str) -> None:
    """Real files of other tools, where they are at hand."""
    if "CROSSOVER_TRACES" not in os.environ:
        pytest.skip("CROSSOVER_TRACES names no folder of public traces")
    path = Path(os.environ["CROSSOVER_TRACES"]) / name
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        assert seems(file.read(HEAD_BYTES)) == phrase
