"""Steps found in repeated kernel sequences: every shape of loop, its near miss, and marked traces."""

import gzip
import json
import os
import random
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.trace.sequences import Found, find

OWN = Path(__file__).parent / "data" / "traces"
PUBLIC = os.environ.get("CROSSOVER_TRACES")


def sequence(size: int, names: int, seed: int, first: int = 0) -> list[int]:
    """Kernels without a repetition of their own."""
    dice = random.Random(seed)
    return [first + dice.randrange(names) for _ in range(size)]


def joined(parts: Iterable[list[int]]) -> list[int]:
    """All parts, one behind the other."""
    return list(chain.from_iterable(parts))


def noisy(kernels: list[int], share: float, dice: random.Random) -> list[int]:
    """Some kernels chosen otherwise, left out or doubled by another one."""
    result: list[int] = []
    for kernel in kernels:
        fate = dice.random() / share if share else 1
        if fate >= 1:
            result.append(kernel)
        elif fate < 1 / 3:
            result.append(dice.randrange(80))
        elif fate < 2 / 3:
            result += [kernel, dice.randrange(80)]
    return result


def found(kernels: list[int]) -> Found:
    """What is found, which must be something."""
    result = find(kernels)
    assert result is not None
    return result


def marks(*lengths: int, first: int = 0) -> tuple[list[int], list[int]]:
    """Starts and ends of steps of these lengths that follow each other."""
    bounds = [first]
    for length in lengths:
        bounds.append(bounds[-1] + length)
    return bounds[:-1], bounds[1:]


def steps_of(result: Found) -> tuple[list[int], list[int]]:
    """Starts and ends."""
    return result.starts, result.ends


TRAIN = sequence(300, 60, seed=1)
EVALUATE = sequence(110, 60, seed=2, first=200)
LAYER = sequence(12, 20, seed=3)
FORWARD = [50, 51, *LAYER * 32, 52, 53, 54]  # embedding, layers, sampling: one decode step
PREFILL = [50, 60, *sequence(14, 20, seed=4, first=100) * 32, 52, 53, 54]


# --- training ------------------------------------------------------------------------------------------------------


def test_a_loop_of_equal_steps_is_cut_at_its_steps() -> None:
    """Eight equal steps are found as eight, all of one kind, and cover everything."""
    result = found(TRAIN * 8)
    assert steps_of(result) == marks(*[300] * 8)
    assert result.kinds == [0] * 8
    assert result.covered == 1


def test_what_precedes_the_first_step_belongs_to_none() -> None:
    """Warm-up kernels before the loop set its beginning and lie outside."""
    assert steps_of(found(sequence(500, 40, seed=5, first=100) + TRAIN * 8)) == marks(*[300] * 8, first=500)


def test_a_trace_that_begins_in_a_step_has_its_steps_counted_from_its_end() -> None:
    """Kernels of a step launched before the window do not shift the whole steps."""
    assert steps_of(found((TRAIN * 7)[120:])) == marks(*[300] * 6, first=180)


def test_a_long_trace_is_cut_to_its_ends() -> None:
    """Anchors are sought in a window of the trace, steps in all of it."""
    assert steps_of(found(TRAIN * 1_200)) == marks(*[300] * 1_200)


def test_steps_cut_at_both_ends_keep_their_length() -> None:
    """Where both ends are cut the beginning is free, but the period is not."""
    result = found((TRAIN * 9)[100:-70])
    assert len(result.starts) in (7, 8)
    assert {end - start for start, end in zip(*steps_of(result), strict=True)} == {300}


def test_a_kernel_chosen_otherwise_in_the_first_step_keeps_the_kind() -> None:
    """An autotuner's other choice in step one is a variation, not another kind."""
    result = found([*TRAIN[:150], 77, 78, *TRAIN[150:], *TRAIN * 9])
    assert steps_of(result) == marks(302, *[300] * 9)
    assert set(result.kinds) == {0}


def test_a_copy_every_tenth_step_makes_no_longer_step() -> None:
    """Logging adds a kernel to some steps; ten steps do not become one."""
    steps = [[*TRAIN, *[77] * (number % 10 == 9)] for number in range(40)]
    result = found(joined(steps))
    assert len(result.starts) == 40
    assert set(result.kinds) == {0}


