"""A large trace out of a small one: `python scripts/make_trace.py SOURCE OUT --mb 107 [--layout ...] [--absolute]`.

The events of SOURCE are repeated until the JSON text has about so many MB (10^6 bytes). Every copy begins behind the
end of the one before and has ids of its own, so it links within itself only. Numbers never pass through floats: copies
move by whole microseconds, so a fraction stays as the source wrote it. The figures of the made file are printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Context, Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any

Event = dict[str, Any]

DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})  # the last two: of 2021
# Arguments that name something or point to it, in lower case. In some of them counting begins with zero; in the others
# zero means "none" and must stay.
FROM_ZERO = frozenset({"ev idx", "python id", "python parent id"})
IDS = FROM_ZERO | {"correlation", "external id", "record function id", "sequence number"}
WITH_ID = frozenset("stfbne")  # phases whose own "id" links events
LARGEST = 2**63  # an id from here on is a mark such as -1 without its sign
DAY_US = 86_400_000_000  # ten thousand copies of a longer trace would leave 64-bit nanoseconds
BLOCK = 2_000  # events written at a time, which bounds memory
EXACT = Context(prec=100)

# Characters that no trace holds, and how json writes them. SLOT stands around a number that changes from copy to copy,
# BARE around the text of a number that json must not touch.
SLOT, BARE = "\ue0b7", "\ue0b8"
SLOTS = re.compile(r"\\ue0b7([uis])(-?\d+)\\ue0b7")
EVENTS = f"{BARE}events{BARE}"


@dataclass(frozen=True)
class Figures:
    """What a made file holds. json_bytes: before compression; device_events: complete kernels, copies and fills."""

    json_bytes: int
    copies: int
    events: int
    complete: int
    device_events: int


@dataclass(frozen=True)
class Layout:
    """How JSON is printed: an event, what stands before, between and behind events, json's settings for the rest."""

    event: Callable[[Event], str]
    begin: str
    between: str
    end: str
    rest: dict[str, Any]


@dataclass(frozen=True)
class Block:
    """Events as a %-template, the first copy's numbers for it, and the kind of each: u (time, us), i (id), s (step)."""

    template: str
    numbers: list[int]
    kinds: str

    def copy(self, k: int, strides: dict[str, int]) -> bytes:
        """The text of copy k, every number moved by k strides of its kind."""
        moves = {kind: k * stride for kind, stride in strides.items()}
        numbers = (n + moves[kind] for n, kind in zip(self.numbers, self.kinds, strict=True))
        return (self.template % tuple(numbers)).encode()


@dataclass
class Extent:
    """The ranges that the numbers of one copy cover, by family, and how many events of each sort it has."""

    ranges: dict[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    events: int = 0
    complete: int = 0
    device_events: int = 0

    def cover(self, family: str, low: Decimal | int, high: Decimal | int | None = None) -> None:
        """Widen a family's range to [low, high]."""
        first, last = self.ranges.get(family, (Decimal(low), Decimal(low)))
        self.ranges[family] = min(first, Decimal(low)), max(last, Decimal(low if high is None else high))

    def strides(self) -> dict[str, int]:
        """How far a copy lies behind the one before, by kind of number; ids of all families move alike, so that those
        which name each other (a launch's correlation and its arrow's id) still do."""
        widths = {family: int(last - first) + 1 for family, (first, last) in self.ranges.items()}
        if widths.get("u", 0) > DAY_US:
            raise ValueError(f"its events lie {widths['u']} us apart, more than a day; give a trace of one recording")
        ids = max((width for family, width in widths.items() if family not in "us"), default=1)
        return {"u": widths.get("u", 1), "s": widths.get("s", 1), "i": ids}


def make(source: Path, out: Path, megabytes: float, layout: str = "kineto", absolute: bool = False) -> Figures:
    """Write OUT (compressed if it ends in .gz): the events of SOURCE repeated to about so many 10^6 bytes of JSON.

    absolute: times count from 1970 and no baseTimeNanoseconds is given, as in 2024-04.
    Raises ValueError for a source without traceEvents, with no event in it, or with times that cannot be moved.
    """
    style, text = LAYOUTS[layout], _read(source)
    start, end = _array(text)
    header = _decoder().decode(f"{text[:start]}[]{text[end:]}")
    base_ns = int(header.get("baseTimeNanoseconds", 0))
    if absolute:
        header.pop("baseTimeNanoseconds", None)
    extent = Extent()
    marked = (_marked(event, extent, base_ns if absolute else None) for event, _ in _walk(text, start))
    blocks = [_block(group, style) for group in iter(lambda: list(islice(marked, BLOCK)), [])]
    if not blocks:
        raise ValueError(f"{source} holds no event, so there is nothing to repeat; give a trace with events")
    strides = extent.strides()
    with _opened(out) as file:
        json_bytes, copies = _write(file, _around(header, style), blocks, strides, style.between, megabytes * 1e6)
    return Figures(json_bytes, copies, copies * extent.events, copies * extent.complete, copies * extent.device_events)


def _write(
    file: IO[bytes],
    around: tuple[bytes, bytes],
    blocks: list[Block],
    strides: dict[str, int],
    between: str,
    wanted_bytes: float,
) -> tuple[int, int]:
    """Write copies until one more would lie further from the wanted size; the bytes and the copies written."""
    size, copies, last = file.write(around[0]), 0, 0
    while copies == 0 or size + last / 2 < wanted_bytes:
        start = size
        for number, block in enumerate(blocks):
            separator = between.encode() if copies or number else b""
            size += file.write(separator) + file.write(block.copy(copies, strides))
        copies, last = copies + 1, size - start
    return size + file.write(around[1]), copies


def _opened(out: Path) -> IO[bytes]:
    return gzip.open(out, "wb", compresslevel=6) if out.suffix == ".gz" else out.open("wb")  # type: ignore[return-value]


def _read(source: Path) -> str:
    content = source.read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=lambda text: f"{BARE}{text}{BARE}")


