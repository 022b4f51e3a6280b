"""JSON text of a trace -> what stands before its events, chunks of events, what stands behind them.

A chunk ends where the text looks like the end of an event and the start of the next. Whoever decodes it proves the
guess: the beginning of a JSON array can be read in one way only. Where the guess was wrong, the rest goes before the
next chunk.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from runner.trace.events import TraceError
from runner.trace.kinds import seems
from runner.trace.salvage import salvage
from runner.trace.source import Source

CHUNK_BYTES = 2**22
LONGEST_HEADER_BYTES = 2**26
LONGEST_EVENT_BYTES = 2**25
LONGEST_TRAILER_BYTES = 2**24
_HEAD_BYTES = 2**16
_MOST_TRIED = 50  # places of the header that look like the events; each is proved by reading all before it
_SEARCHED_BYTES = 2**16
_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BETWEEN = re.compile(rb"\}(\s*,\s*)\{")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text of events without the array's brackets. offset: of its first byte in the file's text; lead: what stood
    between it and the chunk before; final: the file's text ends with it."""

    text: bytes
    offset: int
    lead: bytes
    final: bool

    def behind(self, rest: bytes) -> Chunk:
        """This chunk with what the one before it left undecided."""
        text = rest + self.lead + self.text
        return Chunk(text, self.offset - len(rest) - len(self.lead), b"", self.final)


class Cutter:
    """The parts of one file's text, in their order: `header` when made, then each `next` chunk, then `trailer`.

    damage: why the events end before the file does, or without the bracket that ends them; None where they do not.
    repaired: what was mended in header and trailer.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = b""
        self._ended = False
        self._lead = b""
        self._trailer: list[bytes] = []
        self.repaired: Counter[str] = Counter()
        self.header, start = self._open()
        self._offset = start
        self._buffer = self._buffer[start:]
        self._closed = False
        self.damage: str | None = None

    def next(self) -> Chunk | None:
        """The next chunk, or None behind the last."""
        if self._closed:
            return None
        self._fill(CHUNK_BYTES)
        return self._last() if self._ended and len(self._buffer) <= CHUNK_BYTES else self._cut()

    def close(self, behind: bytes) -> None:
        """The array has ended; `behind` are the bytes after its bracket that were taken for events."""
        self.damage = None
        guessed = [b"]", *self._trailer] if self._trailer else [] if self._closed else [self._lead]
        self._trailer = [behind, *guessed]
        self._closed = True

    def give_up(self, damage: str) -> None:
        """What has not been cut yet is not read."""
        self.damage, self._buffer, self._trailer, self._closed = damage, b"", [], True

    def trailer(self) -> dict[str, Any]:
        """Keys that follow the events; none where they cannot be read."""
        given_up = self._closed and not self._trailer and self.damage is not None
        text = b"".join(self._trailer) + self._buffer
        while not self._ended and len(text) < LONGEST_TRAILER_BYTES:
            text += self._more()
        while not self._ended and self._more():  # to the end: the digest is that of all
            pass
        return {} if given_up else self._behind(text.strip())

    def _behind(self, text: bytes) -> dict[str, Any]:
        """The keys in what follows the events, which may be brackets alone."""
        if not text.startswith(b","):
            if text.rstrip(b"\0") not in (b"", b"}"):
                self.damage = (
                    self.damage or f"{len(text):,} bytes behind the list of events are no keys, and are not read"
                )
            return {}
        keys = self._kept(b"{" + text[1:])
        if again := keys.pop("traceEvents", None):
            self.damage = self.damage or f"a second traceEvents of {len(again):,} events is not read"
        return keys

    # -- pieces

    def _kept(self, text: bytes) -> dict[str, Any]:
        """Keys that stand beside the events, as far as they can be read."""
        keys, repaired = _mended(text)
        self.repaired += Counter(repaired)
        if not keys:
            self.repaired["what stands beside the events cannot be read"] += 1
        return keys

    def _open(self) -> tuple[dict[str, Any], int]:
        """Keys before the events, and where these begin. TraceError: the file is no trace."""
        searched, doubtful, tried = 0, None, 0
        while True:
            text = self._buffer.removeprefix(b"\xef\xbb\xbf")
            shift = len(self._buffer) - len(text)
            stripped = text.lstrip()
            if stripped.startswith(b"["):
                return {}, shift + len(text) - len(stripped) + 1
            for found in _TRACE_EVENTS.finditer(text, searched):
                tried += 1
                if tried > _MOST_TRIED:
                    break
                header = _object(text[: found.end()] + b"]}")
                if header.get("traceEvents") == []:
                    return header, shift + found.end()
                if _brackets(text[: found.end()]) == 2:  # the events' own, but something before them is no JSON
                    doubtful = doubtful or shift + found.end()
            if doubtful:
                return self._kept(text[: doubtful - shift] + b"]}"), doubtful
            searched = max(0, len(text) - 64)
            if (
                self._ended
                or tried > _MOST_TRIED
                or len(text) > LONGEST_HEADER_BYTES
                or (stripped and not stripped.startswith(b"{"))
            ):
                raise TraceError(f"it holds no traceEvents: it seems to be {seems(self._buffer[:_HEAD_BYTES])}")
            self._fill(len(self._buffer) + 1)

    def _more(self) -> bytes:
        block = self._source.read()
        self._ended = not block
        return block

    def _fill(self, size: int) -> None:
        blocks, length = [self._buffer], len(self._buffer)
        while length < size and not self._ended:
            blocks.append(self._more())
            length += len(blocks[-1])
        self._buffer = b"".join(blocks)

    def _cut(self) -> Chunk | None:
        """Up to the last place that looks like a seam; twice as much where there is none."""
        size = CHUNK_BYTES
        while True:
            found = _last_seam(self._buffer, min(size, len(self._buffer)))
            if found is not None or (self._ended and size >= len(self._buffer)):
                break
            if size >= LONGEST_EVENT_BYTES:
                self._give_up(size)
                return None
            size *= 2
            self._fill(size)
        if found is None:
            return self._last()
        return self._take(found.start() + 1, found.end() - 1)

    def _give_up(self, size: int) -> None:
        """No event ends in sight: what follows is not read."""
        self.give_up(
            f"no event ends within {size >> 20} MiB behind byte {self._offset:,}, and what follows is not read"
        )

    def _take(self, end: int, resume: int) -> Chunk:
        chunk = Chunk(self._buffer[:end], self._offset, self._lead, final=False)
        self._lead = self._buffer[end:resume]
        self._offset += resume
        self._buffer = self._buffer[resume:]
        return chunk

    def _last(self) -> Chunk:
        """All that is left, without the array's end and what follows it where these are plain to see."""
        end = _array_end(self._buffer)
        self.damage = "the list of events does not end" if end is None else None
        text = self._buffer if end is None else self._buffer[:end]
        if end is not None:
            self._trailer = [self._buffer[end + 1 :]]
        self._buffer = b""
        self._closed = True
        return Chunk(text, self._offset, self._lead, final=True)


