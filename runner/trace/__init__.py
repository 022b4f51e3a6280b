"""Chrome/Kineto trace of any program -> rows of the `events` table (docs/traces.md), exact to the nanosecond.

The chain: `source` (bytes -> JSON text), `cutting` (text -> chunks of events), `decode` (chunk -> rows; `salvage` where
it is damaged, `single` where a value is odd), `reading` (all chunks of a file, on several cores with a `pool`),
`steps`, `link` (rows -> linked events), and `audit`, which counts what became of everything. `runner.imports` is the
whole chain for a file of any size, `read_trace` for the profiled window of a sweep. An SQLite export of Nsight Systems
goes the same way: `nsys` tells it as a Chrome trace, whose text nobody has to write down.
"""

from runner.trace.events import DEVICE_WORK, RUNTIME, Event, TraceError
from runner.trace.nsys import is_export, read_export
from runner.trace.windows import join, read_trace

__all__ = ["DEVICE_WORK", "RUNTIME", "Event", "TraceError", "is_export", "join", "read_export", "read_trace"]
