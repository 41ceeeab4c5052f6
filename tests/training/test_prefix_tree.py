"""The tree of sequences that begin alike: each distinct prefix once, and every sequence a way from
the root.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from training.cpu.prefix_tree import PrefixTree, deal, grow

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=12)


def parents(tree: PrefixTree) -> dict[int, int | None]:
    """The node before each, as the branches say."""
    return {
        node: place - 1 + branch.start if place else parent
        for parent, branch in tree.branches
        for place, node in enumerate(branch)
    }


def prefixes(sequences: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(row[: end + 1]) for row in sequences for end in range(len(row))}


@given(SEQUENCES)
def test_every_sequence_is_a_way_from_the_root_and_every_prefix_stands_once(
    sequences: list[list[int]],
) -> None:
    tree = grow(sequences)
    before = parents(tree)
    assert len(tree.tokens) == len(tree.positions) == len(before) == len(prefixes(sequences))
    for row, nodes in zip(sequences, tree.nodes, strict=True):
        assert [tree.tokens[node] for node in nodes] == row
        assert [tree.positions[node] for node in nodes] == list(range(len(row)))
        assert [before[node] for node in nodes] == [None, *nodes[:-1]]
    assert all(parent is None or parent < node for node, parent in before.items())


@given(SEQUENCES, st.integers(1, 40))
def test_sequences_are_dealt_to_trees_that_have_room(sequences: list[list[int]], most: int) -> None:
    groups = deal(sequences, most)
    assert sorted(index for group in groups for index in group) == list(range(len(sequences)))
    for group in groups:
        assert len(prefixes([sequences[index] for index in group])) <= most or len(group) == 1
