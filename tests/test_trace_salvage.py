"""A damaged chunk of events: what is mended, what is lost, and that nothing else is touched."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.trace.salvage import DEEPEST, LARGEST_EVENT_BYTES, Salvaged, salvage

TRACE = Path(__file__).parent / "data" / "traces" / "h200_mlp_64_eager.json.gz"
EVENTS = [json.dumps(event).encode() for event in json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"][:40]]
GOOD = b'{"ph": "X", "name": "good", "ts": 1}'


def read(chunk: bytes, final: bool = True) -> Salvaged:
    """The salvaged chunk, with what must hold for all: strict texts, and every byte accounted for."""
    salvaged = salvage(chunk, final)
    for text in salvaged.texts:
        msgspec.json.decode(text)
    lost_bytes = sum(lost.length for lost in salvaged.lost)
    ended = len(chunk) if salvaged.closed_at is None else salvaged.closed_at
    assert salvaged.texts_bytes + salvaged.separators_bytes + lost_bytes + len(salvaged.rest) == ended
    assert not (final and salvaged.rest)
    assert chunk.endswith(salvaged.rest)
    _lost_in_order(salvaged, ended)
    if not salvaged.repaired:
        _all_is_there(chunk[:ended], salvaged)
    return salvaged


def _lost_in_order(salvaged: Salvaged, ended: int) -> None:
    at = 0
    for lost in salvaged.lost:
        assert lost.offset >= at and lost.length > 0 and lost.why
        at = lost.offset + lost.length
    assert at <= ended


def _all_is_there(chunk: bytes, salvaged: Salvaged) -> None:
    """Without repairs, texts and losses laid one behind the other leave only blanks and commas between."""
    lost = {item.offset: item.length for item in salvaged.lost}
    texts, at = iter(salvaged.texts), 0
    while at < len(chunk) - len(salvaged.rest):
        if at in lost:
            at += lost[at]
        elif chunk[at] <= 0x20 or chunk[at] == ord(","):
            at += 1
        else:
            text = next(texts)
            assert chunk.startswith(text, at)
            at += len(text)
    assert next(texts, None) is None


def only(chunk: bytes) -> Any:
    """The one event of a chunk, decoded, after a good one and before a good one: both must be untouched."""
    salvaged = read(GOOD + b", " + chunk + b",\n" + GOOD)
    first, *between, last = salvaged.texts
    assert (first, last, salvaged.lost) == (GOOD, GOOD, [])
    assert len(between) == 1
    return msgspec.json.decode(between[0])


@pytest.mark.parametrize(
    ("chunk", "event", "kind"),
    [
        (b'{"a": Infinity, "b": -Infinity, "c": 1}', {"a": None, "b": None, "c": 1}, "inf or nan"),
        (b'{"a": [nan, -inf, NaN, -nan(ind), 2]}', {"a": [None, None, None, None, 2]}, "inf or nan"),
        (b'{"a": "NaN", "b": inf}', {"a": "NaN", "b": None}, "inf or nan"),
        (b'{"a": 1e999, "b": 2}', {"a": None, "b": 2}, "number out of range"),
        (b'{"a": ' + b"9" * 5000 + b"}", {"a": None}, "number out of range"),
        (rb'{"a": "C:\new\dir", "b": 1}', {"a": r"C:\new\dir", "b": 1}, "bare backslash"),
        (rb'{"a": "C:\dir\", "b": 1}', {"a": "C:\\dir\\", "b": 1}, "bare backslash"),
        (rb'{"a": "\users \u00e9"}', {"a": r"\users \u00e9"}, "bare backslash"),
        (b'{"a": "x\ny\x00"}', {"a": "x\ny\0"}, "control character"),
        (b'{"a":\x01 1}', {"a": 1}, "control character"),
        (b'{"a": "say "x" now", "b": 1}', {"a": 'say "x" now', "b": 1}, "quote in a text"),
        (b'{"a": "f("p", "q")", "b": 1}', {"a": 'f("p", "q")', "b": 1}, "quote in a text"),
        (b'{"a": "operator""_s"}', {"a": 'operator""_s'}, "quote in a text"),
        (b'{"a": ["x"y", "z"]}', {"a": ['x"y', "z"]}, "quote in a text"),
        (rb'{"a": "say "x" \"now\"", "b": 1}', {"a": 'say "x" "now"', "b": 1}, "quote in a text"),
        (b'{"a": "\xff", "\xfe": 1}', {"a": "\ufffd", "\ufffd": 1}, "bad UTF-8"),
        (rb'{"a": "\ud800 \ud83d\ude00 \\ud800"}', {"a": "\ufffd \U0001f600 \\ud800"}, "lone surrogate"),
        (b'{"a": [1, 2, ], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}, "trailing comma"),
        (b'{"a": 1,, "b": [1,,2]}', {"a": 1, "b": [1, 2]}, "doubled comma"),
        (b'{"a": 1 "b": "x" "c": [1 2]}', {"a": 1, "b": "x", "c": [1, 2]}, "missing comma"),
        (b'{"a": , "b": }', {"a": None, "b": None}, "missing value"),
        (b'{"a": 1x2, "b": tru, "c": 01}', {"a": None, "b": None, "c": None}, "unreadable value"),
    ],
)
def test_an_event_with_one_plain_meaning_is_mended(chunk: bytes, event: Any, kind: str) -> None:
    """The event is there with what can be known of it, and its repair is counted once."""
    assert only(chunk) == event
    assert read(chunk).repaired == {kind: 1}


@pytest.mark.parametrize(
    "chunk",
    [
        b'{"a": "}, {", "b": [{"c": 1}, {"d": "x}, {y"}, {}]}',
        b'{"a": 1, "a": 2}',
        b"null",
        b"[1, 2]",
        b'{"a": ' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}",
    ],
)
def test_a_sound_element_is_untouched(chunk: bytes) -> None:
    """Boundaries inside a text or a list, doubled keys and other kinds of elements are no damage."""
    salvaged = read(GOOD + b", " + chunk + b", " + GOOD)
    assert salvaged.texts == [GOOD, chunk, GOOD]
    assert (salvaged.repaired, salvaged.lost) == ({}, [])


@pytest.mark.parametrize(
    ("chunk", "why"),
    [
        (b'{"name": "x, "pid": 1, "cat": "kernel"}', "a quote leaves open where a text ends"),
        (b'{"name": "x", "args": {"b": 2}', "a key was expected"),
        (b'{"ph": "X", "args": {"list": [{"c": :}, {"d": 1}], "e": 2}}', "a value was expected"),
        (b'{"a": [1, 2}}', "a closing bracket that does not fit"),
        (b'{"a": ' + b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2) + b"}", f"nested deeper than {DEEPEST} brackets"),
        (b'{"a": ' + b"[" * 1_000_000 + b"1}", f"nested deeper than {DEEPEST} brackets"),
        (b"\xff\xfe\x00 what is this}", "a value was expected"),
    ],
)
def test_what_is_open_to_guess_is_lost_with_its_place(chunk: bytes, why: str) -> None:
    """The loss has offset, length and reason, and both neighbours are there untouched."""
    salvaged = read(GOOD + b", " + chunk + b", " + GOOD)
    assert salvaged.texts == [GOOD, GOOD]
    assert [(lost.offset, lost.length, lost.why) for lost in salvaged.lost] == [(len(GOOD) + 2, len(chunk), why)]


def test_an_event_beyond_the_largest_size_is_lost() -> None:
    """Memory stays bounded, whatever a name holds."""
    huge = b'{"a": "' + b"x" * LARGEST_EVENT_BYTES + b'"}'
    salvaged = read(huge + b", " + GOOD, final=False)
    assert salvaged.texts == [GOOD]
    assert [lost.why for lost in salvaged.lost] == ["larger than 16 MiB"]


def test_an_event_that_is_cut_off_is_never_closed_by_guess() -> None:
    """Everything whole before the cut is kept."""
    salvaged = read(GOOD + b', {"ph": "X", "name": "half", "args": {"l": [{"a": 1}, {"b"')
    assert salvaged.texts == [GOOD]
    assert [lost.why for lost in salvaged.lost] == ["cut off"]


def test_an_event_that_goes_on_in_the_next_chunk_is_handed_back() -> None:
    """A wrong guess of the boundary costs nothing: tail and next chunk give the event."""
    event = b'{"name": "inf}, {", "bw": inf, "l": [{"a": 1}, {"b": 2}]}'
    for cut in range(1, len(event)):
        first = read(GOOD + b", " + event[:cut], final=False)
        assert (first.texts, first.rest, first.lost) == ([GOOD], event[:cut], [])
        second = read(first.rest + event[cut:] + b", " + GOOD)
        assert [msgspec.json.decode(text).get("l") for text in second.texts] == [[{"a": 1}, {"b": 2}], None]


def test_the_end_of_the_array_is_found_behind_a_lost_last_event() -> None:
    """The trailer may hold the time base: it is not lost with the event."""
    trailer = b'], "baseTimeNanoseconds": 5, "x": [{}]}'
    chunk = GOOD + b', {"ph": "X", "args": {"a": [{}], "b": :}}' + trailer
    salvaged = read(chunk)
    assert salvaged.texts == [GOOD]
    assert chunk[salvaged.closed_at :] == trailer


@pytest.mark.parametrize("trailer", [b"]", b"]}", b"\n]\n}\n", b'], "a": {"b": [1]}}', b'], "cut": {"b', b"] nonsense"])
def test_the_array_closes(trailer: bytes) -> None:
    """What follows the bracket belongs to the caller, whole or not."""
    salvaged = read(GOOD + trailer)
    assert (salvaged.texts, salvaged.lost) == ([GOOD], [])
    assert salvaged.closed_at == len(GOOD) + trailer.index(b"]")


def test_a_list_inside_a_lost_event_does_not_close_the_array() -> None:
    """A bracket counts for the array's end only if nothing goes on behind it."""
    salvaged = read(b'{"a": :, "l": [{"x": 1}, {"y": 1}], "k": 3}, ' + GOOD + b'], "base": 1}')
    assert salvaged.texts[-1] == GOOD
    assert salvaged.closed_at == 45 + len(GOOD)


