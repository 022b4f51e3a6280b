"""One event after the other, slowly: what `decode` does with columns, for the events that do not fit columns.

This is the definition of what an event means; `decode` must say the same of every event (tests/test_trace_decode.py).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import msgspec

from runner.trace.events import DEVICE_TIMELINE, DEVICE_WORK, MEMORY, MEMORY_NAME, STEP_NAME, TODAY

LONGEST_US = 3 * 10**15
"""95 years. Three such terms (base time, start, duration) still fit 64 bits as nanoseconds."""

COLUMNS = {
    "correlation": "correlation",
    "device": "device",
    "stream": "stream",
    "registers per thread": "registers_per_thread",
    "shared memory": "shared_memory_bytes",
    "bytes": "bytes",
}
"""Arguments that are integers and have a column of their own."""
ON_TIMELINE = frozenset({"device", "stream"})
"""Only of rows on the device's timeline: a host event may carry a stream too, as an argument (Triton's does)."""

_ENCODER = msgspec.json.Encoder(decimal_format="number")
_EXACT = Context(prec=60)  # the default 28 digits could round an absolute time
_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"\s*(-?[0-9]{1,19})\s*")
PLACE = r"^(?:[^0-9]*\s)?(-?[0-9]{1,18})$"
"""A device or stream in the text of a process or thread: "7", or "stream 7" of 2021."""


class SetAside(Exception):
    """The event is not kept; the message is the reason, as the audit counts it. complete: its phase was X."""

    def __init__(self, why: str, complete: bool = False) -> None:
        super().__init__(why)
        self.complete = complete


@dataclass(frozen=True, slots=True)
class One:
    """An event of phase X or B, or of an allocator: its columns but for event_id; of phase E: pid, tid, ts_ns, args; of
    another: none."""

    phase: str
    columns: dict[str, Any]


def read(text: bytes) -> One:
    """The event in a JSON text.

    Raises:
        SetAside: it has no name, no time, a negative duration, or is no event at all.
    """
    raw = _loaded(text)
    phase = str(raw["ph"]) if isinstance(raw.get("ph"), str) else ""
    if phase == "E":
        lane = {"pid": label(raw.get("pid")), "tid": label(raw.get("tid"))}
        return One(
            phase, {**lane, "ts_ns": nanoseconds(raw.get("ts"), "time"), "args": json_text(_arguments(raw) or None)}
        )
    try:
        is_kept = phase in ("X", "B") or is_memory(phase, raw.get("name"), raw.get("cat"))
        return One(phase, _columns(raw, phase) if is_kept else {})
    except SetAside as error:
        raise SetAside(str(error), complete=phase == "X") from error


def is_memory(phase: object, name: object, category: object) -> bool:
    """Whether an event is an allocator's: an instant of Kineto's that tells what was allocated or freed."""
    return phase == "i" and name == MEMORY_NAME and isinstance(category, str) and category.lower() == MEMORY


def _columns(raw: dict[str, Any], phase: str) -> dict[str, Any]:
    name = _name(raw)
    category = today(raw.get("cat"), name)
    args = _arguments(raw)
    pid, tid = label(raw.get("pid")), label(raw.get("tid"))
    taken = {column: _taken(args, key, category) for key, column in COLUMNS.items()}
    if category in DEVICE_TIMELINE:
        taken["device"] = _place(pid) if taken["device"] is None else taken["device"]
        taken["stream"] = _place(tid) if taken["stream"] is None else taken["stream"]
    if category == MEMORY:
        taken["bytes"] = _taken(args, "Bytes", category)
    return {
        "name": name,
        "category": category,
        "ts_ns": nanoseconds(raw.get("ts"), "time"),
        "dur_ns": {"B": None, "i": 0}[phase] if phase in ("B", "i") else _duration(raw),
        "pid": pid,
        "tid": tid,
        **taken,
        "grid": _taken_list(args, "grid"),
        "block": _taken_list(args, "block"),
        "external": _external(args) if category.endswith("user_annotation") else None,
        "shapes": shapes_text(args.pop("Input Dims", None)),
        "args": json_text(args or None),
    }


def _arguments(raw: dict[str, Any]) -> dict[str, Any]:
    """A copy of the arguments, from which the columns are taken. What is no object is kept as one."""
    args = raw.get("args")
    return dict(args) if isinstance(args, dict) else {} if args is None else {"args": args}


def today(category: object, name: str | None) -> str:
    """Today's name of a category, lower case. The steps of 2021 were operators."""
    word = category.lower() if isinstance(category, str) else ""
    if word == "operator" and STEP_NAME.fullmatch(name or ""):
        return "user_annotation"
    return TODAY.get(word, word)


