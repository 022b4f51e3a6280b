"""A chunk of a trace -> rows, by columns: the fast way, exact to the nanosecond.

A chunk is the text between two commas of the array of events. msgspec decodes it whole into bare structures; polars
turns them into columns, and what has a column of its own is taken out of the arguments. An event that does not fit (a
time with more than three decimals, a number written as text) takes the slow way (`single`), and a chunk that is no
valid JSON is salvaged first.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import msgspec
import polars as pl

from runner.trace import single
from runner.trace.events import DEVICE_TIMELINE, DEVICE_WORK, MEMORY, ROWS, STEP_NAME, is_annotation
from runner.trace.salvage import Lost, salvage

PHASES = {
    "M": "metadata", "i": "instant", "I": "instant", "R": "instant", "s": "flow", "t": "flow", "f": "flow",
    "C": "counter", "b": "asynchronous", "n": "asynchronous", "e": "asynchronous", "S": "asynchronous",
    "T": "asynchronous", "p": "asynchronous", "F": "asynchronous", "N": "object", "O": "object", "D": "object",
    "P": "sample", "v": "memory dump", "V": "memory dump", "c": "clock", "(": "context", ")": "context",
}  # fmt: skip
"""Phases of the Chrome format that are no durations: what the audit calls them. An allocator's instants are kept."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of an event whose begin is an event of its own; place: how many rows of the chunk stood before it."""

    place: int
    pid: str
    tid: str
    ts_ns: int
    args: str | None


@dataclass(slots=True)
class Decoded:
    """A chunk's rows, in no order, and its audit. Times are without the base, event_id counts the rows as they stood.

    complete: events of phase X, kept or not (an allocator's instants are rows but none of these); begun: rows that only
    begin. rest, closed_at: what `salvage` says of them.
    """

    rows: pl.DataFrame
    events: int = 0
    complete: int = 0
    begun: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    rest: bytes = b""
    closed_at: int | None = None


def decode(chunk: bytes, final: bool) -> Decoded:
    """Rows of a chunk; final: nothing follows it, so that what is open at its end is cut off."""
    collects = gc.isenabled()
    gc.disable()  # it would walk the many short-lived objects again and again, and there are no cycles among them
    try:
        return _numbered(_of_text(chunk, final))
    finally:
        if collects:
            gc.enable()


# -- pieces ------------------------------------------------------------------------------------------------------------


def _of_text(chunk: bytes, final: bool) -> Decoded:
    try:
        events = _EVENTS.decode(b"[" + chunk + b"]")
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _salvaged(chunk, final)
    return _decoded(events, chunk, lambda: _TEXTS.decode(b"[" + chunk + b"]"))


class _Event(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


_EVENTS = msgspec.json.Decoder(list[_Event])


class _Nanoseconds(int):
    """A start that was read from its text, since a double could not hold it."""


class _Time(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    ts: msgspec.Raw = msgspec.Raw(b"")


_TIMES = msgspec.json.Decoder(list[_Time])
_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])
_ARGUMENTS = msgspec.json.Decoder(list[dict[str, Any]])
_ARGUMENT_TEXTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_ENCODER = msgspec.json.Encoder()
_ODD = (msgspec.MsgspecError, TypeError, OverflowError, UnicodeError, RecursionError, pl.exceptions.PolarsError)
_INT64 = range(-(2**63), 2**63)
_ANY_US = 2.0**42
"""Below it (51 days) doubles lie less than half a nanosecond apart: all texts of one round to the same integer."""
_THOUSANDTHS_US = 2.0**43
"""Below it doubles tell thousandths apart, so those that were written with three decimals are exact."""
_ABSOLUTE = re.compile(rb"(\d{1,16})(?:\.(\d{1,3}))?")
_FOURTH_DECIMAL = re.compile(rb'"ts"\s*:\s*-?\d+\.\d{4}')

_CALL = {
    "correlation": "correlation", "registers_per_thread": "registers per thread",
    "shared_memory_bytes": "shared memory",
}  # fmt: skip
_ON_TIMELINE = {**_CALL, "device": "device", "stream": "stream"}
_OF_WORK = {**_ON_TIMELINE, "bytes": "bytes"}
_OF_MEMORY = {**_CALL, "bytes": "Bytes"}
_ARGUMENTS_OF_CALLS = r'"(?:correlation|registers per thread|shared memory|grid|block)"'
_SHAPES = r"^\[[\[\]\d,\s-]*\]$"
_FOLD = r"\n\s*"

Texts = Callable[[], Sequence[bytes]]


