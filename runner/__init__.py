"""config -> Point -> workload -> times + profile -> tables -> Parquet. The only writer of the store.

For a program of your own: `from runner import watch, phase` (docs/watch.md).
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """What a user's program imports; torch is imported with it, and by nothing else here."""
    if name == "phase":
        from runner.phases import phase

        return phase
    if name == "watch":
        from runner.watching import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
