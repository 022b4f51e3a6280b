"""The rules as a whole: their words, how they are put together, and the commands that show them."""

import json
import re
from pathlib import Path

import pytest
from given import write_store
from rule_given import H200, Trace

from analysis.__main__ import main
from analysis.rules import TOPICS, all_rules, judge, read_rule
from analysis.store import open_store

ROOT = Path(__file__).parents[1]
RULES = {rule.rule: rule for rule in all_rules()}


def store_of(folder: Path, blocks: int = 96) -> Path:
    """One run of four steps, each a product of so many blocks; and one that failed."""
    trace = Trace()
    for step in range(4):
        at = 100.0 * step
        trace.step(step, at, 50)
        trace.host("aten::mm", at + 5, 20, step)
        trace.launched("gemm", at + 10, at + 20, 10, step, grid=[blocks, 1, 1], block=[128, 1, 1])
    runs = [
        {"wall_us": 100, "issue_us": 40, "device_us": 10},
        {"size": 128, "status": "oom", "reason": "no memory left"},
    ]
    return write_store(folder, runs=runs, events=trace.events(), environments=[H200])


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.rule)
def test_a_rule_is_told_in_full_sentences(rule: object) -> None:
    """Title, meaning and cure are sentences, and it lies in the folder of its topic."""
    for text in (rule.title, rule.means, rule.cure):  # type: ignore[attr-defined]
        assert text.endswith(".")
        assert len(text.split()) >= 5
    topic = rule.topic.replace(" ", "_").replace(".", "_")  # type: ignore[attr-defined]
    assert (ROOT / "analysis" / "sql" / "rules" / topic / f"{rule.rule}.sql").is_file()  # type: ignore[attr-defined]


def test_forty_rules_in_every_topic() -> None:
    """There are forty or more, some of every topic, and what a rule excludes exists."""
    assert len(RULES) >= 40
    assert {rule.topic for rule in RULES.values()} == set(TOPICS)
    assert {other for rule in RULES.values() for other in rule.excludes} <= set(RULES)


def test_the_readme_tells_how_many() -> None:
    """Its number is that of the rules."""
    assert f"{len(RULES)} rules in SQL" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_rule_with_a_field_missing_is_refused(tmp_path: Path) -> None:
    """The message names the file and the field."""
    path = tmp_path / "half.sql"
    path.write_text("-- Rule: Half.\n-- Topic: summary\nSELECT 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"half\.sql lacks Cure, Means, Needs, Otherwise, Severity"):
        read_rule(path)


def test_a_field_goes_on_in_the_next_line(tmp_path: Path) -> None:
    """Lines behind a field belong to it; the query is what is no comment."""
    path = tmp_path / "long.sql"
    path.write_text(
        "-- Rule: A rule.\n-- Topic: memory\n-- Severity: costs\n-- Needs: times, trace\n-- Otherwise: none\n"
        "-- Means: One.\n--     Two.\n-- Cure: Three.\nSELECT 1\n",
        encoding="utf-8",
    )
    rule = read_rule(path)
    assert (rule.means, rule.needs, rule.query) == ("One. Two.", ("times", "trace"), "SELECT 1")


def test_every_rule_says_something_of_every_run(tmp_path: Path) -> None:
    """One outcome a run and rule, each with a reason; a failed run says why nothing applies."""
    with open_store(store_of(tmp_path), whole=True) as connection:
        rows = connection.execute('SELECT run_id, "rule", outcome, reason FROM rule_outcomes').fetchall()
        findings = connection.execute('SELECT run_id, "rule" FROM findings').fetchall()
    assert len(rows) == len({row[:2] for row in rows}) == 2 * len(RULES)
    assert all(reason for *_, reason in rows)
    assert {row[2:] for row in rows if row[0] == "r001"} == {("not applicable", "the run is oom: no memory left")}
    assert {row[:2] for row in rows if row[2] == "fired"} == set(findings)


def test_evidence_and_where_to_look(tmp_path: Path) -> None:
    """The evidence names events and figures; the command shows the first of them."""
    with open_store(store_of(tmp_path)) as connection:
        judge(connection, rules=[RULES["underfilled_kernel"]])
        (evidence, see) = connection.execute("SELECT evidence, see FROM findings").fetchall()[0]
    told = json.loads(evidence)
    assert told["figures"]["blocks"] == 96
    assert see == f"python -m analysis trace r000 --open --at {told['events'][0]}"


def test_the_source_line(tmp_path: Path) -> None:
    """The innermost Python function of one's own around the launch, not one of torch."""
    trace = Trace()
    for step in range(4):
        at = 100.0 * step
        trace.step(step, at, 50)
        trace.host("train.py(7): main", at + 1, 40, step, "python_function")
        trace.host("model.py(12): forward", at + 2, 38, step, "python_function")
        trace.host("torch/nn/modules/module.py(1501): _call_impl", at + 3, 36, step, "python_function")
        trace.host("<built-in method matmul>", at + 4, 30, step, "python_function")
        trace.host("aten::mm", at + 5, 20, step)
        trace.launched("gemm", at + 10, at + 60, 10, step, grid=[1, 1, 1], block=[128, 1, 1])
    store = write_store(tmp_path, runs=[{}], events=trace.events(), environments=[H200])
    with open_store(store) as connection:
        judge(connection, rules=[RULES["underfilled_kernel"]])
        assert connection.execute("SELECT source FROM findings").fetchall() == [("model.py(12): forward",)]


# -- commands ----------------------------------------------------------------------------------------------------------


def test_findings_of_a_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prose: the sentence, the cure, where it is seen, and how many rules found nothing."""
    assert main(["findings", "size=64", "--store", str(store_of(tmp_path))]) == 0
    told = capsys.readouterr().out
    assert "costs: underfilled_kernel (device lane)" in told
    assert "gemm has 96 blocks for 132 multiprocessors" in told
    assert "cure: Make the work" in told
    assert re.search(r"python -m analysis findings r000 --outcomes --store \S+ says why", told)
    assert re.search(r"see: python -m analysis trace r000 --open --at \d+ --store \S+\n", told)


def test_findings_of_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row a rule as a table, a row a finding as json."""
    store = str(store_of(tmp_path))
    assert main(["findings", "--store", store]) == 0
    assert "underfilled_kernel" in capsys.readouterr().out
    assert main(["findings", "--store", store, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"run_id", "rule", "severity", "sentence", "cure", "gain", "evidence"} <= rows[0].keys()


def test_outcomes_of_a_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every rule, with its reason."""
    assert main(["findings", "r001", "--outcomes", "--store", str(store_of(tmp_path)), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["rule"] for row in rows} == set(RULES)


def test_a_point_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and nothing on stdout."""
    assert main(["findings", "size=65", "--store", str(store_of(tmp_path))]) == 1
    assert "names no point" in capsys.readouterr().err


def test_rules_need_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    """One array, an object a rule, its query included."""
    assert main(["rules", "--format", "json", "--store", "/nowhere"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["rule"] for row in rows] == list(RULES)
    assert all(row["query"].lstrip().upper().startswith(("SELECT", "WITH", "FROM")) for row in rows)


def test_one_rule_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Its words and its query."""
    assert main(["rules", "underfilled_kernel"]) == 0
    told = capsys.readouterr().out
    assert "means: A block runs on one multiprocessor" in told
    assert "SELECT" in told


def test_a_rule_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest are named."""
    assert main(["rules", "underfiled_kernel"]) == 1
    assert "is no rule: nearest are underfilled_kernel" in capsys.readouterr().err
