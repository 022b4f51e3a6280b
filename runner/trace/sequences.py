"""Steps of a trace that marks none, from the order of its device work alone.

The rule, in plain words:

1. An **anchor** is a kernel, or a short sequence of up to 32 of them, that comes back at even distances. Its places cut
   the device work into segments. A cut is good where most segments are **alike**: at least 0.9 of their kernels are the
   same, whatever the order, and 0.75 stand in the same order.
2. Of all good cuts **the one with the longest period is the step**: 32 layers between an embedding and a sampling
   kernel are one step, and so are four micro-batches and the optimizer behind them. A shorter period wins in three
   cases: no more than a single kernel stands between its repetitions, so that the longer one merely counts them (a
   logging copy every tenth step); the longer one holds more than 160 of them, more than models have layers; or the
   shorter one is made of eight layers or more itself, so that it is a step, and the longer one a request or an epoch.
3. A period has no beginning. A step **begins where the repetition begins or ends** inside the trace: behind warm-up,
   before a copy of the results, beside steps of another kind. Where the whole trace is repetition, its end counts as
   the end of a step, since a profiler waits for the device before it stops, whereas its first kernels may belong to a
   step that was launched before.
4. What lies between the steps is searched once more for a second repetition (evaluation between training).

Unknown stays unknown: `find` returns None where steps would cover less than 0.6 of the kernels, where no kind comes
three times (ten times for steps of a single kernel), where the repetition lies between kernels of its own at both ends
of the trace (the layers of one forward pass), and where the same interruption comes twice (the layers of two passes).
The price: a loop between other kernels of its own at both ends is not claimed either, unless its steps show layers.

Limits: layers are taken for steps where the trace shows a single boundary between two passes, both of them cut, or
where a single pass begins or ends with them; equal epochs, three of them with at most 160 steps each and different
kernels between, are taken for steps; a layer that is itself mostly one repetition (many experts) is taken for a step; a
step cut at both ends of the trace may begin at any of its kernels; a period of over a third of `_WINDOW` kernels is
not seen; steps that differ in more than 0.03 of their kernels may be missed, from 0.05 on also be joined.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import eq

import polars as pl

_ALIKE = 0.9  # share of kernels that two steps of one kind have in common
_IN_ORDER = 0.75  # share that also stands in the same order: above what chance gives with two kernels
_COVERED = 0.6
_COVERED_BY_CUT = 0.5  # less, since the first and the last step lie outside the anchor's places
_FEWEST, _FEWEST_SINGLE = 3, 10  # repetitions that make a kind credible: steps of several kernels, of one
_MOST_SINGLE = 0.25  # share of the steps' kernels that may lie in steps without a like, such as one prefill
_MOST_LAYERS = 160
_MOST_KINDS = 8
_ANCHOR_LENGTHS = (1, 2, 4, 8, 16, 32)
_WINDOW = 300_000  # kernels, in the middle of the trace, in which anchors are sought: bounds memory and time
_CANDIDATES = 24
_COMPARED = 100_000  # kernels compared for one candidate: bounds the time
_REJOIN = 12  # kernels that may be skipped on both sides together until two sequences agree again
_MOST_MISSING = 16  # longer parts of a step that may be missing in the trace's first or last one
_PATIENCE = 32  # places without such an agreement, one after another, that end a comparison


@dataclass(frozen=True, slots=True)
class Found:
    """Steps in the order of the trace; indices count the kernels given to `find`.

    `starts` and `ends`: first kernel of each step, and one past its last. What lies between two steps belongs to none.
    `kinds`: kind of each step, 0-based in the order of first appearance; steps of one kind are alike.
    `covered`: share of the kernels that lie in a step, 0 to 1.
    """

    starts: list[int]
    ends: list[int]
    kinds: list[int]
    covered: float


def find(kernels: Sequence[int]) -> Found | None:
    """Find the steps in the device work of one device, or None where no clear repetition exists.

    `kernels` holds one integer a device event (equal for equal names), ordered by start time over all
    streams, copies and collectives included. Time and memory grow linearly. The module's text says what counts as a
    step.
    """
    work = _Work(pl.Series(kernels, dtype=pl.Int64).rank("dense").cast(pl.UInt32))
    kinds = _Kinds(math.inf)
    return _found(work, kinds, _steps(work, kinds)) if len(work) else None


class _Work:
    """Device work as 32-bit codes, in bytes too, because bytes compare and hash fast."""

    def __init__(self, codes: pl.Series) -> None:
        self.series = codes
        self.codes = array("I", codes.to_list())
        self.bytes = self.codes.tobytes()

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, start: int, end: int) -> bytes:
        return self.bytes[4 * start : 4 * end]

    def places(self, anchor: bytes) -> list[int]:
        """Where the anchor begins; a long one is sought as bytes, at the places of whole codes."""
        if len(anchor) == 4:
            return (self.series == _kernels(anchor)[0]).arg_true().to_list()
        return list(_places(self.bytes, anchor))


def _places(data: bytes, anchor: bytes) -> Iterator[int]:
    at = data.find(anchor)
    while at >= 0:
        if at % 4 == 0:
            yield at // 4
        at = data.find(anchor, at + 1)


def _kernels(part: bytes) -> list[int]:
    return memoryview(part).cast("I").tolist()


# --- likeness of two sequences -------------------------------------------------------------------------------------


def _alike(a: list[int], b: list[int]) -> bool:
    return a == b or (_share_in_common(a, b) >= _ALIKE and _share_in_order(a, b) >= _IN_ORDER)


def _share_in_common(a: list[int], b: list[int]) -> float:
    """Dice's coefficient of the two bags of kernels."""
    if min(len(a), len(b)) < 0.8 * max(len(a), len(b)):
        return 0.0  # cannot reach 0.9
    return 2 * (Counter(a) & Counter(b)).total() / (len(a) + len(b))


