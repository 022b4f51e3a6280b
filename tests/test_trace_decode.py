"""runner.trace.decode: by columns it says of every event what runner.trace.single says of it alone."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.trace import single
from runner.trace.decode import PHASES, Decoded, decode

Members = list[tuple[str, str]]
"""Keys and texts of a JSON object, in order; a key may come twice."""

LAYOUTS = {
    "compact": (",", ":", ""),
    "spaced": (", ", ": ", ""),
    **{f"indent {n}": (",", ": ", n) for n in range(1, 9)},
}


def written(members: Members, layout: str = "compact") -> str:
    """JSON text of an object in a layout: on one line, or one line a member."""
    comma, colon, indent = LAYOUTS[layout]
    start = "\n" + " " * indent if isinstance(indent, int) else ""
    end = start and "\n"
    return (
        "{"
        + (comma + start).join(
            [(start if not i else "") + json.dumps(k) + colon + v for i, (k, v) in enumerate(members)]
        )
        + end
        + "}"
    )


def alone(texts: list[str]) -> dict[str, Any]:
    """What `single` says of events, one by one, as `decode` should say it of all."""
    told: dict[str, Any] = {"rows": [], "complete": 0, "begun": 0, "set_aside": Counter(), "ends": []}
    for text in texts:
        try:
            one = single.read(text.encode())
        except single.SetAside as error:
            told["set_aside"][str(error)] += 1
            told["complete"] += error.complete
            continue
        told["complete"] += one.phase == "X"
        told["begun"] += one.phase == "B"
        if "name" in one.columns:
            told["rows"].append({"event_id": len(told["rows"]), **one.columns})
        elif one.phase == "E":
            told["ends"].append({"place": len(told["rows"]), **one.columns})
        else:
            told["set_aside"][PHASES.get(one.phase, "unknown phase")] += 1
    return told


def together(decoded: Decoded) -> dict[str, Any]:
    """The same of a chunk."""
    ends = [{name: getattr(end, name) for name in ("place", "pid", "tid", "ts_ns", "args")} for end in decoded.ends]
    return {
        "rows": decoded.rows.sort("event_id").to_dicts(), "complete": decoded.complete, "begun": decoded.begun,
        "set_aside": decoded.set_aside, "ends": ends,
    }  # fmt: skip


def parsed(told: dict[str, Any]) -> dict[str, Any]:
    """With arguments and shapes as values."""
    for row in told["rows"] + told["ends"]:
        for name in ("args", "shapes"):
            if row.get(name) is not None:
                row[name] = json.loads(row[name])
    return told


def same(texts: list[str], comma: str = ",") -> Decoded:
    """The chunk of these events, decoded, after comparing it with the events alone."""
    decoded = decode(comma.join(texts).encode(), final=True)
    assert decoded.events == len(texts)
    assert not decoded.lost and not decoded.rest and decoded.closed_at is None
    expected = parsed(alone(texts))
    found = parsed(together(decoded))
    for name, value in expected.items():
        assert found[name] == value, name
    return decoded


# --- whatever a value may be

SCALARS = [
    "null", "true", "false", "0", "7", "-1", "1.5", "-0.25", "1e3", "1.0", "12345678901234567890", str(2**63),
    str(-(2**63)), str(2**70), '""', '"7"', '" 42 "', '"-7"', '"stream 7"', '"cuda:0"', '"1.5"',
    '"é\\u00e9\\ud83d\\ude00"', '"a\\"},{\\"b\\\\"', '"9223372036854775808"', '"٣"', '"0x10"', '"7\\n"',
    '"stream\\n7"',
]  # fmt: skip
NESTED = [
    "[]", "{}", "[1, 2, 3]", "[1,2,3]", "[1, 2]", "[true, 1, 1]", "[null, 1, 1]", "[1.0, 1, 1]",
    '["4", 2, 1]', "[[64, 64], []]", "[[[1, 2], [3]], []]", f"[{2**63}, 1, 1]", '{"a": [1, {"b": null}]}',
    '{"Input Dims": [[1]]}', '{"correlation": 3}', '[{"},{": "]"}]', "[[1.5]]", '["a", ""]', "[-1,  -2]",
]  # fmt: skip
VALUES = st.sampled_from(SCALARS + NESTED)
CATEGORIES = [
    "cpu_op", "CPU_op", "Operator", "operator", "Runtime", "cuda_runtime", "cuda_driver", "hip_runtime",
    "xpu_driver", "Kernel", "kernel", "Memcpy", "gpu_memcpy", "Memset", "gpu_memset", "user_annotation",
    "gpu_user_annotation", "cuda_sync", "python_function", "ac2g", "", "É", "cpu_instant_event", "CPU_Instant_Event",
]  # fmt: skip
NAMES = [
    "a", "", "[memory]", "ProfilerStep#3", "ProfilerStep#x",
    'void k<(int)4, {a}, [b]>("x\\y")', "a},{b", '}, {"ph": "X"',
    "µ 日本 😀", "line\nbreak\ttab",
]  # fmt: skip
TAKEN = [
    "correlation", "device", "stream", "registers per thread", "shared memory", "bytes", "grid", "block",
    "External id", "Input Dims", "Bytes",
]  # fmt: skip
KEYS = [*TAKEN, "warps per SM", "Call stack", "µ", "a\"b\\c", "},{", "External Id", "Input dims"]  # fmt: skip
ARGUMENTS = st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=6)
MEMORY = [("ph", '"i"'), ("cat", '"cpu_instant_event"'), ("name", '"[memory]"')]


FEW_DECIMALS = st.one_of(st.integers(0, 5000), st.integers(2**42, 2**43 - 1))
MANY_DECIMALS = st.one_of(
    st.integers(0, 5000), st.integers(2**41, 2**43 - 1), st.integers(2**43, 2**43 + 3),
    st.integers(2**53 - 3, 2**53 + 3),
    st.integers(17 * 10**14, 18 * 10**14), st.sampled_from([3 * 10**15, 3 * 10**15 + 1, 2**64]),
)  # fmt: skip


@st.composite
def times(draw: st.DrawFn) -> str:
    """Microseconds as text: small, relative, absolute, at the limits of doubles; decimals, exponents, signs."""
    few = draw(st.integers(0, 3)) > 0
    whole = draw(FEW_DECIMALS if few else MANY_DECIMALS)
    decimals = draw(st.text("0123456789", max_size=3 if few else 9))
    exponent = "" if few else draw(st.sampled_from(["", "", "e0", "E-3", "e+2"]))
    return draw(st.sampled_from(["", "", "", "-"])) + str(whole) + (f".{decimals}" if decimals else "") + exponent


@st.composite
def likely(draw: st.DrawFn) -> Members:
    """An event as a profiler writes it, or nearly."""
    named = [
        ("ph", '"X"'),
        ("cat", json.dumps(draw(st.sampled_from(CATEGORIES)))),
        ("name", json.dumps(draw(st.sampled_from(NAMES)))),
    ]
    if draw(st.integers(0, 3)) == 0:
        named = draw(st.sampled_from([MEMORY, MEMORY, [("ph", '"X"'), *MEMORY[1:]]]))
    lane = [
        ("pid", draw(st.sampled_from(["0", "7", '"stream 7"', '""']))),
        ("tid", draw(st.sampled_from(["1", "20", '"7"', '"python 3"']))),
    ]
    members = [
        *named,
        *lane,
        ("ts", draw(times())),
        ("dur", str(draw(st.integers(0, 9))) + ".125"),
        ("args", written(draw(ARGUMENTS))),
    ]
    return draw(st.permutations(members)) if draw(st.booleans()) else members


@st.composite
def fitting(draw: st.DrawFn) -> Members:
    """An event of which any value may be missing, there twice, or any that the columns' own decoder still takes."""
    lane = st.sampled_from(["null", "0", "-1", "1.5", "1e3", "1.50", str(2**70), '""', '"7"', '"stream 7"', '"é"'])
    text = ["null", '""', '"X"']
    values = {
        "ph": st.sampled_from([*text, '"B"', '"E"', '"i"', '"M"', '"s"', '"C"', '"?"', '"XX"']),
        "cat": st.sampled_from(text), "name": st.sampled_from(text), "pid": lane, "tid": lane,
        "ts": st.one_of(times(), times().map(json.dumps), lane),
        "dur": st.one_of(times(), times().map(json.dumps), lane),
        "args": st.one_of(ARGUMENTS.map(written), VALUES), "id": VALUES, "s": VALUES,
    }  # fmt: skip
    members = draw(likely())
    dropped = draw(st.lists(st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]), max_size=1))
    keys = draw(st.lists(st.sampled_from(sorted(values)), max_size=2))
    return [member for member in members if member[0] not in dropped] + [(key, draw(values[key])) for key in keys]