def _array(text: str) -> tuple[int, int]:
    """Where the array of events begins, and where what follows it does."""
    found = re.search(r'"traceEvents"\s*:\s*(?=\[)', text)
    if not found:
        raise ValueError("the source has no traceEvents; give a trace that torch.profiler wrote")
    ends = deque((end for _, end in _walk(text, found.end())), maxlen=1)
    return found.end(), text.index("]", ends[-1] if ends else found.end()) + 1


def _walk(text: str, start: int) -> Iterator[tuple[Event, int]]:
    """Every object of the array that begins at start, and where it ends: one at a time, to keep memory small."""
    decode, skip = _decoder().raw_decode, re.compile(r"[\s,]*")
    at = skip.match(text, start + 1).end()  # type: ignore[union-attr]
    while text[at] != "]":
        event, end = decode(text, at)
        if isinstance(event, dict):
            yield event, end
        at = skip.match(text, end).end()  # type: ignore[union-attr]


def _marked(event: Event, extent: Extent, base_ns: int | None) -> Event:
    """The event with a slot at every number that a copy changes. base_ns: what to add to its time, None = nothing."""
    phase, args = event.get("ph"), event.get("args")
    extent.events += 1
    extent.complete += phase == "X"
    extent.device_events += phase == "X" and str(event.get("cat")).lower() in DEVICE_WORK
    marked = dict(event)
    if "ts" in event:
        marked["ts"] = _time(event, extent, base_ns)
    if phase in WITH_ID and "id" in event:
        marked["id"] = _id(event["id"], "flow", 1, extent)
    if step := re.fullmatch(r"ProfilerStep#(\d+)", str(event.get("name"))):
        extent.cover("s", int(step[1]))
        marked["name"] = f"ProfilerStep#{_slot('s', int(step[1]))}"
    if isinstance(args, dict):
        marked["args"] = {key: _argument(key, value, extent) for key, value in args.items()}
    return marked


def _slot(kind: str, number: int) -> str:
    return f"{SLOT}{kind}{number}{SLOT}"


def _argument(key: str, value: Any, extent: Extent) -> Any:
    family = key.lower()
    return _id(value, family, 0 if family in FROM_ZERO else 1, extent) if family in IDS else value


def _id(value: Any, family: str, least: int, extent: Extent) -> Any:
    """A slot for an id (a number, or its digits as a text) from least on; anything else as it is."""
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value)) or not least <= int(value) < LARGEST:
        return value
    extent.cover(family, int(value))
    slot = _slot("i", int(value))
    return slot if isinstance(value, str) else f"{BARE}{slot}{BARE}"


