"""Which prompts would be served from a block that another request still fills."""

import pytest

from tritonforge.runtime.openvino.prefix_guard import shares_open_block

TEXT = list(range(200))


@pytest.mark.parametrize(
    ("running", "new", "shares"),
    [
        (9, 10, True),
        (60, 62, True),
        (60, 63, True),
        (60, 64, False),  # the new prompt fills its block
        (60, 90, False),  # it ends in another block
        (32, 32, False),  # equal prompts
        (62, 60, False),  # the shorter one comes later
    ],
)
def test_prompts_that_end_in_the_same_block_share_it(running: int, new: int, shares: bool) -> None:
    assert shares_open_block(TEXT[:running], [], TEXT[:new], block_tokens=32) is shares


def test_prompts_that_part_earlier_do_not() -> None:
    assert not shares_open_block([*TEXT[:8], 999], [], TEXT[:12], block_tokens=32)


def test_prompt_that_goes_on_with_the_answer_shares_the_block_of_the_answer() -> None:
    answer = TEXT[60:70]
    assert shares_open_block(TEXT[:60], answer, [*TEXT[:68], 999], block_tokens=32)
    assert not shares_open_block(TEXT[:60], [999], [*TEXT[:68], 999], block_tokens=32)
