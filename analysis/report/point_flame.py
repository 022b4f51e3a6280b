"""Call paths -> the nodes of a flame graph and the rows of an operator table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_NODES = 500
"""Nodes of a flame graph; more than a screen has pixels for."""


@dataclass
class Node:
    """A call path: its last name, its own host and device time (microseconds) and those of all that lies in it."""

    name: str
    category: str
    calls: int
    host_us: float
    device_us: float
    is_device: bool
    event_id: int | None = None
    children: list[Node] = field(default_factory=list)
    host_total_us: float = 0.0
    device_total_us: float = 0.0
    folded: int = 0


def tree(paths: Iterable[Mapping[str, Any]]) -> list[Node]:
    """The roots of the tree of rows of point_paths, with totals; children with the largest totals first."""
    rows = list(paths)
    nodes = {row["path"]: _node(row) for row in rows}
    roots: list[Node] = []
    for row in rows:
        above = nodes.get(row["above"])
        (roots if above is None else above.children).append(nodes[row["path"]])
    for root in roots:
        _add_up(root)
    return _ordered(roots)


def _node(row: Mapping[str, Any]) -> Node:
    return Node(
        row["name"],
        row["category"],
        row["calls"],
        float(row["host_us"]),
        float(row["device_us"]),
        row["is_device"],
        row["first_id"],
    )


def _add_up(root: Node) -> None:
    """Set the totals of a node and of all below it; without recursion, since stacks of Python are deep."""
    for node in reversed(list(walk([root]))):
        node.children = _ordered(node.children)
        node.host_total_us = node.host_us + sum(child.host_total_us for child in node.children)
        node.device_total_us = node.device_us + sum(child.device_total_us for child in node.children)


def _ordered(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: (node.is_device, -node.host_total_us - node.device_total_us, node.name))


def walk(roots: Sequence[Node]) -> Iterator[Node]:
    """All nodes, each before those below it."""
    waiting = list(reversed(roots))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def folded(roots: Sequence[Node], most: int = MOST_NODES) -> list[Node]:
    """The same tree with at most about `most` nodes: the smallest paths are put into one node beside their sisters.

    What is small is decided by a node's share of the host's or the device's time, the larger. Times stay as they are.
    """
    nodes = list(walk(roots))
    if len(nodes) <= most:
        return list(roots)
    host = sum(root.host_total_us for root in roots) or 1.0
    device = sum(root.device_total_us for root in roots) or 1.0
    shares = {id(node): max(node.host_total_us / host, node.device_total_us / device) for node in nodes}
    limit = sorted(shares.values(), reverse=True)[most - 1]
    return _without_small(roots, shares, limit)


def _without_small(siblings: Sequence[Node], shares: Mapping[int, float], limit: float) -> list[Node]:
    kept = [node for node in siblings if shares[id(node)] >= limit]
    small = [node for node in siblings if shares[id(node)] < limit]
    for node in kept:
        node.children = _without_small(node.children, shares, limit)
    return kept + ([_together(small)] if small else [])


def _together(nodes: Sequence[Node]) -> Node:
    inside = list(walk(nodes))
    if len(inside) == 1:
        return nodes[0]
    host, device = (sum(getattr(node, name) for node in inside) for name in ("host_us", "device_us"))
    only_device = all(node.is_device for node in nodes)
    return Node(
        f"{len(inside):,} smaller paths",
        "folded",
        sum(node.calls for node in inside),
        host,
        device,
        only_device,
        None,
        [],
        host,
        device,
        len(inside),
    )


def operators(roots: Sequence[Node]) -> list[dict[str, Any]]:
    """One row a name and kind of host event: calls, self and total times of host and device (microseconds).

    Totals count what lies in an event of its own name once. Work of the device is that of the innermost operator or
    annotation around its launch, of the call itself where there is none. The largest self time comes first.
    """
    rows: dict[Key, dict[str, Any]] = {}
    waiting: list[tuple[Node, frozenset[Key], Key | None]] = [(root, frozenset(), None) for root in roots]
    while waiting:
        node, above, owner = waiting.pop()
        if node.is_device:
            if owner is not None:
                rows[owner]["self_device_us"] += node.device_us
            continue
        key = (node.name, node.category)
        row = rows.setdefault(key, {"name": node.name, "category": node.category, **dict.fromkeys(_SUMS, 0.0)})
        row["calls"] += node.calls
        row["self_host_us"] += node.host_us
        if key not in above:
            row["host_us"] += node.host_total_us
            row["device_us"] += node.device_total_us
        owns = key if owner is None or node.category in OWNERS else owner
        waiting.extend((child, above | {key}, owns) for child in node.children)
    return sorted(rows.values(), key=lambda row: (-row["self_host_us"], row["name"]))


Key = tuple[str, str]
OWNERS = ("cpu_op", "user_annotation")
"""Kinds of host events that device work is counted for."""
_SUMS = ("calls", "self_host_us", "host_us", "self_device_us", "device_us")
