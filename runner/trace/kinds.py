"""The first bytes of a file that is no trace -> what it seems to be, in one noun phrase.

Names of files are not looked at: people rename them. The order is: signatures that a format prescribes, encodings,
JSON by its keys, text by its look, and what binary data still give away. A phrase with a question mark is a guess.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_SIGNATURES = (
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\x04\x22\x4d\x18", "lz4-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"SQLite format 3\0", "an SQLite database (Nsight Systems export?)"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x7fELF", "an ELF program"),
    (b"NVR\0", "an Nsight Compute report (.ncu-rep)"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF-", "a PDF document"),
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not the file itself"),
)
_UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){2}|(?:\0[\t\n\r -~]){2}")
_NSIGHT = (b"QuadD", b"Nsight Systems", b"QDSTRM")

_EXECUTION_TRACE_KEYS = frozenset({"schema", "nodes"})
_EXECUTION_TRACE = "a PyTorch execution trace (Chakra), which holds operators without times"
_BY_KEY = (
    ("rocprofiler-sdk-tool", "a rocprofiler-sdk result"),
    ("workload_graph", _EXECUTION_TRACE),
    ("device_traces", "a memory snapshot of PyTorch"),
)
_KEYS_SHOWN, _LONGEST_KEY = 6, 40

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"([ \t\r\n]*+:)?+|[{}\[\]]', re.DOTALL)
_ROW = rb"\[\s*+-?\d++\s*+,\s*+[0-3]\s*+,\s*+-?\d++\s*+,\s*+-?\d++\s*+\]"
_RAW_TIMELINE = re.compile(rb"\[\s*+%b\s*+(?:,|\])" % _ROW)
_NUMBERS = re.compile(rb"\[\s*+\[\s*+-?\d")
_HTML = re.compile(rb"\s*+(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_XML = re.compile(rb"\s*+<\?xml")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def seems(head: bytes) -> str:
    """What a file seems to be by its first (decompressed) bytes, at most 64 KB of them. Never raises."""
    if not head:
        return "an empty file"
    for signature, phrase in _SIGNATURES:
        if head.startswith(signature):
            return _zip_of(head) if phrase == "a zip archive" else phrase
    if head[257:262] == b"ustar":
        return "a tar archive"
    if _UTF16.match(head):
        return "UTF-16 text"
    return _written(head) if _is_text(head) else _binary(head)


def _zip_of(head: bytes) -> str:
    return "a zip archive (saved by torch.save?)" if b"data.pkl" in head else "a zip archive"


def _is_text(head: bytes) -> bool:
    """UTF-8 without control characters; the last character may be cut, one byte in a hundred may be damaged."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    damaged = text.count("\ufffd") + len(_CONTROL.findall(head))
    return damaged * 100 <= len(head)


def _written(head: bytes) -> str:
    text = head.removeprefix(_BOM).strip()
    if not text:
        return "a file of blanks"
    if text.startswith(b"{"):
        return _json_object(text)
    if text.startswith(b"["):
        return _json_list(text)
    return _prose(text)


def _json_object(text: bytes) -> str:
    keys = list(dict.fromkeys(_keys(text)))
    for key, phrase in _BY_KEY:
        if key in keys:
            return phrase
    if set(keys) >= _EXECUTION_TRACE_KEYS:
        return _EXECUTION_TRACE
    if "traceEvents" in keys:
        return "JSON whose traceEvents are no list"
    if not keys:
        return "JSON without traceEvents"
    which = "its first keys" if len(keys) > _KEYS_SHOWN else "its keys"
    return f"JSON without traceEvents ({which}: {', '.join(keys[:_KEYS_SHOWN])})"


def _keys(text: bytes) -> Iterator[str]:
    """The keys of the outermost object as far as the text goes, shortened where they are long."""
    depth = 0
    for token in _TOKEN.finditer(text):
        bracket = token.group()
        if bracket in (b"{", b"["):
            depth += 1
        elif bracket in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and token.group(2):
            yield _printable(token.group(1))
        if depth <= 0:
            return


def _printable(key: bytes) -> str:
    text = "".join(char if char.isprintable() else "?" for char in key.decode(errors="replace"))
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}..."


def _json_list(text: bytes) -> str:
    if _RAW_TIMELINE.match(text):
        return "the raw memory timeline of torch.profiler"
    if _NUMBERS.match(text):
        return "a JSON list of lists of numbers (the memory timeline of torch.profiler?)"
    return "a JSON list of something else"


def _prose(text: bytes) -> str:
    if _HTML.match(text):
        return "an HTML page"
    if _XML.match(text):
        return "an XML document"
    if text.startswith(b"-----") and (b"Self CPU" in text or b"# of Calls" in text):
        return "a table of key_averages()"
    return _by_lines(text.splitlines())


def _by_lines(lines: list[bytes]) -> str:
    """What the lines are if they are all alike; the last one may be cut."""
    whole = lines[:-1] or lines
    if all(map(_is_stack, whole)):
        return "a collapsed stack file of export_stacks"
    commas = whole[0].count(b",")
    if commas and all(line.count(b",") == commas for line in whole):
        return "a table of comma-separated values"
    return "text"


def _is_stack(line: bytes) -> bool:
    """`outer;inner 12`: frames and a count."""
    frames, _, count = line.rstrip().rpartition(b" ")
    return b";" in frames and count.isdigit()


def _binary(head: bytes) -> str:
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a Python pickle (a memory snapshot?)"
    if any(word in head for word in _NSIGHT):
        return "an Nsight Systems report (.nsys-rep/.qdstrm)"
    return "a Perfetto protobuf trace" if _is_perfetto(head) else "binary data"


def _is_perfetto(head: bytes) -> bool:
    """One packet after the other: the tag of field 1, a length as a varint, so many bytes; a last one may be cut."""
    pos = packets = 0
    while head[pos : pos + 1] == b"\n":
        length, pos = _varint(head, pos + 1)
        if not length:
            return False
        pos += length
        packets += 1
    return packets > 1 and pos >= len(head)


def _varint(head: bytes, pos: int) -> tuple[int, int]:
    """The number that begins here, 0 if none does, and the place behind it."""
    number = 0
    for place, byte in enumerate(head[pos : pos + 5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, pos + place + 1
    return 0, pos
