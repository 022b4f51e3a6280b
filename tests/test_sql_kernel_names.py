"""What the names of kernels say (analysis/sql/_kernel_name.sql), against a table that was reviewed by eye."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

SQL = Path(__file__).parents[1] / "analysis" / "sql"
REVIEWED = Path(__file__).parent / "data" / "kernel_names.csv"

HOSTILE = (
    "", " ", "'; DROP TABLE names; --", '"', "\\", "\n", "é" * 10_000, "_" * 10_000, "<" * 10_000, "a<" * 5_000,
    "std::enable_if<" * 700, "nvjet_" + "9" * 10_000, "sm80_xmma_" + "f32" * 3_000, "Functor<" * 1_200,
    "void at::native::elementwise_kernel<" + "1, " * 3_000,
)  # fmt: skip


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the macros."""
    with duckdb.connect() as opened:
        for macros in ("_macros", "_kernel_name"):
            opened.execute((SQL / f"{macros}.sql").read_text(encoding="utf-8"))
        yield opened


def decoded(connection: duckdb.DuckDBPyConnection, names: list[str]) -> list[dict[str, Any]]:
    """The rows of _kernel_names, by name."""
    connection.execute("CREATE OR REPLACE TEMP TABLE given AS SELECT unnest(?::VARCHAR[]) AS name", [names])
    found = connection.execute("FROM _kernel_names('given') ORDER BY name")
    columns = [column[0] for column in found.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def as_text(value: object) -> str:
    """A value as the table writes it: nothing for NULL, words of a list by blanks."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def reviewed() -> list[dict[str, str]]:
    """The table, by name."""
    with REVIEWED.open(encoding="utf-8", newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: row["name"])


def test_every_reviewed_name_has_its_fields(connection: duckdb.DuckDBPyConnection) -> None:
    """Every field of every name of the table is read, and nothing beyond what the table has."""
    expected = reviewed()
    assert len(expected) >= 120
    found = decoded(connection, [row["name"] for row in expected])
    by_name = {row["name"]: row for row in found}
    for row in expected:
        assert {column: as_text(value) for column, value in by_name[row["name"]].items()} == row


def test_the_table_spans_libraries_and_families() -> None:
    """The table would be of little use if it held matrix products alone."""
    assert len({row["library"] for row in reviewed()}) >= 18
    assert len({row["family"] for row in reviewed()}) >= 20


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_gives_one_row(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Whatever the text, there is one row with the name unchanged, and no invented number."""
    (row,) = decoded(connection, [name])
    assert row["name"] == name
    assert all(row[column] is None for column in ("tile_m", "stages", "alignment", "split_k_slices"))


@pytest.mark.parametrize(
    "name", ["my_kernel", "foo<int, float>", "void bar(float*)", "Memcpy DtoD (Device -> Device)", "änderung"]
)
def test_an_unknown_name_gives_nulls(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """What no rule knows stays unknown in every field."""
    (row,) = decoded(connection, [name])
    assert {column for column, value in row.items() if value is not None} == {"name"}


def test_a_matrix_instruction_is_read_by_its_digits(connection: duckdb.DuckDBPyConnection) -> None:
    """s16816 is 16x8x16, s161616 is 16x16x16; in 128x64_64x6 the last pair is the tile's depth and the stages."""
    names = [
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x6_tn",
        "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align2",
    ]
    rows = decoded(connection, names)
    assert [(row["mma_shape"], row["tile_k"], row["stages"]) for row in rows] == [
        ("16x8x16", 64, 6),
        ("16x16x16", 128, 2),
    ]


def test_letters_of_nvjet(connection: duckdb.DuckDBPyConnection) -> None:
    """hsh is fp16 in, fp32 accumulated, fp16 out; the h of 1x2_h is not read, and an unknown letter gives no type."""
    fields = ("input_type", "accumulation_type", "output_type")
    rows = decoded(
        connection,
        [
            "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT",
            "nvjet_tss_128x64_64x8_2x1_v_bz_TNN",
            "nvjet_xsx_64x8_64x16_1x2_h_bz_NNT",
        ],
    )
    assert [tuple(row[field] for field in fields) for row in rows] == [
        ("fp16", "fp32", "fp16"), ("bf16", "fp32", "fp32"), (None, "fp32", None),
    ]  # fmt: skip


def test_a_number_too_large_is_no_number(connection: duckdb.DuckDBPyConnection) -> None:
    """Digits that no integer can hold stay text in the tile, and give NULL in tile_m."""
    (row,) = decoded(connection, [f"ampere_sgemm_{'9' * 30}x128_nn"])
    assert (row["tile_m"], row["tile_n"]) == (None, 128)


def test_nearly_every_name_of_the_corpus_has_a_family(connection: duckdb.DuckDBPyConnection) -> None:
    """At least 97 % of the names of public traces."""
    if "CROSSOVER_TRACES" not in os.environ:
        pytest.skip("CROSSOVER_TRACES names no folder of traces")
    text = (Path(os.environ["CROSSOVER_TRACES"]) / "kernel_names.txt").read_text(encoding="utf-8")
    rows = decoded(connection, [name for name in text.split("\n") if name])
    assert sum(row["family"] is not None for row in rows) >= 0.97 * len(rows)