def _time(event: Event, extent: Extent, base_ns: int | None) -> str:
    """A slot for the whole microseconds of an event's time, and its fraction as it was written."""
    start = _decimal(event["ts"])
    if base_ns is not None:
        start = EXACT.add(start, EXACT.divide(Decimal(base_ns), Decimal(1000)))
    if event.get("ph") != "M":  # names of processes and threads may have any time
        duration = _decimal(event["dur"]) if event.get("ph") == "X" and "dur" in event else Decimal(0)
        extent.cover("u", start, EXACT.add(start, duration))
    whole, point, fraction = format(start, "f").partition(".")
    if base_ns is not None:
        point, fraction = ".", fraction.ljust(3, "0")
    if fraction and whole.startswith("-"):
        raise ValueError(f"time {start} lies below zero and has a fraction; give a trace with times above zero")
    text = _slot("u", int(whole)) + point + fraction
    quoted = isinstance(event["ts"], str) and not event["ts"].startswith(BARE)
    return text if quoted else f"{BARE}{text}{BARE}"


def _decimal(value: Any) -> Decimal:
    return Decimal(str(value).strip(BARE))


def _json(value: Any, **settings: Any) -> str:
    """JSON in which bare numbers are free of their quotes and slots are still marked."""
    text = json.dumps(value, **settings)
    return text.replace('"\\ue0b8', "").replace('\\ue0b8"', "")


def _block(events: list[Event], style: Layout) -> Block:
    parts = SLOTS.split(style.between.join(map(style.event, events)))
    template = "%d".join(part.replace("%", "%%") for part in parts[::3])
    return Block(template, [int(number) for number in parts[2::3]], "".join(parts[1::3]))


def _around(header: dict[str, Any], style: Layout) -> tuple[bytes, bytes]:
    """What stands before the first event and behind the last."""
    before, _, after = json.dumps({**header, "traceEvents": EVENTS}, **style.rest).partition(json.dumps(EVENTS))
    free = [text.replace('"\\ue0b8', "").replace('\\ue0b8"', "") for text in (before, after)]
    return (free[0] + style.begin).encode(), (style.end + free[1]).encode()


# torch begins a new line before these keys, by phase.
NEW_LINE = {"X": "ts", "i": "pid", "s": "cat", "t": "cat", "f": "cat"}


def _as_torch_writes(event: Event) -> str:
    """An event as torch.profiler prints it: some keys a line, the arguments in lines of their own."""
    text = ""
    for key, value in event.items():
        breaks = key == "args" or key == NEW_LINE.get(event.get("ph", ""))
        text += ("," if text else "") + ("\n    " if breaks or not text else " ")
        text += f"{_json(key)}: {_arguments(value) if key == 'args' else _json(value)}"
    return f"{{{text}\n  }}"


def _arguments(args: Any) -> str:
    return f"{{\n      {_json(args)[1:-1]}\n    }}" if isinstance(args, dict) else _json(args)


def _indented(event: Event) -> str:
    return _json(event, indent=4).replace("\n", "\n        ")  # json writes no raw new line inside a text


COMPACT: dict[str, Any] = {"separators": (",", ":")}
LAYOUTS = {
    "kineto": Layout(_as_torch_writes, "[\n  ", ",\n  ", "\n  ]", {"indent": 2}),
    "compact": Layout(lambda event: _json(event, **COMPACT), "[", ",", "]", COMPACT),
    "indented": Layout(_indented, "[\n        ", ",\n        ", "\n    ]", {"indent": 4}),
    "sorted": Layout(lambda event: _json(event, sort_keys=True), "[", ", ", "]", {"sort_keys": True}),
}


def main() -> None:
    """The command: make a file and print what it holds, as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a trace, .json or .json.gz")
    parser.add_argument("out", type=Path, help="the file to write; compressed if its name ends in .gz")
    parser.add_argument("--mb", type=float, required=True, help="10^6 bytes of JSON text, about")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="kineto")
    parser.add_argument("--absolute", action="store_true", help="times since 1970, without baseTimeNanoseconds")
    given = parser.parse_args()
    try:
        figures = make(given.source, given.out, given.mb, given.layout, given.absolute)
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps({"file": str(given.out), **asdict(figures)}))


if __name__ == "__main__":
    main()
