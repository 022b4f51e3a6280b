"""docs/results/h200/findings.md: every command prints what the page shows."""

import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from analysis import __main__ as analysis
from analysis import store
from analysis.store import open_store

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "results" / "h200" / "findings.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(?P<shell>python -m analysis .*?)^```\n```text\n(?P<output>.*?)^```$", re.M | re.S)
STORE = "docs/results/h200_findings"


@pytest.fixture(scope="module", autouse=True)
def one_store() -> Iterator[None]:
    """All commands ask one open store, whose findings are made once."""
    with pytest.MonkeyPatch.context() as patch, open_store(ROOT / STORE, whole=True) as connection:
        patch.setattr(store, "open_store", lambda _: nullcontext(connection))
        patch.setattr(store, "add", lambda *_: None)
        yield


@pytest.mark.parametrize("block", [pytest.param(each, id=str(each.start())) for each in BLOCK.finditer(TEXT)])
def test_an_answer_is_what_the_command_prints(block: re.Match[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends well and prints the page's text."""
    arguments = shlex.split(block["shell"])[3:]
    assert arguments[-2:] == ["--store", STORE]
    assert analysis.main(arguments) == 0
    assert capsys.readouterr().out == block["output"]


def test_the_page_has_commands() -> None:
    """Eleven blocks or more: a change of its form must not leave the test without work."""
    assert len(list(BLOCK.finditer(TEXT))) >= 11