def _share_in_order(a: list[int], b: list[int]) -> float:
    """Share of kernels that a walk through both sequences meets in the same order."""
    head = _same_from_start(a, b)
    tail = _same_from_start(a[head:][::-1], b[head:][::-1])
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    met = sum(1 for _ in _meetings(a, b, patience=_PATIENCE))
    return 2 * (head + tail + met) / (len(a) + len(b) + 2 * (head + tail))


def _same_from_start(a: list[int], b: list[int]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _meetings(a: list[int], b: list[int], patience: int = 0) -> Iterator[tuple[int, int]]:
    """Pairs of places at which both hold the same kernel, in order; ends after `patience` places without a meeting."""
    i = j = missed = 0
    while i < len(a) and j < len(b) and missed <= patience:
        if a[i] == b[j]:
            yield i, j
            i, j, missed = i + 1, j + 1, 0
            continue
        rejoined = _rejoined(a, i, b, j)
        missed += rejoined is None
        i, j = rejoined or (i + 1, j + 1)


def _rejoined(a: list[int], i: int, b: list[int], j: int) -> tuple[int, int] | None:
    """The nearest places behind i and j from which the next three kernels agree."""
    ahead_a, ahead_b = a[i : i + _REJOIN + 3], b[j : j + _REJOIN + 3]
    if set(ahead_a).isdisjoint(ahead_b):
        return None
    for skipped in range(1, _REJOIN + 1):
        for x in range(max(0, skipped - len(ahead_b) + 1), min(skipped + 1, len(ahead_a))):
            y = skipped - x
            if ahead_a[x] == ahead_b[y] and ahead_a[x + 1 : x + 3] == ahead_b[y + 1 : y + 3]:
                return i + x, j + y
    return None


def _follow(work: list[int], loop: list[int]) -> list[tuple[int, int]]:
    """Meetings of the work with a loop run through twice; parts of the loop may be missing in the work."""
    loop = loop + loop
    met = list(_meetings(work, loop))
    for _ in range(_MOST_MISSING):
        i, j = _reached(met)
        skipped = _found_ahead(work[i : i + 8], loop[j : j + len(loop) // 4])
        if not skipped:
            break
        met += [(i + x, j + skipped + y) for x, y in _meetings(work[i:], loop[j + skipped :])]
    return met


def _found_ahead(wanted: list[int], loop: list[int]) -> int:
    """How far ahead the wanted kernels stand in the loop, 0 where they do not."""
    if len(wanted) < 8 or len(set(wanted)) < 3:
        return 0
    return next(_places(array("I", loop).tobytes(), array("I", wanted).tobytes()), 0)


def _layered(step: list[int]) -> bool:
    """Whether one period, eight times or more, makes up 0.8 of the sequence."""
    seen: dict[tuple[int, ...], int] = {}
    distances: Counter[int] = Counter()
    for at, four in enumerate(zip(step, step[1:], step[2:], step[3:], strict=False)):
        if four in seen:
            distances[at - seen[four]] += 1
        seen[four] = at
    periods = [period for period, _ in distances.most_common(8) if 2 <= period <= len(step) / 8]
    return any(sum(map(eq, step, step[period:])) >= 0.8 * len(step) for period in periods)


# --- kinds of parts ------------------------------------------------------------------------------------------------


class _Kinds:
    """Tells kinds of parts, and remembers them; looks at no more than about `most` kernels."""

    def __init__(self, most: float) -> None:
        self._left = most
        self._models: list[list[int]] = []
        self._known: dict[bytes, int | None] = {}

    def of(self, parts: list[bytes]) -> list[int | None]:
        """Number of the kind of each part, the most frequent content first; None where none was looked for."""
        for part, _ in Counter(parts).most_common():
            if part not in self._known:
                self._known[part] = self._sought(_kernels(part)) if self._left > 0 else None
        return [self._known[part] for part in parts]

    def _sought(self, kernels: list[int]) -> int:
        for number, model in enumerate(self._models[:_MOST_KINDS]):
            self._left -= len(kernels)
            if _alike(model, kernels):
                return number
        self._models.append(kernels)
        return len(self._models) - 1


# --- anchors and cuts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cut:
    """An anchor, its places, the kinds of the segments between them, and a segment of the main, most frequent kind.

    `main`: kernels in segments of the main kind; `odd`: number of the other segments. Both are estimates where not all
    segments were looked at.
    """

    anchor: bytes
    places: list[int]
    kinds: list[int | None]
    typical: list[int]
    main: float
    odd: float


def _anchors(work: _Work) -> list[bytes]:
    """Sequences that come back at even distances, one for each period, those with the most support."""
    found = pl.concat([_even(grams, length) for length, grams in _grams(work.series)])
    periods = (
        found.sort("even", "length", "at", descending=[True, False, False])
        .group_by("bin", maintain_order=True)
        .agg(pl.col("even").sum().alias("support"), pl.col("at", "length").first())
        .sort("support", "bin", descending=True)
        .head(_CANDIDATES)
    )
    return [work.part(at, at + length) for at, length in periods.select("at", "length").iter_rows()]


def _grams(codes: pl.Series) -> Iterator[tuple[int, pl.Series]]:
    """For each length the number of the sequence of that length that begins at each place (by doubling)."""
    grams = codes.rank("dense")
    for length in _ANCHOR_LENGTHS:
        if len(grams) == 0:
            return
        yield length, grams
        wide = grams.cast(pl.UInt64)
        behind = wide.slice(length)
        grams = (wide.head(len(behind)) * (len(codes) + 1) + behind).rank("dense")


def _even(grams: pl.Series, length: int) -> pl.DataFrame:
    """Sequences with three places or more whose gaps are even: place of the first, share of kernels in even gaps."""
    gap, usual = pl.col("gap"), pl.col("usual")
    return (
        pl.DataFrame({"gram": grams})
        .lazy()
        .with_row_index("at")
        .sort("gram", "at")
        .with_columns(pl.when(pl.col("gram").diff() == 0).then(pl.col("at").diff()).alias("gap"))
        .group_by("gram")
        .agg(pl.len().alias("count"), pl.col("at").min(), gap.median().alias("usual"), gap)
        .filter(pl.col("count") >= _FEWEST)
        .explode("gap")
        .filter(gap.is_between(usual * 0.8, usual * 1.25))
        .group_by("gram", "at", "usual", "count")
        .agg((gap.sum() / len(grams) * pl.len() / (pl.col("count").first() - 1)).alias("even"))
        .filter(pl.col("even") >= 0.3)
        .select("at", "even", (usual.log(1.1)).round().alias("bin"), pl.lit(length).alias("length"))
        .collect()
    )


def _cut(work: _Work, anchor: bytes) -> _Cut | None:
    """Cut at every place of the anchor; None unless repeated kinds cover half of the kernels."""
    places = work.places(anchor)
    parts = [work.part(start, end) for start, end in pairwise(places)]
    kinds = _Kinds(_COMPARED).of(parts)
    kernels, members = Counter[int](), Counter[int]()
    for part, kind in zip(parts, kinds, strict=True):
        if kind is not None:
            kernels[kind] += len(part) // 4
            members[kind] += 1
    scale = (places[-1] - places[0]) / max(1, kernels.total())
    if scale * sum(kernels[kind] for kind, count in members.items() if count > 1) < _COVERED_BY_CUT * len(work):
        return None
    main = max(members, key=lambda kind: (members[kind], -kind))
    odd = (1 - members[main] / members.total()) * len(parts)
    return _Cut(anchor, places, kinds, _kernels(parts[kinds.index(main)]), scale * kernels[main], odd)


def _step_cut(work: _Work, cuts: list[_Cut]) -> _Cut:
    """The cut whose segments are steps: the longest period, unless a shorter one has the better claim."""
    longest, *shorter = sorted(cuts, key=lambda cut: -len(cut.typical))
    for cut in shorter:
        if _better(work, cut, longest):
            longest = cut
    size = len(longest.typical)
    return max((cut for cut in cuts if _same_period(cut, longest)), key=lambda cut: cut.main - cut.odd * size)


def _same_period(cut: _Cut, longest: _Cut) -> bool:
    """Whether another anchor comes as often; one that comes twice a step has every second segment odd."""
    near = 0.8 * len(longest.typical) <= len(cut.typical) <= 1.25 * len(longest.typical)
    return cut is longest or (near and cut.odd <= 0.25 * len(cut.kinds))


def _better(work: _Work, short: _Cut, long: _Cut) -> bool:
    """Whether the longer period is only a number of the shorter ones."""
    if len(long.typical) < 1.5 * len(short.typical):
        return False
    mostly_one = short.main >= 0.9 * (short.places[-1] - short.places[0])
    if _layered(short.typical) or (mostly_one and len(short.kinds) > _MOST_LAYERS * len(long.places)):
        return True
    return mostly_one and short.odd < 0.5 * len(long.kinds) and len(_steady_strangers(work, short, long)) < 2


def _steady_strangers(work: _Work, short: _Cut, long: _Cut) -> set[int]:
    """Kernels of the longer period at the same place in each that the shorter one lacks: no noise, no lone copy."""
    known = set(short.typical)
    first, *others = [_first_places(work, step, known) for step in list(pairwise(long.places))[:4]]
    apart = max(2, len(long.typical) // 50)
    return {
        code for code, at in first.items() if all(abs(other.get(code, -at - apart) - at) < apart for other in others)
    }


def _first_places(work: _Work, step: tuple[int, int], known: set[int]) -> dict[int, int]:
    places: dict[int, int] = {}
    for at, code in enumerate(work.codes[slice(*step)]):
        if code not in known:
            places.setdefault(code, at)
    return places


# --- where a step begins -------------------------------------------------------------------------------------------


def _runs(work: _Work, cut: _Cut) -> list[list[int]]:
    """Places of the anchor in stretches that nothing interrupts; a lone place counts where no other is near."""
    runs = [[cut.places[0]]]
    typical = array("I", cut.typical).tobytes()
    for start, end in pairwise(cut.places):
        part = work.part(start, end)
        if part == typical or _plausible(_kernels(part), cut.typical):
            runs[-1].append(end)
        else:
            runs.append([end])
    near = len(cut.typical) / 2
    apart = [math.inf, *(after[0] - run[-1] for run, after in pairwise(runs)), math.inf]
    return [run for run, gaps in zip(runs, pairwise(apart), strict=True) if len(run) > 1 or min(gaps) > near]


def _plausible(segment: list[int], typical: list[int]) -> bool:
    """Whether a segment can be one step of another kind, rather than a step with something else put into it."""
    if len(segment) < 1.1 * len(typical):
        return len(segment) >= len(typical) / 4
    if len(segment) > 2 * len(typical):
        return False
    _, ahead = _reached(list(_meetings(segment, typical)))
    _, behind = _reached(list(_meetings(segment[::-1], typical[::-1])))
    return ahead + behind < _ALIKE * len(typical)


def _beginning(work: _Work, runs: list[list[int]], typical: list[int]) -> int:
    """Where in the typical segment a step begins, as most ends of stretches say; else the end of the trace says it."""
    told: list[int] = []
    for run in runs:
        before, after = _before(work, run[0], typical), _after(work, run[-1], typical)
        into_work, into_step = _reached(before)
        if _foreign(work.part(max(0, run[0] - into_work - len(typical)), run[0] - into_work), typical):
            told.append(-into_step % len(typical))
        into_work, into_step = _reached(after)
        if _foreign(work.part(run[-1] + into_work, run[-1] + into_work + len(typical)), typical):
            told.append(into_step % len(typical))
    end = _reached(_after(work, runs[-1][-1], typical))[1] % len(typical)
    return Counter(told).most_common(1)[0][0] if told else end


def _foreign(part: bytes, typical: list[int]) -> bool:
    """Whether kernels, if any, are of other names than the step's: else the step may go on there, only noisier."""
    kernels, known = _kernels(part), set(typical)
    return bool(kernels) and sum(kernel in known for kernel in kernels) < len(kernels) / 2


def _before(work: _Work, place: int, typical: list[int]) -> list[tuple[int, int]]:
    return _follow(_kernels(work.part(max(0, place - 2 * len(typical)), place))[::-1], typical[::-1])


def _after(work: _Work, place: int, typical: list[int]) -> list[tuple[int, int]]:
    return _follow(_kernels(work.part(place, place + 2 * len(typical))), typical)


def _reached(met: list[tuple[int, int]]) -> tuple[int, int]:
    """How far two sequences ran alike: kernels of the work, kernels of the step."""
    return (met[-1][0] + 1, met[-1][1] + 1) if met else (0, 0)


def _bounds(work: _Work, run: list[int], typical: list[int], beginning: int) -> list[int]:
    """First kernels of the steps of one stretch, and the end of the last."""
    inner = run[:-1]
    if beginning:
        inner = [start + _place(work.part(start, end), typical, beginning) for start, end in pairwise(run)]
    size, missing = len(typical), int((1 - _ALIKE) * len(typical))
    before, after = _before(work, run[0], typical), _after(work, run[-1], typical)
    earlier = [_opposite(before, wanted, missing) for wanted in (2 * size - beginning, size - beginning)]
    later = [_opposite(after, wanted, missing) for wanted in (beginning, beginning + size)]
    return [
        *(max(0, run[0] - at) for at in earlier if at is not None),
        *inner,
        *(min(len(work), run[-1] + at) for at in later if at is not None),
    ]


def _place(part: bytes, typical: list[int], beginning: int) -> int:
    """Where in a segment the step begins, followed from its nearer end."""
    segment, rest = _kernels(part), len(typical) - beginning
    if segment[: beginning + 1] == typical[: beginning + 1]:
        return beginning
    if beginning <= rest:
        return _nearest(list(_meetings(segment, typical)), beginning)
    if segment[-rest - 1 :] == typical[-rest - 1 :]:
        return len(segment) - rest
    return len(segment) - _nearest(list(_meetings(segment[::-1], typical[::-1])), rest)


def _nearest(met: list[tuple[int, int]], wanted: int) -> int:
    """The place opposite a wanted place of the typical segment, by distance where they do not meet there."""
    into_work, into_step = _reached(met)
    return next((i for i, j in met if j >= wanted), into_work + max(0, wanted - into_step))


def _opposite(met: list[tuple[int, int]], wanted: int, most_missing: int) -> int | None:
    """The place opposite a wanted one, None where the two did not run alike so far."""
    _, into_step = _reached(met)
    if into_step < wanted - most_missing:
        return None
    return _nearest(met, wanted)


# --- steps ---------------------------------------------------------------------------------------------------------

_Steps = list[tuple[int, int]]


def _steps(work: _Work, kinds: _Kinds, deeper: int = 2) -> _Steps:
    """First and one past the last kernel of each step, in order; empty where nothing credible is repeated."""
    first = max(0, (len(work) - _WINDOW) // 2)
    window = _Work(work.series.slice(first, _WINDOW)) if first else work
    cuts = [cut for anchor in _anchors(window) if (cut := _cut(window, anchor))]
    cut = _cut(work, _step_cut(window, cuts).anchor) if cuts else None
    if cut is None:
        return []
    steps = _credible(work, kinds, _whole(work, cut))
    others = _between(work, kinds, steps, len(cut.typical), deeper - 1) if steps and deeper else []
    may_be_layers = not _layered(cut.typical) and _interrupted(work, kinds, sorted(steps + others), 0 if others else 1)
    return [] if may_be_layers else sorted(steps + others)


def _whole(work: _Work, cut: _Cut) -> _Steps:
    runs = _runs(work, cut)
    if not runs:
        return []
    beginning = _beginning(work, [run for run in runs if len(run) > 1] or runs, cut.typical)
    steps: _Steps = []
    for start, end in (step for run in runs for step in pairwise(_bounds(work, run, cut.typical, beginning))):
        if (steps[-1][1] if steps else 0) <= start < end:  # stretches that touch may claim the same kernels
            steps.append((start, end))
    return steps


def _credible(work: _Work, kinds: _Kinds, steps: _Steps) -> _Steps:
    """The steps, if enough of one kind are among them and those that have no like are few."""
    numbers = kinds.of([work.part(*step) for step in steps])
    members = Counter(numbers)
    size = {number: end - start for (start, end), number in zip(steps, numbers, strict=True)}
    enough = any(count >= (_FEWEST if size[number] > 1 else _FEWEST_SINGLE) for number, count in members.items())
    single = sum(size[number] for number, count in members.items() if count == 1)
    return steps if enough and single <= _MOST_SINGLE * sum(end - start for start, end in steps) else []


def _gaps(work: _Work, steps: _Steps) -> _Steps:
    """What lies before, between and behind the steps; pieces of no kernel between two steps are left out."""
    bounds = [0, *(bound for step in steps for bound in step), len(work)]
    inner = list(zip(bounds[::2], bounds[1::2], strict=True))
    return [gap for gap in inner if gap[0] < gap[1]]


def _between(work: _Work, kinds: _Kinds, steps: _Steps, size: int, deeper: int) -> _Steps:
    """Steps of a second repetition in the gaps, none of them far smaller than the first's: those would be layers."""
    gaps = [gap for gap in _gaps(work, steps) if gap[1] - gap[0] >= max(2, size / 8)]
    if sum(end - start for start, end in gaps) < max(_FEWEST, len(work) / 50):
        return []
    rest = _Work(pl.concat([work.series.slice(start, end - start) for start, end in gaps]))
    ends = list(accumulate(end - start for start, end in gaps))
    found = []
    for start, end in _steps(rest, kinds, deeper):
        gap = bisect_right(ends, start)
        if end <= ends[gap] and end - start >= size / 8:
            shift = gaps[gap][1] - ends[gap]
            found.append((start + shift, end + shift))
    return found


def _interrupted(work: _Work, kinds: _Kinds, steps: _Steps, most: int) -> bool:
    """Whether unusual kernels tell that the repetition lies inside a longer step, which was not seen three times.

    `most`: how often the same run of unusual kernels may come between steps; one between two kinds of step is too much,
    since layers of a forward and of a backward pass look like that.
    """
    if not steps or len(steps) > _MOST_LAYERS * (1 + len(_gaps(work, steps))):
        return False
    usual = _usual(work, kinds, steps)
    inside = Counter(run for run in _strange_runs(work, usual) if len(set(run)) > 1)
    return _embraced(work, steps, usual) or max(inside.values(), default=0) > most


def _embraced(work: _Work, steps: _Steps, usual: set[int]) -> bool:
    """Whether unusual kernels stand at both ends of the trace; one of them alone at its end is a copy of results."""
    before = [code for code in work.codes[: max(_FEWEST, steps[0][0])] if code not in usual]
    behind = [code for code in work.codes[min(len(work) - _FEWEST, steps[-1][1]) :] if code not in usual]
    return bool(before and behind) and (len(behind) > 1 or len(work) - steps[-1][1] > 1)


def _usual(work: _Work, kinds: _Kinds, steps: _Steps) -> set[int]:
    """Kernels that most steps of a kind have, among kinds that come three times."""
    parts = [work.part(*step) for step in steps]
    numbers = kinds.of(parts)
    members = Counter(numbers)
    within: dict[int | None, Counter[int]] = {number: Counter() for number in members}
    for (part, number), times in Counter(zip(parts, numbers, strict=True)).items():
        within[number].update(dict.fromkeys(_kernels(part), times))
    return {
        code
        for number, codes in within.items()
        for code, times in codes.items()
        if members[number] >= _FEWEST and times > members[number] / 2
    }


def _strange_runs(work: _Work, usual: set[int]) -> Iterator[tuple[int, ...]]:
    """Unusual kernels that stand side by side."""
    return (tuple(run) for strange, run in groupby(work.codes, lambda code: code not in usual) if strange)


def _found(work: _Work, kinds: _Kinds, steps: _Steps) -> Found | None:
    covered = sum(end - start for start, end in steps) / len(work)
    if covered < _COVERED:
        return None
    number: dict[int | None, int] = {}
    return Found(
        starts=[start for start, _ in steps],
        ends=[end for _, end in steps],
        kinds=[number.setdefault(kind, len(number)) for kind in kinds.of([work.part(*step) for step in steps])],
        covered=covered,
    )
