"""Numbers in sentences."""

from __future__ import annotations

TIMES = (("s", 1e6), ("ms", 1e3))
"""Units above the microsecond, in microseconds."""
AMOUNTS = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
"""Units above the byte: memory is told in powers of 1,024, as torch tells it; rates are powers of ten (GB/s)."""


def counted(count: int, noun: str) -> str:
    """`1 run`, `2 runs`, `0 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration(us: float) -> str:
    """A time of so many microseconds, in the unit that suits it: `999 us`, `12.3 ms`, `2.5 s`."""
    for unit, size in TIMES:
        if us >= 0.9995 * size:
            return f"{_digits(us / size)} {unit}"
    return f"{_digits(us)} us"


def clock(seconds: float) -> str:
    """A length of time for people: `45 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def amount(size_bytes: float) -> str:
    """Memory of so many bytes, in the unit that suits it: `512 B`, `1.5 KiB`, `80 GiB`."""
    for unit, size in AMOUNTS:
        if size_bytes >= size:
            return f"{_digits(size_bytes / size)} {unit}"
    return f"{size_bytes:.0f} B"


def _digits(number: float) -> str:
    """Three significant digits, never a power of ten in front of a unit."""
    text = f"{number:.3g}"
    return f"{float(text):.0f}" if "e+" in text else text