def label(value: object) -> str:
    """A process or thread as text."""
    return "" if value is None else _plain_text(value)


def nanoseconds(value: object, what: str) -> int:
    """Microseconds of the file in nanoseconds: the decimal text x 1000, rounded half to even. A text may hold them."""
    if value is None:
        raise SetAside(f"no {what}")
    try:
        number = Decimal(value.strip()) if isinstance(value, str) else value
        if isinstance(number, bool) or not abs(number) <= LONGEST_US:  # type: ignore[arg-type]
            raise SetAside(f"{what} out of range")
        return int(Decimal(number).scaleb(3, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))  # type: ignore[arg-type]
    except (ArithmeticError, TypeError, ValueError) as error:
        raise SetAside(f"{what} is no number") from error


def integer(value: object) -> int | None:
    """An integer of 64 bits, written as a number or as a text; None for anything else."""
    if isinstance(value, str) and (matched := _INTEGER.fullmatch(value)):
        value = int(matched[1])
    return value if type(value) is int and value in _INT64 else None


def integers(value: object) -> list[int] | None:
    """A list of such integers; None for anything else."""
    numbers = [integer(item) for item in value] if isinstance(value, list) else [None]
    return None if None in numbers else numbers  # type: ignore[return-value]


def json_text(value: object) -> str | None:
    """JSON of arguments, short; numbers are written as they were read. None stays None."""
    if value is None:
        return None
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return _encodable(json.dumps(value, ensure_ascii=False, default=float, separators=(",", ":")))


def shapes_text(value: object) -> str | None:
    """Shapes with a space behind every comma, as torch writes them; what holds texts is none and stays as it is."""
    text = json_text(value)
    return text if text is None or '"' in text else text.replace(",", ", ")


def external(value: object) -> str | None:
    """What an annotation and its shadow on the device share."""
    return None if value is None else _plain_text(value)


# -- pieces ------------------------------------------------------------------------------------------------------------


def _loaded(text: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise SetAside("damaged") from error
    if not isinstance(raw, dict):
        raise SetAside("no object")
    return raw


def _plain_text(value: object) -> str:
    """A text as it is, anything else as short JSON; a number with decimals as a double has it."""
    if type(value) is int:
        return str(value)
    return _encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=float))


def _name(raw: dict[str, Any]) -> str:
    name = raw.get("name")
    if not isinstance(name, str):
        raise SetAside("no name")
    return _encodable(name)


def _encodable(text: str) -> str:
    """Half of a surrogate pair is no character that a store can hold."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _duration(raw: dict[str, Any]) -> int:
    dur_ns = nanoseconds(raw.get("dur"), "duration")
    if dur_ns < 0:
        raise SetAside("negative duration")
    return dur_ns


def _taken(args: dict[str, Any], key: str, category: str) -> int | None:
    """The column's value, or None; what does not fit the column stays among the arguments."""
    if (key in ON_TIMELINE and category not in DEVICE_TIMELINE) or (key == "bytes" and category not in DEVICE_WORK):
        return None
    number = integer(args.get(key))
    if number is not None or args.get(key, "") is None:
        del args[key]
    return number


def _taken_list(args: dict[str, Any], key: str) -> list[int] | None:
    numbers = integers(args.get(key))
    if numbers is not None or args.get(key, "") is None:
        del args[key]
    return numbers


def _place(text: str) -> int | None:
    """Device or stream of a row that does not name them: Kineto repeats them as pid and tid."""
    matched = re.fullmatch(PLACE, text)
    return int(matched[1]) if matched else None


def _external(args: dict[str, Any]) -> str | None:
    return external(args.get("External id"))