def _numbered(decoded: Decoded) -> Decoded:
    """Number the rows, which so far carry their place among all events, by themselves; the ends by the rows before."""
    places = decoded.rows.get_column("event_id")
    if not decoded.ends and (places.is_empty() or places.max() == len(places) - 1):
        return decoded
    rows_before = places.sort().search_sorted(pl.Series([end.place for end in decoded.ends], dtype=pl.Int64)).to_list()
    decoded.ends = [replace(end, place=rows) for end, rows in zip(decoded.ends, rows_before, strict=True)]
    decoded.rows = decoded.rows.with_columns(event_id=places.rank("ordinal").cast(pl.Int64) - 1)
    return decoded


def _salvaged(chunk: bytes, final: bool) -> Decoded:
    saved = salvage(chunk, final)
    decoded = _valid(saved.texts)
    decoded.repaired.update(saved.repaired)
    decoded.lost, decoded.rest, decoded.closed_at = saved.lost, saved.rest, saved.closed_at
    return decoded


def _valid(texts: list[bytes]) -> Decoded:
    """Rows of texts that are valid JSON, whatever they hold."""
    objects = [text for text in texts if text.startswith(b"{")]
    decoded = _of_objects(objects)
    decoded.events = len(texts)
    if len(objects) < len(texts):
        decoded.set_aside["no object"] += len(texts) - len(objects)
    return decoded


def _of_objects(texts: list[bytes]) -> Decoded:
    chunk = b",".join(texts)
    try:
        return _decoded(_EVENTS.decode(b"[" + chunk + b"]"), chunk, lambda: texts)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        decoded = Decoded(ROWS.to_frame())
        _add(decoded, texts, range(len(texts)))
        return decoded


def _decoded(events: list[_Event], chunk: bytes, texts: Texts) -> Decoded:
    kept = [event for event in events if event.ph == "X"]
    decoded = Decoded(ROWS.to_frame(), events=len(events), complete=len(kept))
    halves = []
    if len(kept) < len(events):
        halves = _count_phases(decoded, events)
        kept = _with_memory(decoded, events, kept)
    # Among the kept events alone their own numbers keep the order, and their places need not be looked for.
    places = range(len(kept)) if not halves else _places(events)
    limit_us = _limit_us(kept, chunk)
    if any(type(event.ts) is float and abs(event.ts) >= limit_us for event in kept):
        _read_times(kept, chunk)
    decoded.rows, odd = _rows(kept, places, limit_us)
    if odd or halves:
        if not halves:
            places = _places(events)
            decoded.rows = decoded.rows.with_columns(
                event_id=pl.Series(places, dtype=pl.Int64).gather(decoded.rows.get_column("event_id"))
            )
            odd = [places[number] for number in odd]
        decoded.complete -= sum(events[place].ph == "X" for place in odd)
        _add(decoded, texts(), sorted([*odd, *halves]))
    return decoded


def _limit_us(events: list[_Event], chunk: bytes) -> float:
    """Below what time the doubles of a chunk are exact: farther where no time has a fourth decimal."""
    latest = max((event.ts for event in events if type(event.ts) is float), default=0.0)
    told_apart = _ANY_US <= latest < _THOUSANDTHS_US and not _FOURTH_DECIMAL.search(chunk)
    return _THOUSANDTHS_US if told_apart else _ANY_US


def _read_times(events: list[_Event], chunk: bytes) -> None:
    """Give the events the times that stand in their texts, as traces of 2024 write them: absolute, with decimals."""
    times = [each.ts for each in _TIMES.decode(b"[" + chunk + b"]") if _is_kept(each)]
    for event, text in zip(events, times, strict=True):
        if matched := _ABSOLUTE.fullmatch(text):
            event.ts = _Nanoseconds(matched[1] + (matched[2] or b"").ljust(3, b"0"))


def _places(events: list[_Event]) -> list[int]:
    return [place for place, event in enumerate(events) if _is_kept(event)]


def _is_kept(event: _Event | _Time) -> bool:
    return event.ph == "X" or single.is_memory(event.ph, event.name, event.cat)


def _with_memory(decoded: Decoded, events: list[_Event], complete: list[_Event]) -> list[_Event]:
    """The complete events and, where they stood, an allocator's, which last no time; these are not set aside."""
    memory = [event for event in events if event.ph == "i" and single.is_memory("i", event.name, event.cat)]
    if not memory:
        return complete
    decoded.set_aside[PHASES["i"]] -= len(memory)
    decoded.set_aside = +decoded.set_aside
    for event in memory:
        event.dur = 0
    return [event for event in events if _is_kept(event)]


