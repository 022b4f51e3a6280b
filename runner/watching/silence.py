"""Why a watch has written nothing, in one sentence for whoever runs the program. No clock, no store, no output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from runner.watching.meter import MOST_KINDS, OTHER
from runner.watching.rows import LEAST_TIMED
from runner.watching.stamps import Timed
from runner.words import counted


def why_nothing(name: str, is_module: bool, skip: int, calls: int, timed: Sequence[Timed]) -> str:
    """The sentence.

    name: of the workload; is_module: whether calls of a module are the steps; skip: steps that are left out first;
    calls: steps that the program has come to, those included; timed: steps that were timed, in the only or the last
    measurement.
    """
    return f"crossover: watching {name} has written nothing: {_why(is_module, skip, calls, timed)}."


def _why(is_module: bool, skip: int, calls: int, timed: Sequence[Timed]) -> str:
    if not timed:
        return _why_none_timed(is_module, skip, calls)
    kinds = Counter(each.kind for each in timed if not each.broken)
    if not kinds:
        return f"an exception has ended every one of the {counted(len(timed), 'step')} that it has timed"
    often = f"seen at least {LEAST_TIMED} times with another step behind it"
    steps = counted(kinds.total(), "step")
    if len(kinds) == 1:
        return f"it has timed {steps} of one kind, which was not {often}; {_longer(skip)}"
    return f"it has timed {steps} of {_kinds(kinds)}, none of which was {often}; {_fewer(is_module)}"


def _why_none_timed(is_module: bool, skip: int, calls: int) -> str:
    if calls <= 0:
        return _never_called(is_module)
    if calls <= skip:
        return f"it has seen {counted(calls, 'step')}, and the first {skip} are left out; {_longer(skip)}"
    return (
        f"none of its {counted(calls, 'step')} could be timed: steps inside a step of another watch, on another thread "
        "than the first, or in a CUDA graph that is being captured are not; watch the outermost module, on the thread "
        "that calls it"
    )


def _kinds(kinds: Counter[str]) -> str:
    if kinds[OTHER]:
        return f"more than {MOST_KINDS} kinds (the first {MOST_KINDS} are told apart)"
    return f"{len(kinds)} kinds"


def _never_called(is_module: bool) -> str:
    if is_module:
        return (
            "no call of the module was seen; call the module itself, not its forward(), and where it is compiled watch "
            "what torch.compile has returned"
        )
    return "no step was marked; put each one in `with w.step():`, or loop over `w.steps(loader)`"


def _longer(skip: int) -> str:
    return "run more steps" + (", or leave out fewer: watch(..., skip=0)" if skip else "")


def _fewer(is_module: bool) -> str:
    if is_module:
        return (
            "let shapes repeat (pad the inputs, or sort them into a few lengths), or mark the steps by hand, which "
            "makes them one kind: `w = watch()` and `with w.step():`"
        )
    return "tell fewer kinds apart in w.step(kind)"
