"""Figures in sentences of SQL: one way for times, one for amounts of memory."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from analysis.store import SQL


@pytest.fixture(scope="module")
def macros() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that knows the shared macros."""
    with duckdb.connect() as connection:
        connection.execute((SQL / "_macros.sql").read_text(encoding="utf-8"))
        yield connection


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9994, "0.999"),
        (0.9996, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (999.6, "1000"),
        (12_921, "12900"),
        (0, "0"),
    ],
)
def test_a_number_has_three_digits(macros: duckdb.DuckDBPyConnection, value: float, text: str) -> None:
    """Also where rounding makes a power of ten of it."""
    assert macros.execute("SELECT _number(?::DOUBLE)", [value]).fetchone() == (text,)


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, None),
        (0, "0 us"),
        (0.372, "0.372 us"),
        (999.4, "999 us"),
        (999.6, "1.00 ms"),
        (27_025, "27.0 ms"),
        (999_400, "999 ms"),
        (999_600, "1.00 s"),
        (166e6, "166 s"),
        (-12_345, "-12.3 ms"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(
    macros: duckdb.DuckDBPyConnection, us: float | None, text: str | None
) -> None:
    """Three digits, never more in front of the point; what is unknown stays unknown."""
    assert macros.execute("SELECT _time(?::DOUBLE)", [us]).fetchone() == (text,)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, None),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (33_554_432, "32.0 MiB"),
        (150_000_000_000, "140 GiB"),
        (-3 * 2**20, "-3.00 MiB"),
    ],
)
def test_memory_is_told_in_powers_of_1024(
    macros: duckdb.DuckDBPyConnection, amount: int | None, text: str | None
) -> None:
    """As torch and the page tell it; freed memory keeps its sign."""
    assert macros.execute("SELECT _bytes(?::BIGINT)", [amount]).fetchone() == (text,)


@pytest.mark.parametrize("macro", ["_number", "_time", "_bytes", "_percent"])
@pytest.mark.parametrize(
    "value", ["NULL", "'nan'::DOUBLE", "-9223372036854775808", "(-128)::TINYINT", "300::USMALLINT"]
)
def test_no_value_of_any_type_is_too_much(macros: duckdb.DuckDBPyConnection, macro: str, value: str) -> None:
    """Whole numbers have ends at which abs() and a product fail; what is unknown stays unknown."""
    (text,) = macros.execute(f"SELECT {macro}({value})").fetchone() or ()
    assert (text is None) == (value in ("NULL", "'nan'::DOUBLE"))


def test_infinity_keeps_its_sign(macros: duckdb.DuckDBPyConnection) -> None:
    """Infinitely much freed is not infinitely much held."""
    assert macros.execute("SELECT _bytes('-inf'::DOUBLE), _bytes(1023.6)").fetchone() == ("-infinity GiB", "1.00 KiB")
