#!/bin/sh
# Makes .venv and installs the project with its development tools, pinned by constraints.txt.
# PYTHON: the interpreter. TORCH: what to install as torch; `system` uses the torch that PYTHON has.
set -eu

say() { printf '%s\n' "$*" >&2; }

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    say "Python 3.11 or later is needed; found: $("$PYTHON" --version 2>&1 || true)."
    say "Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv. Elsewhere: make PYTHON=/path/to/python3.11 ..."
    exit 1
}
"$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || {
    say "This Python cannot make virtual environments: apt-get install python3-venv."
    exit 1
}
include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$include/Python.h" ] || say "Note: compile=true needs Python.h: apt-get install python3-dev (Fedora: python3-devel)."
command -v "${CXX:-g++}" >/dev/null || say "Note: compile=true on the CPU needs g++: apt-get install g++ (Fedora: gcc-c++)."

asked="$PYTHON $TORCH"
[ "$(cat .venv/.asked 2>/dev/null || true)" = "$asked" ] || rm -rf .venv
if [ ! -d .venv ]; then
    case $TORCH in
        system)
            "$PYTHON" -c 'import torch' 2>/dev/null || { say "TORCH=system, but $PYTHON has no torch."; exit 1; }
            "$PYTHON" -m venv --system-site-packages .venv ;;
        *) "$PYTHON" -m venv .venv ;;
    esac
    echo "$asked" > .venv/.asked
fi
[ "$TORCH" = system ] || .venv/bin/python -m pip install --quiet "$TORCH"
grep -v '^torch==' constraints.txt > .venv/constraints.txt
.venv/bin/python -m pip install --quiet --constraint .venv/constraints.txt --editable '.[dev,llm]'
