"""What a program drew on a pseudo-terminal, as its other end reads it."""

import os
from collections.abc import Iterator


def pieces(handle: int) -> Iterator[bytes]:
    """Everything written on the terminal, in the pieces in which it comes: one write may be handed over in several.
    Ends once the program's end is closed."""
    while piece := _read(handle):
        yield piece


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # Linux's end of a terminal
        return b""
