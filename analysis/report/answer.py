"""The answer in two sentences: which series cross where, and which never do in the range that was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis import theme
from analysis.charts import crossing_value, overhead_comes_first
from analysis.report.series import Series
from analysis.theme import Row, SeriesNames

MOST_NAMED = 4
SWEEP = "python -m runner -m size=64,256,1024,4096"


def environment_name(row: Row) -> str:
    """An environment in a few words: the device's model, on the CPU the host's, else its id."""
    model = row.get("host_cpu") if row.get("device") == "cpu" else row.get("device_name")
    return str(model or row.get("device_name") or row["environment_id"])


def environment_names(environments: Sequence[Row]) -> dict[str, str]:
    """The name of each environment by its id; equal models are told apart by the beginning of the id."""
    counts = Counter(environment_name(row) for row in environments)
    names = {str(row["environment_id"]): environment_name(row) for row in environments}
    return {key: name if counts[name] == 1 else f"{name} [{key[:8]}]" for key, name in names.items()}


def answer(series: Sequence[Series], place: str) -> list[str]:
    """Two sentences about the series of one environment over its main axis; one with a command if there is none."""
    if not series:
        return [f"On {place} no two points differ in a numeric axis alone, so no crossover can be stated: run {SWEEP}."]
    axis = main_axis(series)
    asked = [each for each in series if each.axis == axis]
    name = SeriesNames([each.crossing for each in asked], axis)
    crossing = [each for each in asked if crossing_value(each.crossing) is not None]
    others = [each for each in asked if crossing_value(each.crossing) is None]
    return [_crossing_sentence(crossing, len(asked), name, place), _other_sentence(others, name)]


def main_axis(series: Sequence[Series]) -> str:
    """The axis that most points lie along; of equals, size, else the first by name."""
    points = Counter(each.axis for each in series for _ in each.points)
    return min(points, key=lambda axis: (-points[axis], axis != "size", axis))


def _crossing_sentence(crossing: Sequence[Series], total: int, name: SeriesNames, place: str) -> str:
    """Crossings that have a value come first, of those the series with most points: they were looked for closest."""
    if not crossing:
        return f"On {place} no series is seen to cross from {theme.OVERHEAD_REGIME} to {theme.DEVICE_REGIME}."
    closest = sorted(crossing, key=lambda each: (each.crossing["status"] != "found", -len(each.points)))[:MOST_NAMED]
    ordered = sorted(closest, key=lambda each: crossing_value(each.crossing) or 0)
    clauses = theme.listed([f"{_where(each)} for {_plain(name(each.crossing))}" for each in ordered])
    if len(crossing) <= MOST_NAMED:
        return f"On {place} the overhead stops binding {clauses}."
    over = f"over {crossing[0].crossing['axis']} "
    return f"On {place} the overhead stops binding {clauses}; {len(crossing)} of {total} series {over}cross in all."


def _where(series: Series) -> str:
    crossing = series.crossing
    low, high = (None if crossing.get(end) is None else theme.size(crossing[end]) for end in ("low", "high"))
    reverse = "" if overhead_comes_first(series.points) else ", below it,"
    if crossing["status"] == "bracketed":
        return f"between {crossing['axis']} {low} and {high}{reverse}"
    return f"at {crossing['axis']} {theme.size(crossing['value'])} ({low} to {high}){reverse}"


def _plain(name: str) -> str:
    return name.replace(theme.SEPARATOR, " ")


def _other_sentence(others: Sequence[Series], name: SeriesNames) -> str:
    says = {
        "above": f"stays {theme.OVERHEAD_REGIME} throughout",
        "below": "is bound by the device throughout",
        "several": "changes side more than once",
        "unknown": "has no stated crossing",
    }
    groups = {status: [each for each in others if each.crossing["status"] == status] for status in says}
    clauses = [f"{_subject(group, name)} {says[status]}" for status, group in groups.items() if group]
    return f"In the range measured, {'; '.join(clauses)}." if clauses else "Every series crosses in the range measured."


def _subject(group: Sequence[Series], name: SeriesNames) -> str:
    if len(group) <= MOST_NAMED:
        names = theme.listed([_plain(name(each.crossing)) for each in group])
        return names if len(group) == 1 else f"each of {names}"
    return f"each of {len(group)} more series"
