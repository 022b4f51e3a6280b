"""The bytes of a trace file as JSON text, piece by piece: packed or not is told by the bytes, not by the name."""

from __future__ import annotations

import hashlib
import zlib
from typing import IO, Any

from runner.trace.events import TraceError

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_BYTES = 2**18
BOMB_RATIO = 200
BOMB_BYTES = 2**28
"""What unpacks to more than 200 times its size, and to more than 256 MiB, is no trace: those pack 10 to 30 times."""


class Source:
    """JSON text of a file, read forward once.

    packed_bytes, json_bytes: read so far; damage: why the text ends before its file does, or None. digest: SHA-256 of
    the text, so that a trace is the same packed or not.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.packed_bytes = 0
        self.json_bytes = 0
        self.damage: str | None = None
        self._head = self._block()
        self._unpack = zlib.decompressobj(31) if self._head.startswith(GZIP_MAGIC) else None

    def read(self) -> bytes:
        """The next piece of text; b"" at its end. Raises TraceError: it unpacks without end."""
        text = self._next()
        self.json_bytes += len(text)
        self._digest.update(text)
        if self._unpack and self.json_bytes > max(BOMB_BYTES, BOMB_RATIO * self.packed_bytes):
            raise TraceError(
                f"the gzip data unpacks to more than {BOMB_RATIO} times its size, as no trace does; unpack it first if "
                "that is meant"
            )
        return text

    @property
    def is_packed(self) -> bool:
        """Whether the text is another than the file's bytes."""
        return self._unpack is not None

    @property
    def digest(self) -> str:
        """SHA-256 of the text read so far, hexadecimal."""
        return self._digest.hexdigest()

    def _block(self) -> bytes:
        block = self._file.read(BLOCK_BYTES)
        self.packed_bytes += len(block)
        return block

    def _next(self) -> bytes:
        while self.damage is None:
            block, self._head = self._head or self._block(), b""
            if self._unpack is None:
                return block
            text = self._unpacked(block)
            if text or (not block and not self._head):
                return text
        return b""

    def _unpacked(self, block: bytes) -> bytes:
        """At most a few MB at a time: what is left of the block waits."""
        assert self._unpack is not None
        if not block:
            if not self._unpack.eof:
                self.damage = "the gzip data ends early"
            return b""
        try:
            if self._unpack.eof:  # another member follows; zeros are padding
                block = block.lstrip(b"\0")
                if not block:
                    return b""
                self._unpack = zlib.decompressobj(31)
            before = self._unpack.copy()
            text = self._unpack.decompress(block, 2**22)
        except zlib.error as error:
            self.damage = f"the gzip data is damaged ({error})"
            return _before_damage(before, block)
        self._head = self._unpack.unconsumed_tail or self._unpack.unused_data
        return text


def _before_damage(unpack: Any, block: bytes) -> bytes:
    """The text of a damaged block up to the damage; none is lost where only the checksum is wrong."""
    text = []
    for place in range(len(block)):
        try:
            text.append(unpack.decompress(block[place : place + 1]))
        except zlib.error:
            break
    return b"".join(text)
