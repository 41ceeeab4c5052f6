"""A tree of sequences that begin alike, in which a shared prefix is stored once.

If a token attends only to its ancestors and has its depth as position, a causal model computes the
same for it as in the sequence alone. Of 40,000 tokens of a step of the SQL agent 4,600 differ.
"""

from typing import Any, NamedTuple

import torch
from rapidfuzz.distance import Prefix

Sequences = list[list[int]]
# Models with torch's attention over all earlier tokens: they need only a tree's mask and positions.
MODELS = {"llama", "qwen2", "qwen3"}
HEAD_ROWS = 256  # positions whose logits are in memory at once: 156 MB with 152,000 tokens


class PrefixTree(NamedTuple):
    """A prefix tree. Its nodes are numbered as they were added, parents before children.

    tokens, positions: of each node. branches: runs of nodes, each the child of the one before, with
    the parent of the first (None at the root). nodes: the nodes of each sequence's tokens.
    """

    tokens: list[int]
    positions: list[int]
    branches: list[tuple[int | None, range]]
    nodes: list[list[int]]


def grow(sequences: Sequences) -> PrefixTree:
    """Return the tree of sequences. Neighbours of a sorted list share the most."""
    tree = PrefixTree([], [], [], [[] for _ in sequences])
    row: list[int] = []
    way: list[int] = []
    for index in _sorted(sequences):
        depth = Prefix.similarity(row, sequences[index])
        row = sequences[index]
        branch = range(len(tree.tokens), len(tree.tokens) + len(row) - depth)
        tree.branches.append((way[depth - 1] if depth else None, branch))
        tree.tokens.extend(row[depth:])
        tree.positions.extend(range(depth, len(row)))
        tree.nodes[index] = way = [*way[:depth], *branch]
    return tree


def deal(sequences: Sequences, most: int) -> list[list[int]]:
    """Return indices in groups whose trees have at most `most` nodes. A longer sequence is alone."""
    groups: list[list[int]] = []
    room = 0
    last: list[int] = []
    for index in _sorted(sequences):
        row = sequences[index]
        new = len(row) - Prefix.similarity(last, row)
        last = row
        if not groups or new > room:
            groups.append([])
            new = len(row)
            room = most
        groups[-1].append(index)
        room -= new
    return groups


def reads_trees(config: Any) -> bool:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return config.model_type in MODELS and kinds == {"full_attention"}


def ancestors(tree: PrefixTree) -> torch.Tensor:
    """Return the mask (N, N) that is added to attention: 0 where a node sees another, else -inf."""
    sees = torch.full((len(tree.tokens), len(tree.tokens)), -torch.inf)
    for parent, branch in tree.branches:
        rows = slice(branch.start, branch.stop)
        if parent is not None:
            sees[rows] = sees[parent]
        sees[rows, rows] = torch.full((len(branch), len(branch)), -torch.inf).triu(1)
    return sees


def _sorted(sequences: Sequences) -> list[int]:
    return sorted(range(len(sequences)), key=sequences.__getitem__)