@st.composite
def odd(draw: st.DrawFn) -> Members:
    """An event with values of any type."""
    keys = draw(st.lists(st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]), max_size=3))
    return [*draw(likely()), *((key, draw(VALUES)) for key in keys)]


PLAIN = {"ph": '"X"', "cat": '"cpu_op"', "name": '"a"', "pid": "0", "tid": "1", "ts": "1.5", "dur": "2.125"}
KINDS = ["cpu_op", "cpu_instant_event", "cuda_runtime", "user_annotation", "gpu_user_annotation", "Kernel"]


def plain(category: str = "cpu_op", arguments: Members | None = None, **other: str) -> str:
    """An event as columns take it, but for what is given."""
    members = {
        **PLAIN,
        "cat": json.dumps(category),
        **({} if arguments is None else {"args": written(arguments)}),
        **other,
    }
    return written(list(members.items()))


# --- what an allocator did


def memory(**other: str) -> str:
    """An instant of Kineto's that tells of 512 bytes, but for what is given."""
    members = dict(MEMORY) | {"s": '"t"', "pid": "0", "tid": "1", "ts": "1.5", **other}
    arguments = [("Bytes", "-512"), ("Device Type", "1"), ("Addr", str(2**47))]
    return written([*members.items(), ("args", written(arguments))])


