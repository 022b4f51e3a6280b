"""How well the step law holds, in words and point by point."""

import argparse
import sys
from typing import Any

import duckdb

from analysis import store
from analysis.commands.options import FIGURE_MISSED, WELL, Parser, add_examples, add_result, is_told
from analysis.commands.views import H200, write_view
from analysis.output import short

LAW_SHARE = 0.95
"""Share of points that must keep the step law within 5 %."""


def arguments(command: Parser) -> None:
    """No points: the law is judged over all of a store."""
    command.set_defaults(point=[])
    add_result(command)
    add_examples(command, f"law {H200}")


def run(given: argparse.Namespace) -> int:
    """Say how well the law holds, then write its rows; 2 where it does not."""
    with store.open_store(given.store) as connection:
        sentences, holds = law_in_words(connection)
        told = is_told(given)
        print("\n".join(sentences), end="\n\n" if told else "\n", file=sys.stdout if told else sys.stderr)
        write_view(connection, given)
    return WELL if holds else FIGURE_MISSED


def law_in_words(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], bool]:
    """Sentences on how well the step law holds in each environment, and whether it does.

    It does where 95 % of all its points keep it, and no slope or replay contradicts a bound outside the 10 % band.
    """
    result = connection.execute("FROM law_summary ORDER BY environment_id")
    names = [column[0] for column in result.description or ()]
    summaries = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    points = sum(summary["points"] for summary in summaries)
    within = sum(summary["points_within"] for summary in summaries)
    if not summaries:
        return [
            "The law wall = max(issue, device) needs an asynchronous device; no point here was measured on one."
        ], True
    against = sum(
        summary[f"{check}_points_outside"] - summary[f"{check}_agreeing_outside"]
        for summary in summaries
        for check in ("slopes", "replay")
    )
    return [_law_sentence(summary) for summary in summaries], within >= LAW_SHARE * points and not against


def _law_sentence(summary: dict[str, Any]) -> str:
    checks = [_agreement(summary, check) for check in ("slopes", "replay") if summary[f"{check}_points"]]
    return " ".join([f"{summary['environment_id']}:", _deviations(summary), *checks])


def _deviations(summary: dict[str, Any]) -> str:
    if not summary["points"]:
        return "no point has both terms of the law."
    return (
        f"wall = max(issue, device) holds within 5 % on {summary['points_within']} of {summary['points']} points "
        f"({short(100 * summary['within_frac'])} %); median {short(100 * summary['median_deviation'])} %, "
        f"worst {short(100 * summary['worst_deviation'])} % ({summary['worst_point']})."
    )


def _agreement(summary: dict[str, Any], check: str) -> str:
    return (
        f"The bound agrees with the {check} on {summary[f'{check}_agreeing']} of {summary[f'{check}_points']} points, "
        f"farther than 10 % from the crossing on {summary[f'{check}_agreeing_outside']} of "
        f"{summary[f'{check}_points_outside']}."
    )
