"""The report of the proof: every figure of analysis/truth.py as one text in Markdown, for someone who is new to it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from analysis.output import short
from analysis.truth import (
    ABOVE_ROOF,
    GAIN_ERROR,
    LAW_DEVIATION,
    NO_PAIR,
    NO_SEARCH,
    Compared,
    Evidence,
    Row,
    Search,
    calibration,
    chance_of_so_many,
    known_of,
    percent,
    targets,
    within,
)

BANDS = (1.02, 1.05, 1.10, 1.25, 2.0, math.inf)
"""Upper ends of the distances from the crossing, as ratios of the larger term to the smaller."""
CONFIDENCES = (0.9, 0.99, 0.999, 1.0)
"""Upper ends of the stated confidences that are told apart."""
CHECKED = ("check undecided", "bound alone undecided", "agree", "disagree")
"""What comes of a bound and its check; together all points."""
SURE = 0.999
"""Stated confidence above which hardly one of so many verdicts may be wrong."""
NOTHING_CHECKED = "Nothing was checked: no point of the store has slopes, or on the CPU twice the work."


def in_words(evidence: Evidence) -> str:
    """The whole report in Markdown."""
    sections: Sequence[tuple[str, Callable[[Evidence], list[str]]]] = (
        ("What was to be reached", _targets_told),
        ("What was compared", _compared_told),
        ("Agreement by distance from the crossing", _agreement_told),
        ("The replay as a second check", _replay_told),
        ("Stated confidence", _confidence_told),
        ("Steps that wait", _serialized_told),
        ("Gain without launches", _gains_told),
        ("The step law", _law_told),
        ("More work, more bytes", _pairs_told),
        ("Two searches", _searches_told),
    )
    lines = ["# Is what the tool says true?", "", *_introduced(evidence)]
    for title, told in sections:
        lines += ["", f"## {title}", "", *told(evidence)]
    return "\n".join(lines) + "\n"


def _introduced(evidence: Evidence) -> list[str]:
    near = sum((row["times_from_crossing"] or math.inf) <= 2 for row in evidence.points)
    return [
        "Every point is a PyTorch step that was measured for its verdict (what binds it, the host that issues it or",
        "the device that does the work), and once more for a check: by slopes, on the CPU by twice the work. These use",
        "none of the times on which the verdict rests, but for one thing: whether both slopes may be large or small at",
        "once is asked only farther than 10 % from the crossing. The second check is not as independent: a replay of",
        "the step is a time of its own, but it is compared with issue_us, on which the verdict rests too.",
        "",
        f"{len(evidence.points)} points, {near} of them within 2 x of the size at which their series crosses over.",
        *(f"- {_environment(row)}" for row in evidence.environments),
    ]


def _environment(row: Row) -> str:
    parts = (row["device_name"] or row["device"], row["host_cpu"], row["torch"] and f"torch {row['torch']}")
    return f"`{row['environment_id']}`: " + ", ".join(dict.fromkeys(part for part in parts if part))


def _targets_told(evidence: Evidence) -> list[str]:
    return _table(("to reach", "reached", ""), [(each.name, each.reached, each.state) for each in targets(evidence)])


def _compared_told(evidence: Evidence) -> list[str]:
    if not evidence.points:
        return [NOTHING_CHECKED]
    return [
        "- **Slopes** (on a device): microseconds of host spin, then of device sleep, are added to every step. Where",
        "  the host binds, the step becomes longer by the spin alone; where the device does, by the sleep alone; where",
        "  they take turns, by both. Within 10 % of the crossing the greater slope decides. Slopes whose intervals",
        "  leave the side open are undecided and not counted.",
        "- **Twice the work** (on the CPU): the same operations on twice the rows. Work binds where the step becomes",
        "  longer by more than half.",
        "- **Replay**: the step as a CUDA graph, without launches. The host binds where issue_us is longer.",
        "- **Naive rule**: in a profile, the host's total time against the device's, as it is often done by hand.",
        "",
        *_table(
            ("bound", "points", *CHECKED, "replay agrees", "naive rule agrees"),
            [_compared_row(side, rows) for side, rows in _by_side(evidence.points)],
        ),
        "",
        *_decided_told(evidence.points),
        "",
        *_naive_told(evidence.points),
        "",
        *_disagreements(evidence.points),
    ]


def _checked(rows: Sequence[Row]) -> tuple[int, int, int, int]:
    undecided = sum(row["checked_side"] == "undecided" for row in rows)
    agree, disagree = _agreement(rows)
    return undecided, len(rows) - undecided - agree - disagree, agree, disagree


def _decided_told(rows: Sequence[Row]) -> list[str]:
    """How many of the points are evidence at all."""
    undecided = [row for row in rows if row["checked_side"] == "undecided"]
    far = sum(not row["in_band"] for row in undecided)
    return [
        f"Of {len(rows)} points {sum(_agreement(rows))} have a bound and a check that are both decided; only these",
        f"say anything. {len(undecided)} checks are undecided, {far} of them farther than 10 % from the crossing:",
        "their intervals are too wide there.",
    ]


def _naive_told(rows: Sequence[Row]) -> list[str]:
    known = [row for row in rows if row["naive_agrees"] is not None]
    able = [row for row in known if row["checked_side"] != "serialized"]
    wrong, wrong_able = (sum(not row["naive_agrees"] for row in each) for each in (known, able))
    return [
        f"The naive rule is wrong on {wrong} of {len(known)}. It can never say serialized; without those points it is",
        f"wrong on {wrong_able} of {len(able)}.",
    ]


def _by_side(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    sides = ("overhead-bound", "device", "serialized", "balanced", "unknown")
    split = [(side, [row for row in rows if row["side"] == side]) for side in sides]
    return [each for each in split if each[1]] + [("all", list(rows))]


def _compared_row(side: str, rows: Sequence[Row]) -> tuple[object, ...]:
    return (side, len(rows), *_checked(rows), _of(rows, "replay_agrees"), _of(rows, "naive_agrees"))


def _agreement(rows: Sequence[Row]) -> tuple[int, int]:
    agrees = known_of(rows, "agrees")
    return sum(agrees), len(agrees) - sum(agrees)


def _of(rows: Sequence[Row], column: str) -> str:
    known = known_of(rows, column)
    return f"{sum(known)} of {len(known)}" if known else "-"


def _disagreements(rows: Sequence[Row]) -> list[str]:
    wrong = [row for row in rows if row["agrees"] is False]
    if not wrong:
        return ["No decided check disagrees with a decided bound."]
    header = ("disagreement", "bound", "check says", "overhead / work", "confidence", "host slope", "device slope")
    columns = ("label", "bound", "checked_side", "margin", "confidence", "host_slope", "device_slope")
    return _table(header, [[row[column] for column in columns] for row in wrong])


def _agreement_told(evidence: Evidence) -> list[str]:
    header = ("overhead / work or its inverse", "points", *CHECKED, "naive agrees", "naive disagrees")
    if not evidence.points:
        return [NOTHING_CHECKED]
    return [
        "Beside the bound, against the same checks, the naive rule: what one reads off a profile.",
        "",
        *_table(header, [_band_row(*each) for each in _by_distance(evidence.points)]),
    ]


def _by_distance(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    known = [row for row in rows if row["distance"] is not None]
    split = []
    for least, most in zip((1.0, *BANDS), BANDS, strict=False):
        name = f"up to {most:g}" if math.isfinite(most) else f"above {least:g}"
        split.append((name, [row for row in known if math.log(least) <= row["distance"] < math.log(most)]))
    unknown = [row for row in rows if row["distance"] is None]
    return [each for each in [*split, ("no ratio", unknown)] if each[1]] + [("all", list(rows))]


def _band_row(name: str, rows: Sequence[Row]) -> tuple[object, ...]:
    naive = known_of(rows, "naive_agrees")
    return (name, len(rows), *_checked(rows), sum(naive), len(naive) - sum(naive))


def _replay_told(evidence: Evidence) -> list[str]:
    replayed = [row for row in evidence.points if row["replay_side"] is not None]
    if not replayed:
        return ["No point has a replay to check it."]
    header = ("overhead / work or its inverse", "points", "undecided", "bound alone undecided", "agree", "disagree")
    return [
        "A replay has a dead band of its own: within 10 % of issue_us it is undecided, since it is shorter than the",
        "device's time by what the launches cost there.",
        "",
        *_table(header, [_replay_row(*each) for each in _by_distance(replayed)]),
    ]


def _replay_row(name: str, rows: Sequence[Row]) -> tuple[object, ...]:
    undecided = sum(row["replay_side"] == "undecided" for row in rows)
    agrees = known_of(rows, "replay_agrees")
    agree, disagree = sum(agrees), len(agrees) - sum(agrees)
    return (name, len(rows), undecided, len(rows) - undecided - len(agrees), agree, disagree)


def _confidence_told(evidence: Evidence) -> list[str]:
    stated = [row for row in evidence.points if row["agrees"] is not None and row["confidence"] is not None]
    wrong, expected = calibration(stated)
    if not stated:
        return ["No checked verdict states a confidence."]
    rows = [(name, len(each), *calibration(each)) for name, each in _by_confidence(stated)]
    sure = sum(row["confidence"] > SURE for row in stated)
    return [
        *_table(("stated confidence", "points", "wrong", "wrong expected"), rows),
        "",
        f"{wrong} of {len(stated)} verdicts are wrong by the check; the stated confidences let expect",
        f"{short(expected)}. So many or more would come with probability {chance_of_so_many(stated):.2g}",
        "if every confidence were as stated (Poisson binomial).",
        "",
        f"{sure} of these {len(stated)} confidences are above {SURE:g}, where next to none may be wrong. So this says",
        "that they are not far too high; whether 0.9 means nine in ten it hardly tests.",
    ]


def _by_confidence(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    split = []
    for least, most in zip((0.0, *CONFIDENCES), CONFIDENCES, strict=False):
        inside = [row for row in rows if least < row["confidence"] <= most]
        split.append((f"up to {most:g}" if most < 1 else f"above {least:g}", inside))
    return [each for each in split if each[1]]


def _serialized_told(evidence: Evidence) -> list[str]:
    rows = [row for row in evidence.points if row["side"] == "serialized"]
    if not rows:
        return ["No checked point is serialized."]
    columns = ("label", "wall_us", "issue_us", "device_us", "host_slope", "device_slope", "checked_side")
    header = ("step", "wall us", "issue us", "device us", "host slope", "device slope", "check says")
    return [
        "Host and device take turns in these, so that a step takes longer than either:",
        "",
        *_table(header, [[row[column] for column in columns] for row in rows]),
    ]


def _gains_told(evidence: Evidence) -> list[str]:
    known = [row for row in evidence.points if row["gain_error"] is not None]
    if not known:
        return ["No point has both a predicted and an achieved gain."]
    errors = [abs(row["gain_error"]) for row in known]
    worst = sorted(known, key=lambda row: -abs(row["gain_error"]))[:5]
    columns = ("label", "predicted_gain", "achieved_gain", "gain_error")
    return [
        "Predicted: wall / (device - launches x gap), by the formula that states the gain of a step without a replay.",
        "gap is the device time of a launch beyond one in a graph, here measured at other points; what is left of",
        "device is never less than the device was seen busy. Achieved: wall / replay, the step as a CUDA graph.",
        "",
        f"Of {len(known)} predictions {_of_within(known, 'gain_error', GAIN_ERROR)} are within 10 %; the median error",
        f"is {percent(statistics.median(errors))}. {_overhead_gains_told(known)} The farthest off:",
        "",
        *_table(("step", "predicted", "achieved", "error"), [_last_percent(row, columns) for row in worst]),
    ]


def _overhead_gains_told(known: Sequence[Row]) -> str:
    """Apart, since where the device binds there is next to nothing to gain."""
    bound = [row for row in known if row["side"] == "overhead-bound"]
    if not bound:
        return "None of these points is overhead-bound."
    return f"Of the {len(bound)} overhead-bound ones {_of_within(bound, 'gain_error', GAIN_ERROR)} are within 10 %."


def _of_within(rows: Sequence[Row], column: str, most: float) -> str:
    held = within(rows, column, most)
    return f"{sum(held)} ({percent(sum(held) / len(held))})"


def _last_percent(row: Row, columns: Sequence[str]) -> list[object]:
    return [*(row[column] for column in columns[:-1]), percent(row[columns[-1]])]


def _law_told(evidence: Evidence) -> list[str]:
    known = [row for row in evidence.points if row["deviation"] is not None]
    if not known:
        return ["No point has both terms of the law, max(issue, device)."]
    middle = statistics.median(abs(row["deviation"]) for row in known)
    beyond = [row for row in known if row["explanation"] is not None]
    columns = ("label", "wall_us", "own_issue_us", "device_us", "explanation", "deviation")
    header = ("beyond 5 %", "wall us", "own issue us", "device us", "explanation", "deviation")
    return [
        f"Of {len(known)} points that are not serialized {_of_within(known, 'deviation', LAW_DEVIATION)} have",
        f"wall = max(issue, device) within 5 %; the median deviation is {percent(middle)}. issue is here that of",
        "the point's own runs, and the ratio is formed within each round.",
        *(["", *_table(header, [_last_percent(row, columns) for row in beyond])] if beyond else []),
    ]


def _pairs_told(evidence: Evidence) -> list[str]:
    if not evidence.pairs:
        return [f"{NO_PAIR[0].upper()}{NO_PAIR[1:]}."]
    split: dict[tuple[str, str], list[Row]] = {}
    for row in evidence.pairs:
        split.setdefault((row["bound"], row["changed"]), []).append(row)
    return [
        "Pairs of points that differ in FLOPs at equal bytes, or in bytes at equal FLOPs. 1 = the step's time follows",
        "what was changed, 0 = it does not care.",
        "",
        *_table(
            ("bound", "changed", "should follow", "pairs", "least", "median", "greatest", "as the bound says"),
            [_pairs_row(*key, rows) for key, rows in sorted(split.items())],
        ),
        *_above_roofs_told(evidence.above_roofs),
    ]


def _above_roofs_told(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    columns = ("label", "bound", "roof", "roof_share")
    return [
        "",
        f"{len(rows)} of these points lie above {percent(ABOVE_ROOF)} of the roof that is said to bind them. A roof of",
        "FLOP/s is measured by large matrix products; a chain of multiply-adds in registers, each counted as two",
        "FLOPs, comes closer to the card's peak. A roof of bytes/s is passed by data that stays in a cache.",
        "",
        *_table(("above its roof", "bound", "roof", "share"), [_last_percent(row, columns) for row in rows]),
    ]


def _pairs_row(bound: str, changed: str, rows: Sequence[Row]) -> tuple[object, ...]:
    followed = sorted(row["elasticity"] for row in rows)
    ends = (followed[0], statistics.median(followed), followed[-1])
    return (bound, changed, rows[0]["should_move"], len(rows), *(f"{each:.2f}" for each in ends), _of(rows, "agrees"))


def _searches_told(evidence: Evidence) -> list[str]:
    if not evidence.searches:
        return [f"{NO_SEARCH.capitalize()}."]
    each_search = [search for pair in evidence.searches for search in (pair.first, pair.second)]
    points = statistics.mean(search.points for search in each_search)
    header = ("series", "axis", "first", "second", "difference", "overlap", "points", "runs")
    return [
        "Each search is judged by its own runs alone.",
        f"A series took {points:.1f} points and {statistics.mean(search.runs for search in each_search):.1f} runs",
        f"(at most {max(s.points for s in each_search)} and {max(s.runs for s in each_search)}).",
        _open_told(evidence.searches),
        "",
        *_table(header, [_search_row(pair) for pair in evidence.searches]),
    ]


def _open_told(searches: Sequence[Compared]) -> str:
    missing = sum(not (pair.first.has_interval and pair.second.has_interval) for pair in searches)
    return f"In {missing} of {len(searches)} series a search gave no interval; that counts as no overlap."


def _search_row(pair: Compared) -> tuple[object, ...]:
    first, second = pair.first, pair.second
    difference = None if pair.difference is None else percent(pair.difference)
    return (
        first.series, first.axis, _crossing(first), _crossing(second), difference, pair.overlap,
        f"{first.points}, {second.points}", f"{first.runs}, {second.runs}",
    )  # fmt: skip


def _crossing(search: Search) -> str:
    ends = " to ".join(short(each) for each in (search.low, search.high) if each is not None)
    return f"{short(search.value)} ({ends})" if search.value is not None else f"{search.status} {ends}".strip()


# -- text --------------------------------------------------------------------------------------------------------------


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *([_cell(value) for value in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short(value) if isinstance(value, (int, float)) else str(value).replace("|", "\\|")