def test_an_allocators_instants_are_rows() -> None:
    """They last no time, whatever they say, hold their bytes with the sign, and are neither complete nor set aside."""
    decoded = same([plain(), memory(), plain("Kernel"), memory(dur="7"), memory(ts='"2.5"')])
    rows = decoded.rows.sort("event_id").filter(decoded.rows.sort("event_id").get_column("name") == "[memory]")
    assert rows.get_column("event_id").to_list() == [1, 3, 4]
    assert rows.get_column("ts_ns").to_list() == [1500, 1500, 2500]
    assert rows.get_column("dur_ns").to_list() == [0, 0, 0]
    assert rows.get_column("bytes").to_list() == [-512, -512, -512]
    assert json.loads(rows.get_column("args")[0]) == {"Device Type": 1, "Addr": 2**47}
    assert (decoded.complete, decoded.set_aside) == (2, Counter())


def test_any_value_of_an_allocators_instant() -> None:
    """One odd value between sound ones: the same as alone, kept or counted."""
    for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args"):
        for value in SCALARS + NESTED:
            same([plain(), memory(), memory(**{key: value}), plain("Kernel")])


def test_absolute_times_among_instants() -> None:
    """Where starts are read from their texts, those of the allocator's instants are, and no other instant's."""
    late = "1795959321186778.034"
    other = written([("ph", '"i"'), ("cat", '"cpu_instant_event"'), ("name", '"[OutOfMemory]"'), ("ts", "1.5")])
    decoded = same([plain(ts=late), other, memory(ts=late), plain(ts=late[:-3] + "035")])
    assert decoded.rows.get_column("ts_ns").sort().to_list() == [1795959321186778034] * 2 + [1795959321186778035]
    assert decoded.set_aside == {"instant": 1}


# --- every value in every place


@pytest.mark.parametrize("key", [*PLAIN, "args"])
def test_any_value_of_an_event_among_plain_ones(key: str) -> None:
    """One odd value between sound events changes no other row, and its own row is that of the event alone."""
    for category in KINDS:
        for value in (SCALARS + NESTED)[:: 1 if category == "Kernel" else 4]:
            changed = written(
                [
                    *((k, v) for k, v in PLAIN.items() if k not in ("cat", key)),
                    *((("cat", json.dumps(category)),) if key != "cat" else ()),
                    (key, value),
                ]
            )
            same([plain(category), changed, plain(category, [("grid", "[1, 2, 3]")])])


@pytest.mark.parametrize("key", TAKEN)
def test_any_value_of_an_argument_among_plain_ones(key: str) -> None:
    """One odd argument between sound ones: what has no column stays an argument, the same as alone."""
    for category in KINDS:
        usual = [(key, "[[1, 2]]" if key == "Input Dims" else "[1, 2, 3]" if key in ("grid", "block") else "5")]
        for value in SCALARS + NESTED:
            same([plain(category, usual), plain(category, [(key, value), ("x", "1")]), plain(category)])


def test_all_values_of_all_arguments_in_one_chunk() -> None:
    """Categories, keys and values of all kinds in one chunk, which by columns are parted by kind."""
    same(
        [
            plain(category, [(key, value)])
            for category in CATEGORIES
            for key in KEYS
            for value in (SCALARS + NESTED)[::7]
        ]
    )


@settings(deadline=None, max_examples=100)
@given(st.lists(likely(), min_size=1, max_size=8), st.sampled_from(sorted(LAYOUTS)))
def test_likely_events_by_columns_are_those_alone(events: list[Members], layout: str) -> None:
    """Names, categories, lanes, times and arguments as profilers write them, in every layout."""
    same([written(event, layout) for event in events])


@settings(deadline=None, max_examples=100)
@given(st.lists(fitting(), min_size=1, max_size=8), st.sampled_from(sorted(LAYOUTS)))
def test_missing_repeated_and_unlikely_values_by_columns_are_those_alone(events: list[Members], layout: str) -> None:
    """Phases, lanes and times of every kind; keys that are missing or come twice."""
    same([written(event, layout) for event in events])


@settings(deadline=None, max_examples=60)
@given(st.lists(odd(), min_size=1, max_size=8), st.sampled_from(sorted(LAYOUTS)))
def test_values_of_any_type_by_columns_are_those_alone(events: list[Members], layout: str) -> None:
    """Values of types that no column takes: the same columns, the same counts."""
    same([written(event, layout) for event in events])


def test_doubles_that_cannot_tell_a_fourth_decimal() -> None:
    """Beyond 2**42 us one double stands for texts on both sides of half a nanosecond: the text decides."""
    times = {
        "8000000000000.0024999": 8000000000000002,
        "8000000000000.0025001": 8000000000000003,
        "8000000000000.003": 8000000000000003,
    }
    for others in ([], list(times)):
        for text, expected in times.items():
            chunk = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"a","ts":{each},"dur":1}}' for each in [text, *others])
            assert decode(chunk.encode(), final=True).rows.sort("event_id").get_column("ts_ns")[0] == expected
