"""The host clock, as one type: tests give their own."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Nanoseconds since some moment."""

host_clock: Clock = time.perf_counter_ns


def spin(clock: Clock, duration_ns: int) -> None:
    """Keep the host busy for a time."""
    end = clock() + duration_ns
    while clock() < end:
        pass
