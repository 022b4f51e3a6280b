"""How likely a change is chance, and what is left of that when many changes are judged at once."""

import math
from collections.abc import Sequence

MOST_DOF = 200
"""Degrees of freedom are counted up to here: beyond it Student's t hardly changes, and the series below gets long."""


def tail(t: float, dof: int) -> float:
    """Probability that Student's t with `dof` degrees of freedom (1 or more) lies farther from 0 than `t`, on either
    side.

    The finite series of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4. More than
    MOST_DOF degrees count as that many, which makes the probability greater, never smaller.
    """
    if math.isnan(t):
        raise ValueError("t is not a number")
    dof = min(max(1, dof), MOST_DOF)
    angle = math.atan(abs(t) / math.sqrt(dof))
    if dof % 2:
        inside = 2 / math.pi * (angle + (math.sin(angle) * _series(math.cos(angle), dof) if dof > 1 else 0.0))
    else:
        inside = math.sin(angle) * _series(math.cos(angle), dof)
    return min(1.0, max(0.0, 1.0 - inside))


def _series(cosine: float, dof: int) -> float:
    """cos + 2/3 cos^3 + ... + cos^(dof - 2) for odd degrees, 1 + 1/2 cos^2 + ... + cos^(dof - 2) for even ones."""
    power = dof % 2
    term = cosine**power
    total = term
    while power < dof - 2:
        term *= (power + 1) / (power + 2) * cosine * cosine
        power += 2
        total += term
    return total


def holm(chances: Sequence[float]) -> list[float]:
    """Probabilities of chance, corrected for how many there are; in their order.

    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979): where
    nothing has changed, at most 5 in 100 comparisons have any corrected value below 0.05, however many points they hold
    and however their errors hang together (all points of one sweep share its host).
    """
    order = sorted(range(len(chances)), key=chances.__getitem__)
    corrected = [1.0] * len(chances)
    least = 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = least
    return corrected
