"""`python -m runner [-m] key=value ...`: compose -> plan -> measure -> store. `doctor` looks at the machine.

`ask` measures one step and stores nothing.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED, TERMINATED = 130, 143


def main() -> int:
    """The exit code: 0 well, 1 nothing could be done, 2 a point failed. Bad input is one sentence on stderr."""
    if sys.argv[1:2] == ["doctor"]:
        from runner.doctor import main as doctor

        return doctor(sys.argv[2:])
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # the CPUs belong to what is measured
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    if sys.argv[1:2] == ["ask"]:
        from runner.ask import main as ask

        return ask(sys.argv[2:])
    from runner.composition import compose
    from runner.errors import in_one_sentence, wrong_input
    from runner.launch import launch
    from runner.plan import plan_of

    with in_one_sentence(wrong_input):
        composed = compose()
        plan = plan_of(composed.points) if composed.points else None
    with in_one_sentence():
        return launch(plan) if plan else composed.code


def _ended() -> int:
    """The exit code, with all that was printed read, or what reads it gone."""
    try:
        code = main()
        if sys.stdout is not None:  # closed by whoever started this
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # as in `| head`, which has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    try:
        sys.exit(_ended())
    except KeyboardInterrupt:  # before the first point: nothing is lost
        sys.exit(INTERRUPTED)
