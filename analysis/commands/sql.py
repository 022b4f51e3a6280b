"""Queries of one's own."""

import argparse
import os
import sys
from pathlib import Path

import duckdb

from analysis import store
from analysis.commands.options import WELL, Parser, add_examples, add_result
from analysis.commands.views import H200
from analysis.output import OutputError, write_rows
from analysis.store import ON_DEMAND


def arguments(command: Parser) -> None:
    """The query, from one of three places."""
    told = "a query over what `describe` lists; - reads it from stdin"
    command.add_argument("query", nargs="?", metavar="QUERY", help=told)
    command.add_argument("-f", dest="file", type=Path, metavar="FILE", help="read the query from FILE")
    add_result(command)
    add_examples(
        command,
        f'sql "SELECT size, bound, round(gain, 2) AS gain FROM bounds ORDER BY size LIMIT 5" {H200}',
        f'sql "SUMMARIZE points" {H200} --format csv',
        f'sql "SELECT rule, sentence FROM findings ORDER BY ALL LIMIT 3" {H200}',
    )


def run(given: argparse.Namespace) -> int:
    """Write the rows of a query."""
    query = query_of(given.query, given.file)
    with store.open_store(given.store) as connection:
        _refuse_all_but_one_reading(connection, query)
        query = without_end(query)
        store.add(connection, *(name for name in ON_DEMAND if name in query.lower()))
        if "duckdb_" in query.lower():
            store.document(connection)
        write_rows(connection, query, given.format, given.path)
    return WELL


def query_of(words: str | None, file: Path | None) -> str:
    """The text of the query: the words, those of a file, or of stdin.

    Raises:
        OutputError: there is none, there are two, or the file cannot be read.
    """
    if (words is None) == (file is None):
        raise OutputError("sql takes one query: QUERY in quotes, -f FILE, or - for what stdin says")
    if words == "-" and sys.stdin is None:
        raise OutputError("stdin is closed: give the query in quotes, or -f FILE")
    name = str(file) if file is not None else "stdin" if words == "-" else "the query"
    try:
        return _bytes_of(words or "", file).decode("utf-8-sig")
    except OSError as error:
        raise OutputError(f"{name} cannot be read: {error.strerror}; name a file that holds one query") from error
    except UnicodeDecodeError as error:
        raise OutputError(f"{name} is no text in UTF-8: a query is text") from error


def _bytes_of(words: str, file: Path | None) -> bytes:
    """The query as it was given, behind a byte order mark or not."""
    if file is not None:
        return file.read_bytes()
    return sys.stdin.buffer.read() if words == "-" else os.fsencode(words)


def without_end(query: str) -> str:
    """The query without semicolons and comments behind it: it must fit into brackets."""
    text = query.encode()  # DuckDB counts bytes
    end = len(text)
    for place, kind in reversed(duckdb.tokenize(query)):
        if kind != duckdb.token_type.comment and text[place : place + 1] != b";":
            break
        end = place
    return text[:end].decode().rstrip()


def _refuse_all_but_one_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """A query must be one statement that reads: DuckDB itself would write files, into the store as well."""
    statements = connection.extract_statements(query)
    if [statement.type for statement in statements] == [duckdb.StatementType.MULTI]:
        raise OutputError("a PIVOT must name its columns here: PIVOT ... ON compile IN ('false', 'true') USING ...")
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise OutputError("a query is one statement that reads: SELECT, FROM, WITH, DESCRIBE or SUMMARIZE")
