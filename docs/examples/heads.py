"""A step of one's own for a sweep: attention of one sequence, written out or by torch in one call."""

import math

import torch


def build(point, heads=8, impl="sdpa", width=512):
    """Called once a point. point.size is the length of the sequence here; heads, impl and width are axes as well."""
    shape = (point.batch or 1, heads, point.size, width // heads)
    query, key, value = (torch.randn(shape, dtype=point.dtype, device=point.device) for _ in range(3))

    def naive(query, key, value):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        return torch.softmax(scores, dim=-1) @ value

    steps = {"naive": naive, "sdpa": torch.nn.functional.scaled_dot_product_attention}
    if impl not in steps:
        raise ValueError(f"impl={impl}: allowed is {', '.join(steps)}")
    return steps[impl], (query, key, value)
