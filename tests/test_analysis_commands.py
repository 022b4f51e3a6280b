"""python -m analysis: what each command prints, in which format, and with which exit code."""

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest
from given import write_store

from analysis.__main__ import COMMANDS, NAMES, main, parser
from analysis.commands import options
from analysis.commands.views import VIEWS
from analysis.output import FORMATS, plain, short, whole, write_rows, write_table
from analysis.store import StoreError, open_store

ROOT = Path(__file__).parents[1]

RUNS = [
    {"size": 64, "wall_us": 18, "issue_us": 18, "device_us": 5, "replay_us": 3},
    {"size": 128, "wall_us": 36.72, "issue_us": 18, "device_us": 36},
    {"size": 256, "status": "oom", "reason": "too big"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of two good points and a failed one on an asynchronous device."""
    return str(write_store(tmp_path_factory.mktemp("store"), runs=RUNS))


@pytest.fixture(scope="module")
def database(store: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """That store, open."""
    with open_store(store) as connection:
        yield connection


@pytest.fixture
def opened_once(store: str, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what comes behind the opening of that store, which takes long: one database answers them all."""

    def opened(folder: str | Path) -> duckdb.DuckDBPyConnection:
        assert str(folder) == store
        return database.cursor()

    monkeypatch.setattr("analysis.store.open_store", opened)


def test_every_view_shows_columns_that_it_has(store: str) -> None:
    """The columns of every table and the order of its rows exist."""
    with open_store(store, whole=True) as connection:
        for name, view in VIEWS.items():
            connection.execute(f"SELECT {view.shown} FROM {name} ORDER BY {view.order}")


def test_csv_has_a_header_and_all_columns(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """csv holds every column of the relation; NULL is an empty field."""
    main(["bounds", "--store", store, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["size"], row["bound"], row["batch"]) for row in rows] == [
        ("64", "overhead-bound", ""),
        ("128", "device-bound", ""),
        ("256", "unknown", ""),
    ]
    assert "sentence" in rows[0]


def test_json_is_one_array_of_numbers(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """json holds numbers as numbers and unknown values as null."""
    main(["bounds", "--store", store, "--format", "json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["size"], row["gain"], row["batch"]) for row in rows] == [
        (64, 6.0, None),
        (128, None, None),
        (256, None, None),
    ]


def test_json_of_nothing_and_of_odd_values(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No rows are an empty array; NaN and infinity are null; decimals are numbers; lists stay lists."""
    main(["kernels", "--store", store, "--format", "json"])
    assert json.loads(capsys.readouterr().out) == []
    query = "SELECT 'nan'::DOUBLE a, 'inf'::DOUBLE b, 1.5 c, [1, NULL] d, true e, DATE '2025-01-02' f, {'x': 1} g"
    main(["sql", query, "--store", store, "--format", "json"])
    assert json.loads(capsys.readouterr().out) == [
        {"a": None, "b": None, "c": 1.5, "d": [1, None], "e": True, "f": "2025-01-02", "g": {"x": 1}}
    ]


def test_table_in_a_pipe_is_plain_and_aligned(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table shows chosen columns, none that is empty, 4 significant digits, and no escape codes."""
    main(["bounds", "--store", store])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        *("workload", "size", "dtype", "compile", "warmup", "device", "wall_us", "issue_us", "device_us"),
        *("bound", "margin", "gain", "reason"),
    ]
    assert lines[1].split()[:12] == [
        *("matmul_add", "64", "fp32", "false", "true", "cuda", "18", "18", "5"),
        *("overhead-bound", "3.6", "6"),
    ]
    assert len({line.index(word) for line, word in zip(lines[1:], ("over", "device-b", "unk"), strict=True)}) == 1


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_table_on_a_terminal_is_drawn() -> None:
    """On a terminal rich draws the table; square brackets are text, not markup."""
    terminal = Terminal()
    write_table(["name", "value"], iter([("[red]", 1.23456)]), terminal)
    assert "[red]" in terminal.getvalue()
    assert "1.235" in terminal.getvalue()
    assert "─" in terminal.getvalue()


def test_what_is_alike_is_said_once() -> None:
    """On a terminal a column with one value for all rows stands above the table."""
    terminal = Terminal()
    write_table(["dtype", "size"], iter([("fp32", 64), ("fp32", 128)]), terminal)
    assert terminal.getvalue().splitlines()[0] == "in every row: dtype=fp32"
    assert terminal.getvalue().count("fp32") == 1


def test_settings_that_a_workload_shares_are_said_once() -> None:
    """A table keeps those that tell its rows apart; a workload with one row keeps all, quoted words stay whole."""
    terminal = Terminal()
    quoted = "'workload.note=\"a b\"'"
    rows = [
        ("train", 8, f"workload.layers=2 {quoted} workload.optimizer=adam"),
        ("train", 8, f"workload.layers=2 {quoted} workload.optimizer=sgd"),
        ("norm", 8, "workload.kind=rms"),
        ("plain", 8, None),
    ]
    write_table(["workload", "size", "settings"], iter(rows), terminal)
    told = terminal.getvalue()
    assert told.splitlines()[0] == f"in every row of train: workload.layers=2  {quoted}"
    assert told.count("layers") == told.count("a b") == 1
    assert all(word in told for word in ("optimizer=adam", "optimizer=sgd", "kind=rms"))


def test_settings_in_the_words_of_a_point_are_said_once() -> None:
    """What names the point stays in its row, and so does all of a workload's only row."""
    terminal = Terminal()
    rows = [
        ("train size=8 workload.layers=2 workload.impl=loop", "compile"),
        ("train size=8 workload.layers=2 workload.impl=fused", "compile"),
        ("norm size=8 workload.kind=rms", "graph"),
        (None, "none"),
    ]
    write_table(["point", "cure"], iter(rows), terminal)
    first, *table = terminal.getvalue().splitlines()
    assert first == "in every row of train: workload.layers=2"
    drawn = "\n".join(table)
    assert "layers" not in drawn and "train size=8 workload.impl=loop" in drawn
    assert "norm size=8 workload.kind=rms" in drawn


def test_settings_alike_in_all_rows_leave_no_column() -> None:
    """Nothing of the column is left where every workload shares all of them."""
    terminal = Terminal()
    rows = [(name, size, f"workload.of={name}") for name in ("a", "b") for size in (1, 2)]
    write_table(["workload", "size", "settings"], iter(rows), terminal)
    first, second, *table = terminal.getvalue().splitlines()
    assert (first, second) == ("in every row of a: workload.of=a", "in every row of b: workload.of=b")
    assert "settings" not in "".join(table)


def test_a_table_too_wide_for_the_terminal_becomes_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal a row is lines of column and value, without those that it lacks."""
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    write_table(["a_long_name", "b_long_name", "c_long_name"], iter([(1, None, "x"), (2, 3, "y")]), terminal)
    lines = [line.split() for line in terminal.getvalue().splitlines()]
    assert [line[:2] for line in lines] == [
        ["row", "1"],
        ["a_long_name", "1"],
        ["c_long_name", "x"],
        ["row", "2"],
        ["a_long_name", "2"],
        ["b_long_name", "3"],
        ["c_long_name", "y"],
    ]
    assert max(map(len, terminal.getvalue().splitlines())) <= 30


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR a terminal gets no colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    write_table(["a"], iter([(1,), (2,)]), terminal)
    assert not re.search(r"\x1b\[[0-9;]*(3|4|9|10)[0-9](;|m)", terminal.getvalue())


def test_numbers_are_never_cut() -> None:
    """However narrow the terminal, a number is shown whole."""
    terminal = Terminal()
    write_table(
        [f"column_{place}" for place in range(20)], iter([(1234567 + place,) * 20 for place in range(2)]), terminal
    )
    assert terminal.getvalue().count("1234568") == 20


def test_a_wide_bracket_comes_with_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the table stands the search that narrows the crossing, on a line of its own."""
    store = write_store(tmp_path, runs=[RUNS[0], {**RUNS[1], "size": 4096}])
    main(["crossovers", "--store", str(store)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "to narrow the crossing between 64 and 4096 of size:"
    assert lines[4].startswith("  python -m runner -m hydra/sweeper=crossover search.axis=size search.low=64 ")


def test_a_crossing_without_a_value_is_narrowed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three searches at most are printed; a value in a wide bracket can wait."""
    found = [{**run, "batch": batch} for run in RUNS[:2] for batch in (1, 2, 4)]
    store = write_store(tmp_path, runs=[*found, RUNS[0], {**RUNS[1], "size": 4096}])
    main(["crossovers", "--store", str(store)])
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("to narrow", "and "))]
    assert told == [
        "to narrow the crossing between 64 and 4096 of size:",
        *["to narrow the crossing 100 (64 to 128) of size:"] * 2,
        "and 1 more: column command of `--format csv`",
    ]


def test_parquet_and_files(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o FILE holds the result, whole; stdout stays empty, and no draft is left."""
    for format in ("parquet", "csv"):
        assert (
            main(["crossovers", "--store", store, "--format", format, "-o", str(tmp_path / "new" / f"x.{format}")]) == 0
        )
    assert capsys.readouterr().out == ""
    assert pl.read_parquet(tmp_path / "new" / "x.parquet")["text"].to_list() == ["100 (64 to 128)"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["x.csv", "x.parquet"]


def test_parquet_through_a_pipe(store: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Parquet goes to a stdout that is no terminal."""
    assert main(["axes", "--store", store, "--format", "parquet"]) == 0
    assert len(pl.read_parquet(io.BytesIO(capsysbinary.readouterr().out))) == 7 * 3


def test_sql(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A query over the relations prints its rows; a wrong one is one sentence and 1."""
    assert (
        main(["sql", "SELECT size, bound FROM bounds ORDER BY size LIMIT 1", "--store", store, "--format", "csv"]) == 0
    )
    assert capsys.readouterr().out == "size,bound\n64,overhead-bound\n"
    assert main(["sql", "SELECT nothing FROM bounds", "--store", store]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("python -m analysis: Binder Error")
    assert printed.err.count("\n") == 1


def test_law_in_words_then_rows(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """law says the share, the worst and the agreement first; all points kept it, so it ends well."""
    assert main(["law", "--store", store]) == 0
    words, empty, header = capsys.readouterr().out.splitlines()[:3]
    assert words == (
        "env: wall = max(issue, device) holds within 5 % on 2 of 2 points (100 %); median 1 %, "
        "worst 2 % (matmul_add size=128 dtype=fp32 compile=false). The bound agrees with the replay on 1 of 1 points, "
        "farther than 10 % from the crossing on 1 of 1."
    )
    assert empty == ""
    assert header.startswith("workload")


def test_law_words_stay_out_of_data(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the formats for programs the words go to stderr."""
    main(["law", "--store", store, "--format", "json"])
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == 2
    assert printed.err.startswith("env: wall = max(issue, device) holds")


def test_law_below_95_percent_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below 95 % of the points the stated figure is missed."""
    runs = [{**RUNS[0], "size": size} for size in range(18)] + [{**RUNS[0], "size": 99, "wall_us": 19.2}]
    assert main(["law", "--store", str(write_store(tmp_path / "miss", runs=runs))]) == 2
    assert main(["law", "--store", str(write_store(tmp_path / "hold", runs=[*runs, {**RUNS[0], "size": 98}]))]) == 0


def test_law_of_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A CPU has no asynchronous device: that is said, and is no failure."""
    store = write_store(tmp_path, runs=[{"device": "cpu", "wall_us": 5, "floor_us": 4}])
    assert main(["law", "--store", str(store)]) == 0
    assert "needs an asynchronous device" in capsys.readouterr().out


def test_missing_store_and_wrong_usage_end_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing could be done: one sentence on stderr, and 1."""
    assert main(["bounds", "--store", str(tmp_path / "nowhere")]) == 1
    assert "there is no store at" in capsys.readouterr().err
    for wrong in (["bound"], ["bounds", "--format", "xml"], ["trace"]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_help_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    """--help lists every command, wherever it is called."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed and told in printed for name, (_, told) in NAMES.items())
    assert [line for line in printed.splitlines() if line.endswith(":")] == [
        f"{group}:" for group in (*COMMANDS, "options")
    ]


def test_no_command_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command nothing can be done: the list is printed, and the exit code is 1."""
    assert main([]) == 1
    assert "verdicts:\n  bounds " in capsys.readouterr().out


def test_a_wrong_name_is_told_its_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of the finger costs no look at the help."""
    with pytest.raises(SystemExit):
        main(["crosover"])
    assert "there is no command 'crosover'; nearest: crossovers" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help ends with command lines to copy, each of this command."""
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: python -m analysis {name} ")
    lines = printed.partition("example")[2].splitlines()[1:]
    assert 1 <= len(lines) <= 3
    assert all(line.startswith(f"  python -m analysis {name}") for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_every_example_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What a help shows runs as it stands, in a folder that holds docs/, and prints something or writes its file."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    for example in examples(name):
        words, _, redirected = example.partition(" > ")
        assert main(shlex.split(words)[3:]) == 0
        printed = capfd.readouterr().out
        assert printed.strip() or any(path.name != "docs" for path in tmp_path.iterdir())
        assert not redirected or printed.count("\n") > 1


def examples(name: str) -> list[str]:
    """The command lines that the help of a command shows."""
    top = parser([name])
    assert top._subparsers is not None
    [commands] = [action.choices for action in top._subparsers._group_actions if isinstance(action.choices, dict)]
    return [line.strip() for line in commands[name].epilog.splitlines()[1:]]


def test_help_imports_no_duckdb() -> None:
    """The list of commands comes at once: what takes long to import is left to those who need it."""
    code = "import analysis.__main__ as a, sys; a.parser([]).format_help(); sys.exit(bool({'duckdb', 'polars', 'rich', "
    code += "'altair'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_formats_are_those_of_the_output() -> None:
    """The command line offers what the output can write; it lists them anew so as not to import it."""
    assert (*FORMATS, "parquet") == options.FORMATS


def test_a_closed_pipe_is_no_error(store: str) -> None:
    """`| head` closes the pipe early: no traceback, and it ends well."""
    command = [
        sys.executable,
        "-m",
        "analysis",
        "sql",
        "SELECT * FROM range(1000000)",
        "--store",
        store,
        "--format",
        "csv",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (1448.1546, "1448"),
        (12345.6, "12346"),
        (0.00012345, "0.0001234"),
        (-3.14159, "-3.142"),
        (4e12, "4.000e+12"),
    ],
)
def test_short_numbers(number: float, text: str) -> None:
    """Numbers in a table have 4 significant digits."""
    assert short(number) == text


def test_plain_keeps_what_json_can_hold() -> None:
    """Values of the database become values of JSON, inside lists and objects too."""
    assert plain({"a": [float("nan"), 1, True, None, b"x"]}) == {"a": [None, 1, True, None, "b'x'"]}


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ; ",
        "SELECT 1; SELECT 2",
        "COPY stg_runs TO '{file}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}'",
        "DROP TABLE stg_runs",
        "INSTALL json",
    ],
)
@pytest.mark.usefixtures("opened_once")
def test_sql_only_reads(store: str, query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but one statement that reads: DuckDB itself would write files, the store's own included."""
    file = tmp_path / "written"
    assert main(["sql", query.format(file=file), "--store", store]) == 1
    assert "one statement that reads" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "SELECT size FROM bond",
            'Did you mean "bounds"? In line 1: SELECT size FROM bond (python -m analysis describe',
        ),
        ("SELECT\n  sise\nFROM bounds", "In line 2: sise (python -m analysis describe RELATION lists its columns)"),
        ("FROM bounds WHERE", "Parser Error"),
        ("PIVOT bounds ON compile USING count(*)", "a PIVOT must name its columns"),
    ],
)
@pytest.mark.usefixtures("opened_once")
def test_a_wrong_query_is_one_helpful_line(
    store: str, query: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What DuckDB proposes, the line of the query, and the command that lists what there is."""
    assert main(["sql", query, "--store", store]) == 1
    printed = capsys.readouterr().err
    assert told in printed
    assert printed.count("\n") == 1


@pytest.mark.usefixtures("opened_once")
def test_a_pivot_with_named_columns_is_a_query(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """PIVOT reads as well, where it need not look at the data before."""
    query = "PIVOT bounds ON compile IN ('false') USING count(*) GROUP BY workload"
    assert main(["sql", query, "--store", store, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "workload,false\nmatmul_add,3\n"


COMMENTED = "-- the smallest\nSELECT min(size) AS size /* of all */\nFROM bounds; -- done\n"


def stdin_of(given: bytes) -> io.TextIOWrapper:
    """A stdin that holds these bytes."""
    return io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", errors="surrogateescape")


@pytest.mark.usefixtures("opened_once")
def test_sql_from_a_file_and_from_stdin(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """-f FILE and - read the query; comments and the semicolon at its end are no second statement."""
    file = tmp_path / "query.sql"
    file.write_text(COMMENTED)
    assert main(["sql", "-f", str(file), "--store", store]) == 0
    monkeypatch.setattr(sys, "stdin", stdin_of(COMMENTED.encode()))
    assert main(["sql", "-", "--store", store]) == 0
    for format in ("csv", "json", "parquet"):
        out = str(tmp_path / f"rows.{format}")
        assert main(["sql", COMMENTED, "--store", store, "--format", format, "-o", out]) == 0
    assert capsys.readouterr().out == "size\n64\n" * 2


def test_sql_takes_one_query(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None, two, or a file that is none: one sentence that says what is allowed."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for words, told in (
        ([], "takes one query: QUERY in quotes, -f FILE, or - for what stdin says"),
        (["FROM runs", "-f", "x.sql"], "takes one query"),
        (["-f", str(tmp_path / "none.sql")], "none.sql cannot be read: No such file or directory"),
        (["-f", str(tmp_path / "binary")], "is no text in UTF-8"),
    ):
        assert main(["sql", *words, "--store", store]) == 1
        printed = capsys.readouterr().err
        assert told in printed and printed.count("\n") == 1


@pytest.mark.parametrize("query", ["FROM runs", "WITH a AS (SELECT 1) FROM a", "DESCRIBE runs", "SUMMARIZE runs"])
@pytest.mark.usefixtures("opened_once")
def test_sql_reads_in_every_way(store: str, query: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every statement that reads is a query."""
    assert main(["sql", query, "--store", store]) == 0
    assert capsys.readouterr().out


@pytest.mark.usefixtures("script_made_once")
def test_a_place_that_is_no_file_is_left_alone(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is not replaced by a file, by no command; a device takes what is written and stays one."""
    for command in (["bounds", "--format", "csv"], ["bounds", "--format", "parquet"], ["report"]):
        assert main([*command, "--store", store, "-o", str(tmp_path)]) == 1
        assert str(tmp_path) in capsys.readouterr().err
        assert main([*command, "--store", store, "-o", "/dev/null"]) == 0
    assert tmp_path.is_dir() and Path("/dev/null").is_char_device()


def test_a_name_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in a workload's name are shown, not obeyed."""
    folder = write_store(tmp_path / "store", runs=[{"workload": "\x1b[31mred\x1b[0m"}])
    assert main(["runs", "--store", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\\x1b[31mred" in shown


@pytest.mark.usefixtures("script_made_once")
def test_times_beyond_measure_are_no_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store with absurd numbers still has verdicts and a report."""
    runs = [
        {"size": size, "wall_us": 1e308, "issue_us": 1e308, "device_us": value}
        for size, value in ((8, 0), (16, 1e-300))
    ]
    folder = str(write_store(tmp_path / "store", runs=runs))
    assert main(["law", "--store", folder]) in (0, 2)
    assert "nan" not in capsys.readouterr().out
    assert main(["report", "--store", folder, "-o", str(tmp_path / "report.html")]) == 0


GRID = [
    {"size": size, "compile": compile, "wall_us": 18, "issue_us": 18, "device_us": device}
    for compile in ("false", "true")
    for size, device in ((64, 5), (128, 36))
]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of two sizes, eager and compiled; the small eager point was measured twice."""
    runs = [*GRID, {**GRID[0], "issue_us": 19}]
    return str(write_store(tmp_path_factory.mktemp("grid"), runs=runs))


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["bounds", "size=64"], 2),
        (["bounds", "size=64 compile=false"], 1),
        (["points", "compile=true"], 2),
        (["confidence", "size=128", "compile=true"], 1),
        (["runs", "size=64", "compile=false"], 2),
        (["axes", "size=128"], 2 * 7),
        (["crossovers", "compile=true"], 1),
    ],
)
def test_points_choose_the_rows_of_a_view(
    grid: str, words: list[str], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """POINT may name several points where a view has a row for each of them."""
    assert main([*words, "--store", grid, "--format", "csv"]) == 0
    assert len(list(csv.reader(io.StringIO(capsys.readouterr().out)))) - 1 == number


def test_a_point_that_is_none_is_told_alike_everywhere(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that takes a POINT names the same candidates."""
    commands = ("bounds", "runs", "kernels", "crossovers", "trace", "table", "code", "findings", "export")
    for name in commands:
        assert main([name, "size=63", "--store", grid]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == len(commands) and len(set(errors)) == 1
    assert "'size=63' names no point: there are " in errors[0]


WRITING = [
    ["bounds", "-o", "{place}/x.csv"],
    ["sql", "FROM runs", "--format", "parquet", "-o", "{place}/runs/x/zz.parquet"],
    ["compare", "size=64", "size=128", "-o", "{place}/x"],
    ["compare", "size=64", "--save", "{place}/x.parquet"],
    ["history", "wall_us", "--chart", "{place}/x.svg"],
    ["report", "-o", "{place}/x.html"],
    ["report", "--charts", "{place}/charts"],
    ["export", "-o", "{place}/x.csv"],
    ["export", "--dictionary", "{place}/x.md"],
    ["open", "-o", "{place}/x.duckdb"],
]


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_no_command_writes_in_the_store(
    store: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever option names a place inside the store, by a link as well, is refused before anything is done."""
    (tmp_path / "link").symlink_to(store)
    before = sorted(Path(store).rglob("*"))
    for place in (store, tmp_path / "link"):
        assert main([*(word.format(place=place) for word in command), "--store", store]) == 1
        printed = capsys.readouterr()
        assert "lies inside the store" in printed.err and printed.err.count("\n") == 1 and not printed.out
    assert sorted(Path(store).rglob("*")) == before


def test_the_default_place_may_lie_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report that nobody gave a place does not go into a store that is its own default's folder."""
    monkeypatch.chdir(tmp_path)
    write_store(tmp_path / "outputs", runs=RUNS)
    assert main(["report", "--store", "outputs"]) == 1
    assert "outputs/report.html lies inside the store" in capsys.readouterr().err


@pytest.mark.parametrize("sides", [["{other}", "size=64"], ["size=64", "{other} size=64"], ["{other}"]])
def test_compare_writes_in_no_store_that_a_side_names(
    store: str, sides: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stores of A and B are stores as well, though --store names another."""
    other = write_store(tmp_path / "other", runs=RUNS)
    option = "-o" if len(sides) > 1 else "--save"
    words = [side.format(other=other) for side in sides]
    assert main(["compare", *words, "--store", store, option, str(other / "x.parquet")]) == 1
    assert "lies inside the store" in capsys.readouterr().err
    assert not (other / "x.parquet").exists()


def test_two_results_need_two_files(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One place for two options is refused, however it is written; a device takes both."""
    file = tmp_path / "x.svg"
    words = ["history", "wall_us", "--format", "csv", "--store", store]
    assert main([*words, "-o", str(file), "--chart", str(tmp_path / "new" / ".." / "x.svg")]) == 1
    assert "two results cannot both be written to" in capsys.readouterr().err
    assert not file.exists()


def test_an_empty_path_is_no_folder(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty --store or -o, from a variable that is not set, is not the current folder."""
    for words in (["bounds", "--store", ""], ["bounds", "--store", store, "-o", ""], ["report", "--charts", " "]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 1
        assert "it is empty: give it a value" in capsys.readouterr().err


ENDLESS = "SELECT a.range + b.range AS s FROM range(10_000_000) a, range(10_000_000) b WHERE s = -1"


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_ctrl_c_ends_a_query(format: str, tmp_path: Path) -> None:
    """In whatever format the result goes to a file: soon, without a word, with 130, and no draft is left."""
    code = f"""
import _thread, sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
import analysis.__main__, analysis.commands.sql, analysis.output
ask = analysis.output.interruptible
def asked(connection, query):
    print("asked", flush=True)
    return ask(connection, query)
analysis.output.interruptible = asked
sys.exit(analysis.__main__.main(sys.argv[1:]))
"""
    store = write_store(tmp_path / "store", runs=RUNS)
    out = tmp_path / "new" / "rows"
    words = ["sql", ENDLESS, "--store", str(store), "--format", format, "-o", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == b"asked\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
        assert process.stderr.read() == b""
    assert not out.parent.exists() or list(out.parent.iterdir()) == []


def test_a_query_that_has_not_begun_is_ended_too() -> None:
    """Ctrl-C between two queries, where DuckDB has nothing to interrupt yet, ends the next one."""
    release = threading.Event()

    class Slow:
        """A connection that is interrupted in vain before its query runs."""

        interrupted = 0

        def execute(self, _query: str) -> None:
            release.wait(10)

        def interrupt(self) -> None:
            self.interrupted += 1
            if self.interrupted == 3:
                release.set()

    slow = Slow()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        write_rows(slow, "", "csv", None)  # type: ignore[arg-type]
    timer.join()
    assert slow.interrupted >= 3


@pytest.mark.parametrize(
    "error", [RuntimeError("Query interrupted"), duckdb.InterruptException("x"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_interrupt_is_no_fault(
    error: BaseException, wrapped: bool, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whatever error DuckDB tells of Ctrl-C, and whoever has made another one of it: 130 and no word."""

    def interrupted(*_: object, **__: object) -> None:
        if wrapped:
            raise StoreError("the store cannot be read") from error
        raise error

    monkeypatch.setattr("analysis.commands.views.store.open_store", interrupted)
    assert main(["bounds", "--store", store]) == 130
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_a_fault_of_the_program_is_not_hidden(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another RuntimeError is neither Ctrl-C nor the user's: it shows where it came from."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("Query went wrong")

    monkeypatch.setattr("analysis.commands.views.store.open_store", broken)
    with pytest.raises(RuntimeError, match="went wrong"):
        main(["bounds", "--store", store])


def test_ctrl_c_while_modules_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first second goes by in imports: Ctrl-C ends it alike."""

    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("analysis.__main__.import_module", interrupted)
    assert main(["bounds"]) == 130


AWKWARD = "SELECT 'ä€😀' AS ü; -- é\n/* ö */ ;"


@pytest.mark.usefixtures("opened_once")
def test_sql_beyond_ascii(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A byte order mark is no part of a query, and what ends it is found behind letters of several bytes."""
    file = tmp_path / "query.sql"
    file.write_bytes(b"\xef\xbb\xbf" + AWKWARD.encode())
    monkeypatch.setattr(sys, "stdin", stdin_of(file.read_bytes()))
    for words in (["-f", str(file)], ["-"], [AWKWARD], ["\ufeff" + AWKWARD]):
        assert main(["sql", *words, "--store", store, "--format", "csv"]) == 0
        assert capsys.readouterr().out == "ü\nä€😀\n"


def test_sql_that_is_no_text(store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that are no UTF-8 are one sentence, from stdin and on the command line."""
    monkeypatch.setattr(sys, "stdin", stdin_of(b"SELECT \xff"))
    for word, name in (("-", "stdin"), ("SELECT \udcff", "the query")):
        assert main(["sql", word, "--store", store]) == 1
        assert capsys.readouterr().err == f"python -m analysis: {name} is no text in UTF-8: a query is text\n"


def test_relations_on_demand_in_capitals(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """DuckDB tells no case apart: a relation that is made on demand is found alike."""
    assert main(["sql", "SELECT count(*) AS n FROM Findings", "--store", store, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n0\n"


@pytest.mark.parametrize(
    ("redirected", "code", "told"),
    [
        ("sql - <&-", 1, "python -m analysis: stdin is closed: give the query in quotes, or -f FILE\n"),
        ("sql 'SELECT 1' >&-", 1, "python -m analysis: stdout is closed: leave it open, or send it to a file\n"),
        ("law --format csv 2>&- | head -c 8", 0, "point_id"),
    ],
)
def test_closed_streams(store: str, redirected: str, code: int, told: str) -> None:
    """A closed stdin or stdout is one sentence; words for a closed stderr do not get into the data."""
    line = f"{shlex.quote(sys.executable)} -m analysis {redirected.replace(' ', f' --store {store} ', 1)}"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, done.stdout) == (code, told)


def test_stdout_by_name(store: str, tmp_path: Path) -> None:
    """-o /dev/stdout writes where the shell sends it: down a pipe, and in its turn into a file that others write to."""
    command = (
        f"{shlex.quote(sys.executable)} -m analysis sql 'SELECT 1 AS a' --store {store} -o /dev/stdout --format csv"
    )
    line = f"(echo before; {command}; echo after)"
    piped = subprocess.run(["sh", "-c", f"{line} | cat"], cwd=ROOT, capture_output=True, text=True)
    file = tmp_path / "file"
    subprocess.run(["sh", "-c", f"{line} > {file}"], cwd=ROOT, check=True)
    assert piped.stdout == file.read_text() == "before\na\n1\nafter\n"


@pytest.mark.usefixtures("opened_once")
def test_a_file_by_a_link(store: str, tmp_path: Path) -> None:
    """The file that a link leads to is replaced, and the link stays; nothing is written beside the link."""
    there, here = tmp_path / "there" / "rows.csv", tmp_path / "here"
    here.mkdir()
    link = here / "link.csv"
    link.symlink_to(there)
    here.chmod(0o500)
    assert main(["sql", "SELECT 1 AS a", "--store", store, "--format", "csv", "-o", str(link)]) == 0
    here.chmod(0o700)
    assert there.read_text() == "a\n1\n" and link.is_symlink()
    assert [each.name for each in (*here.iterdir(), *there.parent.iterdir())] == ["link.csv", "rows.csv"]


def test_a_draft_is_beside_the_file(tmp_path: Path) -> None:
    """A move is whole on one disk alone: the draft is made where the link leads to."""
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "file")
    with whole(link) as draft:
        draft.write_text("x")
        assert draft.parent.parent == tmp_path / "there"


def test_links_in_a_circle(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link that leads to itself is no place to write to."""
    (tmp_path / "loop").symlink_to("loop")
    assert main(["bounds", "--store", store, "-o", str(tmp_path / "loop")]) == 1
    assert "its links lead in a circle" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a\rb", "a\r", "\r\n", "a\nb", 'a"b', "a,b", " a "])
@pytest.mark.usefixtures("opened_once")
def test_csv_gives_texts_back(store: str, text: str, tmp_path: Path) -> None:
    """Every text is read back as it was, bare carriage returns included; lines end with a newline alone."""
    file = tmp_path / "x.csv"
    letters = " || ".join(f"chr({ord(letter)})" for letter in text)
    assert main(["sql", f"SELECT {letters} AS a, 1 AS b", "--store", store, "--format", "csv", "-o", str(file)]) == 0
    with file.open(newline="") as stream:
        assert list(csv.reader(stream)) == [["a", "b"], [text, "1"]]
    assert file.read_bytes().startswith(b"a,b\n") and file.read_bytes().endswith(b",1\n")


@pytest.mark.usefixtures("opened_once")
def test_columns_of_one_name(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """json refuses what it cannot hold; csv and a drawn table keep both columns."""
    words = ["sql", "SELECT 1 AS a, 2 AS a", "--store", store]
    assert main([*words, "--format", "json"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and "json cannot hold two columns named a: name them apart with AS" in printed.err
    assert main([*words, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a,a\n1,2\n"
    terminal = Terminal()
    write_table(["a", "a"], iter([(1, 2), (3, 4)]), terminal)
    assert [line.split() for line in terminal.getvalue().splitlines()[3:5]] == [["1", "2"], ["3", "4"]]


@pytest.mark.usefixtures("opened_once")
def test_a_shells_variable_left_behind(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COMP_LINE counts only where a shell asks for completions."""
    monkeypatch.delenv("_ARGCOMPLETE", raising=False)
    monkeypatch.setenv("COMP_LINE", "something else")
    assert main(["sql", "SELECT 1 AS a", "--store", store, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\n1\n"
