"""What each rank holds of a tensor, in numbers."""

import pytest

from tritonforge.checkpoint.placement import layer_of, local_name, stage_layers
from tritonforge.checkpoint.split import Group, Piece, Split
from tritonforge.errors import UsageBug


def held(split: Split, shape: tuple[int, ...], tp: int) -> list[list[tuple[int, int]]]:
    return [[(p.start, p.stop) for p in split.pieces(shape, tp=tp, rank=rank)] for rank in range(tp)]


def test_what_is_not_split_is_whole_everywhere() -> None:
    assert held(Split(), (5, 3), 2) == [[(0, 5)], [(0, 5)]]
    assert Split().rank_shape((5, 3), tp=2) == (5, 3)


def test_rows_and_columns_are_shared_evenly() -> None:
    assert held(Split(axis=0), (6,), 3) == [[(0, 2)], [(2, 4)], [(4, 6)]]
    assert held(Split(axis=1), (5, 4), 2) == [[(0, 2)], [(2, 4)]]
    assert Split(axis=1).rank_shape((5, 4), tp=2) == (5, 2)


def test_groups_are_shared_one_by_one() -> None:
    split = Split(axis=0, groups=(Group(8), Group(4), Group(4)))
    assert held(split, (16, 3), 2) == [[(0, 4), (8, 10), (12, 14)], [(4, 8), (10, 12), (14, 16)]]
    assert split.rank_shape((16, 3), tp=2) == (8, 3)


def test_repeated_blocks_go_to_neighbours() -> None:
    split = Split(axis=0, groups=(Group(8), Group(4, repeats=2, block=2)))  # two heads of two rows, each for two ranks
    assert [pieces[1] for pieces in held(split, (12,), 4)] == [(8, 10), (8, 10), (10, 12), (10, 12)]
    assert split.rank_shape((12,), tp=4) == (4,)


def test_padding_fills_the_last_ranks_with_nothing() -> None:
    split = Split(axis=0, padded=True)
    assert held(split, (131, 2), 2) == [[(0, 66)], [(66, 131)]]
    assert split.rank_shape((131, 2), tp=2) == (66, 2)
    assert held(split, (2, 2), 4) == [[(0, 1)], [(1, 2)], [], []]


@pytest.mark.parametrize(
    ("split", "shape"),
    [
        (Split(axis=0), (5,)),
        (Split(axis=0, groups=(Group(2), Group(2))), (5,)),
        (Split(axis=0, groups=(Group(2), Group(2)), padded=True), (4,)),
        (Split(axis=0, groups=(Group(8, repeats=2, block=2),)), (8,)),
    ],
)
def test_a_split_that_cannot_be_is_a_bug(split: Split, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageBug):
        split.pieces(shape, tp=2, rank=0)


def test_a_piece_has_a_size() -> None:
    assert Piece(3, 7).size == 4


def test_the_first_stages_take_what_is_left_over() -> None:
    assert [list(stage) for stage in stage_layers(5, 3)] == [[0, 1], [2, 3], [4]]
    assert [len(stage) for stage in stage_layers(32, 4)] == [8, 8, 8, 8]


def test_names_count_layers_from_that_of_the_rank() -> None:
    name = "transformer.layers.12.mlp.fc.weight"
    assert layer_of(name) == 12
    assert local_name(name, 8) == "transformer.layers.4.mlp.fc.weight"
    assert layer_of("lm_head.weight") is None
    assert local_name("lm_head.weight", 8) == "lm_head.weight"