def test_a_stray_bracket_does_not_swallow_what_follows() -> None:
    """No element of a trace is a list of events."""
    salvaged = read(b"[" + GOOD + b", " + GOOD + b", " + GOOD + b"]}")
    assert salvaged.texts == [GOOD, GOOD]
    assert [lost.offset for lost in salvaged.lost] == [0]


def test_events_without_commas_are_counted() -> None:
    """One object a line reads as well."""
    salvaged = read(b"\n".join([GOOD] * 5))
    assert salvaged.texts == [GOOD] * 5
    assert salvaged.repaired == {"missing comma": 4}


def test_every_third_event_damaged_leaves_the_others_untouched() -> None:
    """Real events, in three kinds of damage."""
    damages = [b'"args": {"bw": Infinity, ', b'"args": {"path": "C:\\dir\\", ', b'"args": {[']
    chunk, whole = [], []
    for index, event in enumerate(EVENTS):
        damaged = event.replace(b'"args": {', damages[index // 3 % 3]) if index % 3 == 0 else event
        chunk.append(damaged)
        whole += [event] if damaged == event else []
    salvaged = read(b",\n".join(chunk))
    assert [text for text in salvaged.texts if text in whole] == whole
    assert len(salvaged.texts) + len(salvaged.lost) == len(EVENTS)


@given(st.binary(max_size=400), st.booleans())
@example(b"]" * 50, True)
@example(b'{"a":"\\', False)
def test_no_bytes_raise(chunk: bytes, final: bool) -> None:
    """Whatever comes is read, lost or handed back."""
    read(chunk, final)


SIGNS = ["{", "}", "[", "]", ",", ":", '"', "\\", '"a"', '"a":', '"ph"', "1", "nan", "null", "},", "],", "x", "\n", "é"]
SYNTAX = st.lists(st.sampled_from(SIGNS), max_size=60)


@given(SYNTAX, st.booleans())
def test_no_mixture_of_syntax_raises(tokens: list[str], final: bool) -> None:
    """JSON's own signs in any order."""
    read("".join(tokens).encode(), final)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.fixed_dictionaries({"ph": st.just("X"), "name": st.text(max_size=8), "args": VALUES})
LAYOUTS = st.sampled_from([(None, (", ", ": ")), (None, (",", ":")), (1, (",", ": "))])


def written(events: list[Any], layout: tuple[Any, Any], ascii_only: bool) -> list[bytes]:
    indent, separators = layout
    return [json.dumps(e, indent=indent, separators=separators, ensure_ascii=ascii_only).encode() for e in events]


@given(st.lists(OBJECTS, max_size=6), LAYOUTS, st.booleans(), st.booleans())
def test_valid_events_are_untouched(events: list[Any], layout: Any, ascii_only: bool, final: bool) -> None:
    """No layout of valid JSON is taken for damage."""
    texts = written(events, layout, ascii_only)
    salvaged = read(b", ".join(texts), final)
    assert (salvaged.texts, salvaged.repaired, salvaged.lost, salvaged.rest) == (texts, {}, [], b"")


@given(st.lists(OBJECTS, max_size=6), LAYOUTS)
def test_one_damaged_value_makes_the_mender_read_all_else_as_it_is(events: list[Any], layout: Any) -> None:
    """The mender's reading of an event equals the strict one, but for the value that is none."""
    texts = [b'{"bad": nan, "good": ' + text + b"}" for text in written(events, layout, False)]
    salvaged = read(b", ".join(texts))
    assert [msgspec.json.decode(text) for text in salvaged.texts] == [
        {"bad": None, "good": json.loads(json.dumps(event))} for event in events
    ]


@st.composite
def mutations(draw: st.DrawFn) -> tuple[list[bytes], bytes, list[bytes]]:
    """Real events, of which one is changed anywhere: those before, the changed one, those behind."""
    start = draw(st.integers(0, len(EVENTS) - 8))
    events = EVENTS[start : start + 8]
    index = draw(st.integers(0, 7))
    event = events[index]
    at = draw(st.integers(0, len(event) - 1))
    length = draw(st.integers(0, 3))
    inserted = draw(st.binary(max_size=2) | st.sampled_from([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"nan"]))
    return events[:index], event[:at] + inserted + event[at + length :], events[index + 1 :]


@given(mutations(), st.booleans())
def test_events_around_a_damaged_one_are_untouched(parts: tuple[list[bytes], bytes, list[bytes]], closed: bool) -> None:
    """All before are there; behind, all but at most the one that the damage runs into."""
    before, damaged, behind = parts
    chunk = b", ".join([*before, damaged, *behind]) + (b'], "base": 1}' if closed else b"")
    salvaged = read(chunk)
    assert salvaged.texts[: len(before)] == before
    found = behind[1:] if _runs_on(damaged) else behind
    assert salvaged.texts[len(salvaged.texts) - len(found) :] == found


def _runs_on(event: bytes) -> bool:
    """Without `}` at its end, or `{` at the beginning of the next, there is no boundary to go on from."""
    return not event.rstrip(b" \n\t\r,").endswith(b"}")


@given(st.integers(0, len(b", ".join(EVENTS[:10])) - 1), st.booleans())
def test_a_truncated_chunk_keeps_every_whole_event(length: int, final: bool) -> None:
    """Cut anywhere, nothing whole is lost, and nothing is made up."""
    texts = EVENTS[:10]
    salvaged = read(b", ".join(texts)[:length], final)
    assert salvaged.texts == texts[: len(salvaged.texts)]
    assert sum(map(len, salvaged.texts)) + 2 * len(salvaged.texts) >= length - max(map(len, texts))
    assert {lost.why for lost in salvaged.lost} <= {"cut off"}


def _broken_events(name: str) -> bytes:
    if "CROSSOVER_TRACES" not in os.environ:
        pytest.skip("CROSSOVER_TRACES names no folder of public traces")
    data = (Path(os.environ["CROSSOVER_TRACES"]).parent / "broken" / name).read_bytes()
    match = re.search(rb'"traceEvents"\s*:\s*\[', data)
    assert match
    return data[match.end() :]


@pytest.mark.parametrize(
    ("name", "texts", "repaired"),
    [
        ("inf_bandwidth.json", 5139, {"inf or nan": 1}),
        ("windows_unescaped_backslash.json", 5138, {"bare backslash": 384}),
        ("truncated_mid_event.json", 2682, {}),
    ],
)
def test_public_damaged_files_are_read_whole(name: str, texts: int, repaired: dict[str, int]) -> None:
    """Real damage, where the files are at hand: no event is lost."""
    salvaged = read(_broken_events(name))
    assert (len(salvaged.texts), salvaged.repaired, salvaged.lost) == (texts, repaired, [])