def test_micro_batches_and_their_optimizer_are_one_step() -> None:
    """Gradient accumulation repeats inside a step; the optimizer ends it."""
    micro, optimizer = sequence(80, 40, seed=6), sequence(30, 20, seed=7, first=40)
    assert steps_of(found((micro * 4 + optimizer) * 6)) == marks(*[350] * 6)


def test_evaluation_between_training_is_a_second_kind() -> None:
    """Steps of both kinds are found, wherever they stand."""
    result = found(TRAIN * 10 + EVALUATE * 5 + TRAIN * 10 + EVALUATE * 5 + TRAIN * 7)
    assert result.kinds == [0] * 10 + [1] * 5 + [0] * 10 + [1] * 5 + [0] * 7
    assert steps_of(result) == marks(*[300] * 10, *[110] * 5, *[300] * 10, *[110] * 5, *[300] * 7)


def test_evaluation_by_the_forward_half_of_training_is_a_second_kind() -> None:
    """A kind may consist of the first kernels of another one."""
    half = TRAIN[:100]
    result = found(TRAIN * 10 + half * 5 + TRAIN * 10 + half * 5 + TRAIN * 7)
    assert result.kinds == [0] * 10 + [1] * 5 + [0] * 10 + [1] * 5 + [0] * 7


def test_streams_that_interleave_otherwise_from_step_to_step_change_nothing() -> None:
    """Collectives of a second stream may stand anywhere in a step."""
    dice = random.Random(8)
    steps = []
    for _ in range(10):
        step = TRAIN[:]
        for collective in (300, 301, 302, 303):
            step.insert(dice.randrange(10, 290), collective)
        steps.append(step)
    result = found(joined(steps))
    assert steps_of(result) == marks(*[304] * 10)
    assert set(result.kinds) == {0}


# --- layers and serving --------------------------------------------------------------------------------------------


def test_layers_are_no_steps() -> None:
    """Ten forward passes of 32 layers are ten steps."""
    assert steps_of(found(FORWARD * 10)) == marks(*[len(FORWARD)] * 10)


def test_three_passes_are_enough_to_tell_a_step_from_its_layers() -> None:
    """The longest period wins as soon as it comes three times."""
    assert steps_of(found(FORWARD * 3)) == marks(*[len(FORWARD)] * 3)


@pytest.mark.parametrize("passes", [1, 2])
def test_the_layers_of_fewer_passes_are_not_taken_for_steps(passes: int) -> None:
    """One or two passes repeat nothing but their layers: nothing is claimed."""
    assert find(FORWARD * passes) is None


def test_layers_between_two_cut_passes_are_not_taken_for_steps() -> None:
    """The same sampling and embedding between layers twice tells that a longer step exists."""
    assert find((FORWARD * 3)[150:-150]) is None


@pytest.mark.parametrize("layers", [4, 24, 126])
def test_a_boundary_far_shorter_than_a_layer_is_enough(layers: int) -> None:
    """Two kernels of their own between the last and the first layer end a step, although they are few."""
    layer = sequence(38, 30, seed=12)
    assert steps_of(found((layer * layers + [50, 51]) * 5)) == marks(*[38 * layers + 2] * 5)


def test_the_layers_of_one_training_step_are_not_taken_for_two_kinds() -> None:
    """Forward and backward layers between embedding, loss and optimizer of a single step are no steps."""
    backward = sequence(30, 20, seed=13, first=200)
    assert find([50, *LAYER * 32, 51, 52, *backward * 32, 60, 61]) is None


def test_prefill_and_decode_are_two_kinds() -> None:
    """One prefill stands before its decode steps as a step of its own kind."""
    result = found(PREFILL + FORWARD * 20)
    assert result.kinds == [0] + [1] * 20
    assert steps_of(result) == marks(len(PREFILL), *[len(FORWARD)] * 20)


@pytest.mark.parametrize("tokens", [(17, 30, 25, 40), (20, 20, 20, 20, 20), (150, 150, 150)])
def test_requests_are_no_steps(tokens: tuple[int, ...]) -> None:
    """Requests of different or of equal numbers of tokens are cut into their prefill and decode steps."""
    result = found(joined(PREFILL + FORWARD * number for number in tokens))
    assert result.kinds == [kind for number in tokens for kind in [0] + [1] * number]


