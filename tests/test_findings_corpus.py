"""All rules on real traces: those of the repository, and of the corpus where CROSSOVER_TRACES names it."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from analysis.rules import all_rules
from analysis.store import open_store
from runner.import_workers import import_all
from runner.imports import Imported
from runner.ingest import find

ROOT = Path(__file__).parents[1]
CORPUS = os.environ.get("CROSSOVER_TRACES")
RESULTS = [ROOT / "docs" / "results" / name for name in ("h200", "h200_article", "h200_dtypes")]
EXCLUDED = [(rule.rule, other) for rule in all_rules() for other in rule.excludes]


@pytest.fixture(scope="module", params=["h200", "h200_article", "h200_dtypes", "ours", "corpus"])
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store of real traces with tables `found` (of findings), `outcomes` and the runs."""
    kept = {path.name: path for path in RESULTS}
    store = kept.get(request.param) or tmp_path_factory.mktemp(request.param)
    if request.param == "corpus" and CORPUS is None:
        pytest.skip("CROSSOVER_TRACES names no folder of traces")
    if request.param not in kept:
        paths, _ = find([Path(CORPUS or "") if request.param == "corpus" else ROOT / "tests" / "data" / "traces"])
        assert any(isinstance(each, Imported) for each in import_all(paths, store, None))
    with open_store(store, whole=True) as connection:
        connection.execute("CREATE TEMP TABLE found AS FROM findings; CREATE TEMP TABLE outcomes AS FROM rule_outcomes")
        yield connection


def test_one_outcome_a_run_and_rule(judged: duckdb.DuckDBPyConnection) -> None:
    """No rule raises an error, none is silent, none says two things of a run; what fired says a sentence."""
    runs, rows, different, silent = judged.execute(
        'SELECT (SELECT count(*) FROM stg_runs), count(*), count(DISTINCT (run_id, "rule")), '
        "count(*) FILTER (coalesce(reason, '') = '' OR outcome IS NULL) FROM outcomes"
    ).fetchall()[0]
    assert rows == different == runs * len(all_rules())
    assert silent == 0
    assert judged.execute("SELECT count(*) FROM found WHERE coalesce(sentence, '') = ''").fetchall() == [(0,)]
    wrong = 'SELECT run_id, "rule" FROM outcomes WHERE outcome = \'fired\' EXCEPT SELECT run_id, "rule" FROM found'
    assert judged.execute(wrong).fetchall() == []


def test_none_contradicts_another(judged: duckdb.DuckDBPyConnection) -> None:
    """Rules that exclude each other never both speak of a run."""
    fired = judged.execute('SELECT run_id, list("rule") FROM found GROUP BY run_id').fetchall()
    both = [(run, pair) for run, rules in fired for pair in EXCLUDED if set(pair) <= set(rules)]
    assert both == []


def test_evidence_is_in_the_trace(judged: duckdb.DuckDBPyConnection) -> None:
    """Every event that a finding names is an event of its run, and no list is longer than eight."""
    shown = "SELECT run_id, \"rule\", from_json(evidence::JSON -> '$.events', '[\"BIGINT\"]') AS ids FROM found"
    assert judged.execute(f"SELECT * FROM ({shown}) WHERE len(ids) > 8").fetchall() == []
    named = f'SELECT DISTINCT run_id, "rule", unnest(ids) AS event_id FROM ({shown})'
    assert judged.execute(f"FROM ({named}) ANTI JOIN events USING (run_id, event_id)").fetchall() == []


def test_sentences_are_plain(judged: duckdb.DuckDBPyConnection) -> None:
    """No NULL, NaN or dangling unit got into a sentence or reason; a gain is above 1."""
    odd = r"\b(NULL|nan|NaN|None|inf|infinity)\b|  |\(\)|[^e]-\d+(\.\d+)? (us|ms|s|%)\b"
    told = judged.execute(
        'SELECT "rule", sentence FROM found WHERE regexp_matches(sentence, ?) UNION ALL '
        "SELECT \"rule\", reason FROM outcomes WHERE outcome <> 'not applicable' AND regexp_matches(reason, ?)",
        [odd, odd],
    ).fetchall()
    assert told == []
    assert judged.execute('SELECT "rule", gain FROM found WHERE NOT gain > 1').fetchall() == []


def test_twelve_rules_fire_on_the_h200() -> None:
    """The kept results of one H200 show twelve patterns or more."""
    with open_store(RESULTS[0], whole=True) as connection:
        fired = Counter(row[0] for row in connection.execute('SELECT "rule" FROM findings').fetchall())
    assert len(fired) >= 12