def _count_phases(decoded: Decoded, events: list[_Event]) -> list[int]:
    """Count what is no duration; the places of begins and ends, which are half of one."""
    counts = Counter([event.ph for event in events if event.ph != "X"])
    for phase, number in counts.items():
        if phase not in ("B", "E"):
            decoded.set_aside[PHASES.get(phase or "", "unknown phase")] += number
    if "B" in counts or "E" in counts:
        return [place for place, event in enumerate(events) if event.ph in ("B", "E")]
    return []


def _add(decoded: Decoded, texts: Sequence[bytes], places: Iterable[int]) -> None:
    """Add the events at these places one by one."""
    added = []
    for place in places:
        try:
            one = single.read(bytes(texts[place]))
        except single.SetAside as error:
            decoded.set_aside[str(error)] += 1
            decoded.complete += error.complete
            continue
        decoded.complete += one.phase == "X"
        decoded.begun += one.phase == "B"
        if "name" in one.columns:
            added.append({"event_id": place, **one.columns})
        elif one.phase == "E":
            decoded.ends.append(End(place, **one.columns))
        else:
            decoded.set_aside[PHASES.get(one.phase, "unknown phase")] += 1
    if added:
        decoded.rows = pl.concat([decoded.rows, pl.DataFrame(added, schema=ROWS)])


def _rows(events: list[_Event], places: Sequence[int], limit_us: float) -> tuple[pl.DataFrame, list[int]]:
    """Rows of complete events, and the places of those that columns do not fit."""
    parts = [ROWS.to_frame(), *(_part(kind, *chosen, limit_us) for kind, chosen in _by_kind(events, places).items())]
    rows = pl.concat(parts, how="diagonal").select(ROWS.names())
    odd = set(places).difference(rows.get_column("event_id")) if rows.height < len(places) else ()
    return rows, list(odd)


def _by_kind(events: list[_Event], places: Sequence[int]) -> dict[str, tuple[list[_Event], Sequence[int]]]:
    """The events parted by what their arguments may hold: work, timeline, memory, annotation, call, other."""
    kinds = {word: _kind(single.today(word, None)) for word in {event.cat for event in events}}
    if len(set(kinds.values())) <= 1:
        return dict.fromkeys(kinds.values(), (events, places))
    of_event = [kinds[event.cat] for event in events]
    parted: dict[str, tuple[list[_Event], Sequence[int]]] = {}
    for kind in sorted(set(kinds.values())):
        chosen = [each is kind for each in of_event]
        parted[kind] = list(compress(events, chosen)), list(compress(places, chosen))
    return parted


def _kind(category: str) -> str:
    if category in DEVICE_WORK:
        return "work"
    if category in DEVICE_TIMELINE:
        return "timeline"
    if category == MEMORY:
        return "memory"
    if category.endswith("user_annotation"):
        return "annotation"
    return "call" if category.endswith(("_runtime", "_driver")) else "other"


def _part(kind: str, events: list[_Event], places: Sequence[int], limit_us: float) -> pl.DataFrame:
    """Rows of events of one kind. Those with a value of an odd type are left out."""
    try:
        return _by_columns(kind, _frame(events, places, limit_us))
    except _ODD:
        plain = [_is_plain(event) for event in events]
    try:
        return _by_columns(kind, _frame(list(compress(events, plain)), list(compress(places, plain)), limit_us))
    except _ODD:
        return ROWS.to_frame()


def _by_columns(kind: str, frame: pl.DataFrame) -> pl.DataFrame:
    if kind == "work":
        return _placed(_called(frame, _OF_WORK))
    if kind == "timeline":
        return _placed(_called(frame, _ON_TIMELINE))
    if kind == "memory":
        return _called(frame, _OF_MEMORY)
    if kind in ("call", "annotation"):
        return _called(frame, _CALL)
    called = frame.get_column("args").str.contains(_ARGUMENTS_OF_CALLS)
    shaped = frame.get_column("args").str.contains('"Input Dims"', literal=True) & ~called
    if not called.any() and not shaped.any():
        return _bare(frame)
    parts = (
        _called(frame.filter(called), _CALL),
        _shaped(frame.filter(shaped)),
        _bare(frame.filter(~called & ~shaped)),
    )
    return pl.concat([ROWS.to_frame(), *(part for part in parts if part.height)], how="diagonal")