def test_a_prefill_without_a_kernel_in_common_is_found_between_the_decode_steps() -> None:
    """Kinds need not share the kernel that the steps are found by."""
    prefill = [kernel + 1_000 for kernel in PREFILL]
    result = found(joined(prefill + FORWARD * number for number in (17, 30, 25, 40)))
    assert result.kinds == [kind for number in (17, 30, 25, 40) for kind in [0] + [1] * number]


# --- loops of few kernels ------------------------------------------------------------------------------------------


def test_each_run_of_a_single_kernel_is_a_step() -> None:
    """A benchmark loop of one kernel has as many steps as kernels, set-up and a last copy aside."""
    result = found([1, 2, 3, *[5] * 1_000, 7])
    assert steps_of(result) == marks(*[1] * 1_000, first=3)
    assert result.covered == pytest.approx(1_000 / 1_004)


@pytest.mark.parametrize(("kernels", "fewest"), [([5], 10), ([1, 2], 3), ([1, 1, 2], 3), ([3, 1, 4, 1, 5], 3)])
def test_a_loop_is_found_from_the_fewest_repetitions_on(kernels: list[int], fewest: int) -> None:
    """Three repetitions of several kernels or ten of one are steps; one fewer are none."""
    assert steps_of(found(kernels * fewest)) == marks(*[len(kernels)] * fewest)
    assert find(kernels * (fewest - 1)) is None


# --- nothing to find -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", [[], [1], [1, 1], [1, 2, 3], list(range(1_000))])
def test_too_little_or_nothing_repeated_gives_none(kernels: list[int]) -> None:
    """Empty, tiny and never repeating sequences hold no step."""
    assert find(kernels) is None


@pytest.mark.parametrize("names", [2, 3, 10, 100])
@pytest.mark.parametrize("seed", range(4))
def test_random_kernels_have_no_steps(names: int, seed: int) -> None:
    """Chance makes no loop, however few the kernels' names are."""
    assert find(sequence(5_000, names, seed)) is None


def test_the_same_kernels_in_ever_different_order_are_no_steps() -> None:
    """Equal counts alone do not make two stretches alike."""
    dice = random.Random(9)
    assert find(joined(dice.sample(range(40), 40) for _ in range(50))) is None


def test_a_loop_that_covers_less_than_0_6_is_not_claimed() -> None:
    """The same loop is found with little around it and not with much."""
    around = sequence(3_000, 2_000, seed=10, first=1_000)
    assert find(around + TRAIN * 4) is None
    assert find(around[:300] + TRAIN * 4) is not None


# --- for any sequence ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(20, 250),
    number=st.integers(3, 14),
    share=st.sampled_from([0.0, 0.005, 0.02, 0.5]),
)
def test_a_repeated_sequence_with_noise_has_its_number_of_steps(
    seed: int, size: int, number: int, share: float
) -> None:
    """Without noise all steps are found, with some all but two at most or none, with much none."""
    dice = random.Random(seed)
    base = sequence(size, 40, seed)
    result = find(joined(noisy(base, share, dice) for _ in range(number)))
    if share == 0:
        assert result is not None and steps_of(result) == marks(*[size] * number)
    elif share == 0.5:
        assert result is None
    else:
        assert result is None or number - 2 <= len(result.starts) <= number


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=8), max_size=8), st.lists(st.integers(0, 7), max_size=40)
)
def test_what_is_found_is_well_formed(blocks: list[list[int]], order: list[int]) -> None:
    """Steps are disjoint and ascending, kinds are numbered by appearance, the share is theirs, and it is enough."""
    kernels = [kernel for number in order if number < len(blocks) for kernel in blocks[number]]
    result = find(kernels)
    assert result == find(kernels)
    if result is None:
        return
    assert len(result.starts) == len(result.ends) == len(result.kinds)
    bounds = [bound for step in zip(*steps_of(result), strict=True) for bound in step]
    assert bounds == sorted(bounds) and bounds[0] >= 0 and bounds[-1] <= len(kernels)
    assert all(start < end for start, end in zip(*steps_of(result), strict=True))
    assert list(dict.fromkeys(result.kinds)) == list(range(len(set(result.kinds))))
    assert result.covered == sum(map(int.__sub__, result.ends, result.starts)) / len(kernels) >= 0.6


