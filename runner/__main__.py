"""`python -m runner [-m] key=value ...`: compose -> check -> measure -> store. `doctor` looks at the machine."""

from __future__ import annotations

import signal
import sys

INTERRUPTED, TERMINATED = 130, 143


def main() -> int:
    """The exit code: 0 well, 1 nothing could be done, 2 a point failed. Bad input is one sentence on stderr."""
    if sys.argv[1:2] == ["doctor"]:
        from runner.doctor import main as doctor

        return doctor(sys.argv[2:])
    from runner.composition import compose
    from runner.errors import in_one_sentence, wrong_input
    from runner.launch import checked, launch

    with in_one_sentence(wrong_input):
        jobs = checked(compose())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that what has been measured is written
    with in_one_sentence():
        return launch(jobs) if jobs else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before the first point: nothing is lost
        sys.exit(INTERRUPTED)