def _is_plain(event: _Event) -> bool:
    """Whether the event's values are of the types that columns take."""
    try:
        f"{event.name}{event.cat}{event.pid}{event.tid}".encode()
        bytes(event.args).decode()
    except UnicodeError:
        return False
    values = (event.ts, event.dur, event.pid, event.tid)
    numbers = type(event.ts) in (int, float, _Nanoseconds) and type(event.dur) in (int, float)
    return numbers and all(type(value) is not int or value in _INT64 for value in values)


def _frame(events: list[_Event], places: Sequence[int], limit_us: float) -> pl.DataFrame:
    """The columns outside the arguments. One of _ODD: a value is of another type.

    Rows without a name, with a negative or inexact time, or with arguments that are no object are left out.
    """
    name = pl.Series([event.name for event in events], dtype=pl.String)
    ts_ns, ts_fits = _starts([event.ts for event in events], limit_us)
    dur_ns, dur_fits = _nanoseconds([event.dur for event in events], _ANY_US)
    args = _texts([event.args for event in events])
    frame = pl.DataFrame(
        {
            "event_id": pl.Series(places, dtype=pl.Int64),
            "name": name,
            "category": _categories([event.cat for event in events], name),
            "ts_ns": ts_ns,
            "dur_ns": dur_ns,
            "pid": _labels([event.pid for event in events]),
            "tid": _labels([event.tid for event in events]),
            "args": args,
        }
    )
    fits = name.is_not_null() & ts_fits & dur_fits & (dur_ns >= 0) & args.str.starts_with("{")
    return frame if fits.fill_null(False).all() else frame.filter(fits)


def _starts(values: list[Any], limit_us: float) -> tuple[pl.Series, pl.Series]:
    """Starts in nanoseconds, and which of them are exact."""
    types = set(map(type, values))
    if _Nanoseconds not in types:
        return _nanoseconds(values, limit_us)
    if len(types) > 1:
        raise TypeError("a time of another form")
    ns = pl.Series(list(map(int, values)), dtype=pl.Int64)
    return ns, ns <= single.LONGEST_US * 1000


def _nanoseconds(values: list[Any], limit_us: float) -> tuple[pl.Series, pl.Series]:
    """Microseconds in nanoseconds, and which of them are exact: integers, and doubles below limit_us.

    The whole microseconds of a double are split off without error; the rest x 1000 is within 0.49 of the right integer.
    That it is the right one is seen by dividing: the same double must come out.
    """
    if set(map(type, values)) <= {int}:
        whole = pl.Series(values, dtype=pl.Int64)
        inside = whole.is_between(-single.LONGEST_US, single.LONGEST_US)
        return whole.set(~inside, 0) * 1000, inside
    us = pl.Series(values, dtype=pl.Float64)
    inside = us.abs() < limit_us
    us = us.set(~inside, 0.0)
    whole = us.floor()
    ns = whole.cast(pl.Int64) * 1000 + ((us - whole) * 1000).round().cast(pl.Int64)
    thousand = pl.repeat(1000.0, len(us), eager=True)  # by a single number polars multiplies with its reciprocal
    return ns, inside & (ns.cast(pl.Float64) / thousand == us)


def _categories(values: list[Any], names: pl.Series) -> pl.Series:
    words = sorted(set(values), key=str)
    given = [word or "" for word in words]
    today = [single.today(word, None) for word in given]
    if len(words) == 1:
        column = pl.Series(today, dtype=pl.String).new_from_index(0, len(values))
    else:
        column = pl.Series(values, dtype=pl.String).fill_null("").replace(given, today)
    if not any(word.lower() == "operator" for word in given):
        return column
    operators = pl.Series([(value or "").lower() == "operator" for value in values], dtype=pl.Boolean)
    steps = operators & names.str.contains(f"^(?:{STEP_NAME.pattern})$").fill_null(False)
    return column.set(steps, "user_annotation")


def _labels(values: list[Any]) -> pl.Series:
    types = set(map(type, values))
    if types <= {int}:
        return pl.Series(values, dtype=pl.Int64).cast(pl.String)
    if types <= {int, str, type(None)}:  # of which no two are equal
        known = {value: single.label(value) for value in set(values)}
        return pl.Series([known[value] for value in values], dtype=pl.String)
    return pl.Series([single.label(value) for value in values], dtype=pl.String)


