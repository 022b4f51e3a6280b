"""Measuring inside somebody's own program, without a sweep (docs/watch.md).

The chain: `program` (which calls are steps; hooks that cost nanoseconds while idle), `meter` (one stretch of measuring:
timed steps, then profiled ones), `stamps` (clocks), `window` (the profiled steps), `rows` (what was seen -> rows of the
store, with source `watch`), `silence` (why there are none). The program's results are never touched, and no failure in
here reaches it.
"""

from runner.watching.program import Watch, watch

__all__ = ["Watch", "watch"]
