"""Vega, Vega-Lite and Vega-Embed as one script, which vl-convert makes in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

_MAKE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


def begun() -> Callable[[], str]:
    """Begin to make the script, which takes two seconds and would hold up everything else in this process; what is
    returned waits for it.

    The returned function raises RuntimeError, with what was said, where vl-convert fails.
    """
    process = subprocess.Popen([sys.executable, "-c", _MAKE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result() -> str:
        script, said = process.communicate()
        if process.returncode:
            raise RuntimeError(f"vl-convert made no script: {said.decode(errors='replace').strip()}")
        return script.decode()

    return result