def _bare(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows none of whose arguments has a column: their text stays, on one line."""
    return frame.with_columns(_unless_empty(pl.col("args").str.replace_all(_FOLD, "")))


def _shaped(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of whose arguments only the shapes have a column; the texts of the others stay as they are."""
    arguments = _ARGUMENT_TEXTS.decode("[" + ",".join(frame.get_column("args")) + "]")
    shapes = _texts([each.pop("Input Dims", b"") for each in arguments])
    even = shapes.str.replace_all(r"\s", "").str.replace_all(",", ", ", literal=True)
    rows = frame.with_columns(shapes=even, args=_lines(arguments)).filter(shapes.str.contains(_SHAPES))
    return rows.with_columns(_unless_empty(pl.col("args").str.replace_all(_FOLD, "")))


def _called(frame: pl.DataFrame, integers: dict[str, str]) -> pl.DataFrame:
    """Rows of the device and of the calls that drive it; integers: their columns and the arguments these are."""
    text = "[" + ",".join(frame.get_column("args")) + "]"
    arguments = _ARGUMENTS.decode(text)
    columns = [_integers(name, arguments, key) for name, key in integers.items() if f'"{key}"' in text]
    columns += [_lists(key, arguments) for key in ("grid", "block") if f'"{key}"' in text]
    if '"Input Dims"' in text:
        shapes = [single.shapes_text(each.pop("Input Dims", None)) for each in arguments]
        columns.append(pl.Series("shapes", shapes, dtype=pl.String))
    annotated = frame.select(is_annotation()).to_series()
    if annotated.any():
        ids = [single.external(each.get("External id")) for each in arguments]
        columns.append(pl.Series("external", ids, dtype=pl.String).set(~annotated, None))
    return frame.with_columns(*columns, args=_lines(arguments)).with_columns(_unless_empty(pl.col("args")))


def _integers(column: str, arguments: list[dict[str, Any]], key: str) -> pl.Series:
    """Take an integer out of the arguments of every row; what is none stays there."""
    values = [each.pop(key, None) for each in arguments]
    try:
        return pl.Series(column, _without_truth(values), dtype=pl.Int64)
    except (TypeError, OverflowError):
        taken = [_kept(single.integer(value), each, key, value) for each, value in zip(arguments, values, strict=True)]
        return pl.Series(column, taken, dtype=pl.Int64)


def _lists(key: str, arguments: list[dict[str, Any]]) -> pl.Series:
    """Take a list of integers out of the arguments of every row; what is none stays there."""
    values = [each.pop(key, None) for each in arguments]
    try:
        return _of_triples(key, values)
    except (TypeError, OverflowError):
        taken = [_kept(single.integers(value), each, key, value) for each, value in zip(arguments, values, strict=True)]
        return pl.Series(key, taken, dtype=pl.List(pl.Int64))


def _kept(taken: Any, arguments: dict[str, Any], key: str, value: object) -> Any:
    """What was taken, or None, and then the value is an argument again."""
    if taken is None and value is not None:
        arguments[key] = value
    return taken


def _without_truth(values: list[Any]) -> list[Any]:
    if bool in set(map(type, values)):
        raise TypeError("true and false are no numbers")
    return values


def _of_triples(name: str, values: list[Any]) -> pl.Series:
    """A column of lists of three integers by way of one flat column: ten times as fast. TypeError: a list is none."""
    known = [value for value in values if value is not None]
    if not known:
        return pl.Series(name, values, dtype=pl.List(pl.Int64))
    if set(map(len, known)) != {3} or set(map(type, known)) != {list}:
        raise TypeError("a list of another length")
    flat = pl.Series(name, _without_truth([number for value in known for number in value]), dtype=pl.Int64)
    if flat.null_count():
        raise TypeError("null in a list")
    triples = flat.reshape((len(known), 3)).arr.to_list()
    if len(known) == len(values):
        return triples
    is_known = pl.Series([value is not None for value in values])
    return triples.gather((is_known.cum_sum().cast(pl.Int64) - 1).set(~is_known, None))


def _lines(arguments: Sequence[dict[str, Any]]) -> pl.Series:
    """The JSON text of each object."""
    return pl.Series(_ENCODER.encode_lines(arguments).splitlines(), dtype=pl.Binary).cast(pl.String)


def _texts(values: list[Any]) -> pl.Series:
    return pl.Series([bytes(value) for value in values], dtype=pl.Binary).cast(pl.String)


def _unless_empty(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.len_bytes() > 2).then(text)


def _placed(frame: pl.DataFrame) -> pl.DataFrame:
    """Device and stream of rows that do not name them: Kineto repeats them as pid and tid."""
    told = {"device": "pid", "stream": "tid"}
    missing = [name for name in told if name not in frame.columns or frame.get_column(name).null_count()]
    places = {name: pl.col(told[name]).str.extract(single.PLACE, 1).cast(pl.Int64) for name in missing}
    return frame.with_columns(
        (pl.coalesce(name, place) if name in frame.columns else place).alias(name) for name, place in places.items()
    )
