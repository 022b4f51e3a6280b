"""The memory of a watched step by phase and holder: two more steps, in a profiler session of their own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

import torch

from runner.holders import STEP, PhaseMemory
from runner.phases import heard
from runner.watching.stamps import Stamps
from runner.watching.window import program_has_profiler, program_profiles

STEPS = 2
"""Of these the last is told, see runner/holders.py."""


class HeldSteps:
    """Watches STEPS steps, if there is anything to watch. What goes wrong is the reason in the facts."""

    def __init__(self, roots: Sequence[Any], stamps: Stamps) -> None:
        self.done = not roots
        self.kind: str | None = None
        """Kind of the step that is told."""
        self.facts: dict[str, Any] = {}
        self._roots, self._device = tuple(roots), torch.device(stamps.kind, stamps.index)
        self._memory: PhaseMemory | None = None
        self._session, self._step, self._seen = ExitStack(), ExitStack(), 0

    def begin(self, kind: str) -> None:
        """The program comes to a step."""
        try:
            if self._memory is None:
                if program_profiles() or program_has_profiler():
                    raise RuntimeError("the program has a profiler of its own")
                self._memory = PhaseMemory(self._roots, self._device)
                self._session.enter_context(self._memory)
                self._session.enter_context(heard(self._memory.listener))
            self._step.enter_context(self._memory.listener(STEP))
            self.kind = kind
        except Exception as error:
            self.abandon(error)

    def end(self) -> None:
        """The program goes on behind a step."""
        try:
            self._step.close()
            self._seen += 1
            if self._seen == STEPS and self._memory is not None:
                self._session.close()
                self.facts, self.done = self._memory.facts(), True
        except Exception as error:
            self.abandon(error)

    @property
    def is_open(self) -> bool:
        """Whether a profiler runs."""
        return self._memory is not None and not self.done

    def abandon(self, error: Exception | None = None) -> None:
        """Leave every range; the steps are not told."""
        for stack in (self._step, self._session):
            with suppress(Exception):
                stack.close()
        why = "the program ended before" if error is None else " ".join(f"{type(error).__name__}: {error}".split())
        self.give_up(why)

    def give_up(self, why: str) -> None:
        """The steps are not told; what is open stays so."""
        if not self.done and self._roots:
            self.facts = {"memory_sums": {"reason": f"memory could not be watched: {why[:300]}"}}
        self.done = True