def test_the_numbers_given_to_kernels_do_not_matter() -> None:
    """Other codes for the same names give the same steps."""
    kernels = PREFILL + FORWARD * 20 + PREFILL + FORWARD * 9
    codes = sequence(200, 10**6, seed=11)
    assert find([codes[kernel] for kernel in kernels]) == find(kernels)


# --- real traces ---------------------------------------------------------------------------------------------------

WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}


def events_of(path: Path) -> list[dict[str, Any]]:
    """Complete events of a trace."""
    text = gzip.decompress(path.read_bytes())
    return [event for event in json.loads(text)["traceEvents"] if event.get("ph") == "X"]


def kernels_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Device work in the order of its start."""
    return sorted((event for event in events if event["cat"] in WORK), key=lambda event: event["ts"])


def coded(kernels: list[dict[str, Any]]) -> list[int]:
    """A number for each name."""
    code: dict[str, int] = {}
    return [code.setdefault(kernel["name"], len(code)) for kernel in kernels]


@pytest.mark.parametrize("path", sorted(OWN.glob("*.json.gz")), ids=lambda path: path.stem)
def test_our_own_steps_are_found(path: Path) -> None:
    """The annotated steps of few kernels are found, behind those that were launched before the profiler's window."""
    events = events_of(path)
    kernels = kernels_of(events)
    result = found(coded(kernels))
    marked = marked_steps(events, kernels)
    assert list(zip(*steps_of(result), strict=True))[-len(marked) :] == marked


needs_public = pytest.mark.skipif(PUBLIC is None, reason="CROSSOVER_TRACES names no folder of public traces")


@needs_public
@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("hta_df_index_resolver.json.gz", 0),
        ("kineto_2021-02_resnet50_w0.json.gz", 0),
        ("tl_mi300_resnet_actckpt.json.gz", 1),  # all kernels of one step launched before the window
    ],
)
def test_marked_steps_are_found_at_their_kernels(name: str, before: int) -> None:
    """Where one stream does the work, every marked step begins and ends at the kernels that it launched."""
    events = events_of(Path(str(PUBLIC)) / name)
    kernels = kernels_of(events)
    result = found(coded(kernels))
    assert list(zip(*steps_of(result), strict=True))[before:] == marked_steps(events, kernels)
    assert set(result.kinds) == {0}


def marked_steps(events: list[dict[str, Any]], kernels: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """First and one past the last kernel launched in each marked step."""
    launched = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event["cat"] in ("cuda_runtime", "cuda_driver", "Runtime") and "correlation" in event.get("args", {})
    }
    times = [launched.get(kernel["args"].get("correlation"), -1) for kernel in kernels]
    steps = sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if (event["name"].startswith("ProfilerStep") or event["name"] == "step")
        and event["cat"] != "gpu_user_annotation"
    )
    places = [[at for at, time in enumerate(times) if start <= time < end] for start, end in steps]
    return [(place[0], place[-1] + 1) for place in places]


@needs_public
def test_steps_that_overlap_on_six_streams_are_counted() -> None:
    """Five steps that prefetch into each other are found as five of the right length."""
    kernels = coded(kernels_of(events_of(Path(str(PUBLIC)) / "hta_negative_queue.json.gz")))
    result = found(kernels)
    assert len(result.starts) == 5
    assert {after - start for start, after in pairwise(result.starts[1:])} == {1375}  # as the steps' launches


@needs_public
def test_forty_unmarked_steps_are_found() -> None:
    """Forty optimizer steps, whose first sums no gradients yet, are forty steps of a loop with layers in it."""
    result = found(coded(kernels_of(events_of(Path(str(PUBLIC)) / "param_linear_kineto.json.gz"))))
    assert len(result.starts) == 40
    assert result.kinds == [0] + [1] * 39
    assert result.covered == 1


@needs_public
@pytest.mark.parametrize(
    "name",
    [
        "tl_b200_eager",
        "tl_vllm_piecewise_exec",
        "tl_norm_layer",
        "tl_mi210_gpu_only",
        "hta_alexnet_critpath",
        "tl_h100_bert_small",
    ],
)
def test_the_layers_of_one_pass_and_sweeps_are_not_taken_for_steps(name: str) -> None:
    """A single forward pass or a walk through modules repeats no step three times."""
    assert find(coded(kernels_of(events_of(Path(str(PUBLIC)) / f"{name}.json.gz")))) is None