def _brackets(text: bytes) -> int:
    """How many brackets are open at the end of the text."""
    bare = _TEXT.sub(b"", text)
    return sum(bare.count(each) for each in (b"{", b"[")) - sum(bare.count(each) for each in (b"}", b"]"))


def _last_seam(text: bytes, size: int) -> re.Match[bytes] | None:
    """The last place before `size` where an event seems to end and another to begin."""
    for start in (max(0, size - _SEARCHED_BYTES), 0):
        seams = list(_BETWEEN.finditer(text, start, size))
        if seams:
            return seams[-1]
    return None


def _array_end(text: bytes) -> int | None:
    """Where the bracket stands that ends the events: the first behind which only keys follow, or nothing."""
    found = None
    place = len(text)
    while (place := text.rfind(b"]", max(0, len(text) - _SEARCHED_BYTES), place)) >= 0:
        behind = text[place + 1 :].strip()
        if not behind or _object(b'{"":0' + behind):
            found = place
    return found


def _object(text: bytes) -> dict[str, Any]:
    """An object, or an empty one where the text is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _mended(text: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """An object whose text may be damaged, and how it was repaired; an empty one where it cannot be read."""
    if known := _object(text):
        return known, {}
    saved = salvage(text, final=True)
    repaired = {f"{kind} beside the events": number for kind, number in saved.repaired.items()}
    return (_object(saved.texts[0]), repaired) if len(saved.texts) == 1 else ({}, {})
