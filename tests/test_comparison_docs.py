"""docs/ci.md: every command in it parses, and its recipes are well-formed."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from compared_given import run_compare, run_history
from test_composition import configurations

from analysis.comparison import command, history
from analysis.comparison.suspects import condition, thresholds

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = sorted({
    line.strip() for _, block in BLOCKS for line in block.splitlines() if line.strip().startswith("python -m ")
})  # fmt: skip


def parsed(words: list[str]) -> argparse.Namespace:
    """The arguments of `python -m analysis compare` or `history`."""
    parser = argparse.ArgumentParser()
    {"compare": command, "history": history}[words[0]].add_arguments(parser)
    parser.add_argument("--store")
    parser.add_argument("-o")
    return parser.parse_args(words[1:])


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses(line: str) -> None:
    """Each is one that exists, with arguments that are allowed."""
    words = shlex.split(line)[2:]
    if words[0] == "runner":
        assert len(configurations(*(word for word in words[1:] if not word.startswith("python=")))) == 6
        return
    given = parsed(words[1:])
    if words[1] == "compare":
        assert all(condition(text).kind for text in given.fail_on)
        assert thresholds(given.threshold, command.THRESHOLDS)
        assert (given.b is None) == (given.save is not None)


def test_the_commands_on_kept_results_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that read a store of the repository end as they should."""
    monkeypatch.chdir(ROOT)
    kept = [shlex.split(line)[3:] for line in COMMANDS if "docs/results" in line and "--chart" not in line]
    assert len(kept) == 5
    for name, *words in kept:
        store = words.index("--store") if "--store" in words else None
        folder = Path(words[store + 1]) if store is not None else Path("outputs/store")
        rest = words[:store] + words[store + 2 :] if store is not None else words
        code = {"compare": run_compare, "history": run_history}[name](folder, *rest)
        assert code in ((0, 3) if "--fail-on" in words else (0,))
    assert capsys.readouterr().out


def test_the_recipes_are_well_formed() -> None:
    """The workflow is YAML with its steps, the job a script that bash can read."""
    kinds = dict(BLOCKS)
    workflow = yaml.safe_load(kinds["yaml"])
    assert [step.get("name") for step in workflow["jobs"]["compare"]["steps"]][2:] == [
        "measure twice", "compare", "comment"]  # fmt: skip
    subprocess.run(["bash", "-n"], input=kinds["bash"], text=True, check=True)
