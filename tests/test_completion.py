"""What a shell completes behind `python -m analysis`, asked as a shell asks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from given import write_store

ROOT = Path(__file__).parents[1]
RUNS = [
    {"size": 64, "dtype": "fp32", "point_id": "aaaa1111"},
    {"size": 128, "dtype": "fp32", "point_id": "aaaa2222"},
    {"size": 1024, "dtype": "bf16", "point_id": "bbbb3333"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three points."""
    return write_store(tmp_path_factory.mktemp("store"), runs=RUNS)


def completed(line: str, tmp_path: Path) -> list[str]:
    """What the shell would offer at the end of `line`, by argcomplete's protocol: it asks by variables of the
    environment, and reads a file."""
    answer = tmp_path / "answer"
    asking = {
        "_ARGCOMPLETE": "3",  # python -m analysis: three words before the arguments
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    subprocess.run([sys.executable, "-m", "analysis"], cwd=ROOT, env={**os.environ, **asking}, check=True)
    words = [word.strip() for word in answer.read_text().split("\n")]
    return [word for word in words if word and not word.startswith("-")]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("python -m analysis bou", ["bounds"]),
        ("python -m analysis c", ["crossovers", "cures", "confidence", "compare", "code"]),
        ("python -m analysis describe confi", ["confidence"]),
        ("python -m analysis bounds --format ", ["table", "csv", "json", "parquet"]),
        ("python -m analysis rules adaptive_l", ["adaptive_launch"]),
        ("python -m analysis table x --sort self_xpu_time", ["self_xpu_time_total"]),
    ],
)
def test_names(line: str, offered: list[str], tmp_path: Path) -> None:
    """Commands, relations, formats, rules and keys of the operator table; no store is needed."""
    assert completed(line, tmp_path) == offered


@pytest.mark.parametrize("command", ["trace", "bounds", "export"])
def test_points(command: str, store: Path, tmp_path: Path) -> None:
    """Keys that tell points apart, then the values that fit with the words before, numbers in order; ids once begun."""
    line = f"python -m analysis {command} --store {store} "
    assert completed(line, tmp_path) == ["dtype=", "size="]
    assert completed(f"{line}size=", tmp_path) == ["64", "128", "1024"]
    assert completed(f"{line}dtype=fp32 size=", tmp_path) == ["64", "128"]
    assert completed(f"{line}aaaa", tmp_path) == ["aaaa1111", "aaaa2222"]


def test_words_in_quotes(store: Path, tmp_path: Path) -> None:
    """A POINT in quotes, as compare takes two of them, is completed at its last word."""
    line = f"python -m analysis compare --store {store} 'dtype=fp32 size="
    assert completed(line, tmp_path) == ["dtype=fp32 size=64", "dtype=fp32 size=128"]


def test_a_store_that_is_none_completes_nothing(tmp_path: Path) -> None:
    """A wrong folder, or a torn file in it, is no error while one types."""
    line = f"python -m analysis trace --store {tmp_path / 'none'} si"
    assert completed(line, tmp_path) == []
    torn = tmp_path / "none" / "runs" / "s" / "r.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1 and no more")
    assert completed(line, tmp_path) == []


def test_the_shell_finds_the_mark() -> None:
    """`activate-global-python-argcomplete` completes modules that say so at their top."""
    command = [sys.executable, "-m", "argcomplete._check_module", "analysis"]
    assert subprocess.run(command, cwd=ROOT).returncode == 0
