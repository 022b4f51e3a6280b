"""docs/article.md: what it tells the reader to run works, and prints what it shows."""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from analysis import __main__ as analysis
from analysis import store
from analysis.store import open_store
from runner.composition import compose
from runner.plan import Plan

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "article.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(?P<shell>.*?)^```\n(?:```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?=python -m )", re.MULTILINE)


def commands(shell: str, module: str) -> list[list[str]]:
    """The arguments of every `python -m MODULE` of a block; a quoted argument may go over several lines."""
    words = [shlex.split(command) for command in COMMAND.split(shell) if command]
    return [arguments for _, _, name, *arguments in words if name == module]


ASKED = [
    pytest.param(arguments, block["output"], id=f"line-{len(TEXT[: block.start()].splitlines()) + 2}")
    for block in BLOCK.finditer(TEXT)
    for arguments in commands(block["shell"], "analysis")
]
MEASURED = sorted(
    {
        tuple(
            re.sub(r"^(size=\d+,\d+),.*", r"\1", each) for each in arguments
        )  # two sizes stand for all: the rest cost time
        for block in BLOCK.finditer(TEXT)
        for arguments in commands(block["shell"], "runner")
        if not arguments[-1].startswith("+experiment")  # tests of the composition have the ready sweeps
    }
)


STORES = ("docs/results/h200_article", "docs/results/h200_ladder")
"""Of the article's own sweep, and of the workloads of its second part."""


@pytest.fixture(scope="module", autouse=True)
def opened_once() -> Iterator[None]:
    """All commands ask stores that stay open: opening one costs more than a query."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        connections = {Path(name): stack.enter_context(open_store(ROOT / name)) for name in STORES}
        patch.setattr(store, "open_store", lambda path: nullcontext(connections[path]))
        yield


@pytest.mark.parametrize(("arguments", "output"), ASKED)
def test_an_answer_is_what_the_command_prints(
    arguments: list[str], output: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command asks the results of the repository, ends well, prints rows, and prints what the page shows."""
    assert arguments[-2] == "--store" and arguments[-1] in STORES
    assert analysis.main(arguments) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > 1
    assert output is None or printed == output


@pytest.mark.parametrize("arguments", MEASURED, ids=" ".join)
def test_what_measures_an_answer_is_accepted(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every runner command composes to points that pass the checks made before the first one runs."""
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    assert len(Plan(compose().points)) > 0


def test_every_question_is_answered() -> None:
    """The page has the article's 13 questions and 7 exercises, each with a guess first and a command."""
    sections = re.split(r"^### ", TEXT.split("## Part 2")[0], flags=re.MULTILINE)[1:]
    assert len(sections) == 20
    assert all("**Guess first:**" in section and "python -m " in section for section in sections)
    assert [section.split(".")[0] for section in sections[:13]] == [str(number) for number in range(1, 14)]


def test_answers_and_commands_were_found() -> None:
    """A page whose blocks are written differently would pass unseen."""
    assert TEXT.count("\npython -m analysis sql") == len(ASKED) > 30
    assert all(parameter.values[1] for parameter in ASKED)
    assert len(MEASURED) > 10


def test_views_and_columns_of_the_cheat_sheet_exist() -> None:
    """Each `view`: `column` of the tables is one that the store has."""
    sheet = TEXT.split("## The cheat sheet")[1]
    with open_store(ROOT / "docs" / "results" / "h200_article") as connection:
        rows = connection.sql("SELECT table_name, column_name FROM duckdb_columns()").fetchall()
    relations = {relation for relation, _ in rows}
    for view, columns in re.findall(r"`(\w+)`: ((?:`\w+`(?:, )?)+)", sheet):
        known = {column for relation, column in rows if relation == view}
        assert view in relations
        assert {*re.findall(r"`(\w+)`", columns)} <= known | VALUES, view


VALUES = {"batch", "cudaDeviceSynchronize", "serialized", "balanced"}
"""Values that the cheat sheet names beside columns."""
