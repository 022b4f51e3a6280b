"""What a watch costs a program while it measures nothing: nanoseconds a step, and the ratio to a step without it.

A call of a module that does nothing; the same with an empty hook, since torch itself calls a module with hooks in a
slower way; with an idle watch; behind a watch that has ended; a step marked by hand; and a small linear layer.
Each figure is the least of several rounds that alternate: other work on the machine only ever adds. `make bench-watch`.
"""

from __future__ import annotations

import sys
import tempfile
import timeit
from collections.abc import Callable

import torch

from runner import watch

CALLS, ROUNDS = 20_000, 9
FAR = 1 << 40
LIMIT = 4.0
"""An idle watch that costs more than so many calls of a module that does nothing is a fault."""


class Nothing(torch.nn.Module):
    """The cheapest module."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x."""
        return x


def least_ns(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Nanoseconds a call of each step."""
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            best[name] = min(best[name], timeit.timeit(step, number=CALLS) / CALLS * 1e9)
    return best


def main() -> int:
    """Print the table; 2 where an idle watch costs beyond the limit."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    x, layer = torch.ones(8, 64), torch.nn.Linear(64, 64)
    plain, hooked, idle, ended = Nothing(), Nothing(), Nothing(), Nothing()
    hooked.register_forward_pre_hook(lambda *_: None)
    with tempfile.TemporaryDirectory() as store:
        watch(ended, store=store).close()
        watched, by_hand = watch(idle, store=store, skip=FAR), watch(store=store, skip=FAR)

        def marked() -> None:
            with by_hand.step():
                pass

        steps = {
            "module": lambda: plain(x), "module, empty hook": lambda: hooked(x),
            "module, watch idle": lambda: idle(x), "module, watch ended": lambda: ended(x),
            "marked by hand, watch idle": marked, "linear layer of 64": lambda: layer(x),
        }  # fmt: skip
        found = least_ns(steps)
        watched.close()
        by_hand.close()
    base, linear = found["module"], found["linear layer of 64"]
    costs = {
        "module, empty hook of torch": found["module, empty hook"] - base,
        "module, watch idle": found["module, watch idle"] - base,
        "module, watch ended": found["module, watch ended"] - base,
        "marked by hand, watch idle": found["marked by hand, watch idle"],
    }
    print(f"a call of a module that does nothing {base:.0f} ns, of a linear layer of 64 {linear:.0f} ns")
    for name, cost in costs.items():
        print(f"{name}: {cost:+.0f} ns a step, {(linear + cost) / linear:.2f} times the layer's call")
    return 2 if max(costs.values()) > LIMIT * base else 0


if __name__ == "__main__":
    sys.exit(main())
