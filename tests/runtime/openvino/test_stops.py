"""Where an answer ends by a stop sequence."""

import pytest

from tritonforge.runtime.openvino.protocol import Generation
from tritonforge.runtime.openvino.stops import end_of_stop


def generation(*sequences: list[int], min_new_tokens: int = 0) -> Generation:
    return Generation([1], 10, min_new_tokens=min_new_tokens, stop_sequences=sequences)


@pytest.mark.parametrize(
    ("answer", "new_tokens", "end"),
    [
        ([4, 7, 8], 1, 3),
        ([4, 7, 8, 9], 2, 3),  # completed by the first of two new tokens
        ([4, 7, 8, 9], 1, None),  # completed earlier, which was seen then
        ([8], 1, None),
        ([7, 7, 8], 1, 3),
        ([1, 2, 3], 3, 3),
        ([], 0, None),
    ],
)
def test_a_sequence_ends_the_answer_where_it_is_complete(answer: list[int], new_tokens: int, end: int | None) -> None:
    assert end_of_stop(answer, new_tokens, generation([7, 8], [1, 2, 3])) == end


def test_no_sequence_ends_the_answer_before_its_least_length() -> None:
    assert end_of_stop([7, 8], 1, generation([7, 8], min_new_tokens=3)) is None
    assert end_of_stop([7, 8, 7, 8], 1, generation([7, 8], min_new_tokens=3)) == 4
