"""Facts that the package writes and the runtime reads. The runtime is copied away, so each side has its own copy."""

import pytest

from tritonforge.checkpoint import vocabulary
from tritonforge.repository import layout
from tritonforge.repository import serving as written
from tritonforge.runtime.gateway import serving as read
from tritonforge.runtime.gateway.tokenization import chatglm, glm4


def test_the_gateway_reads_the_file_that_is_rendered_for_it() -> None:
    assert layout.SERVING_NAME == read._FILE_NAME
    assert written.SCHEMA_VERSION == read._SCHEMA_VERSION


@pytest.mark.parametrize(
    ("kind", "numbered"),
    [
        ("chatglm2", chatglm._CHATGLM2_SPECIALS),
        ("chatglm3", chatglm._CHATGLM3_SPECIALS),
        ("glm4", glm4._SPECIALS),
    ],
)
def test_special_tokens_are_numbered_alike_at_conversion_and_at_run_time(kind: str, numbered: tuple[str, ...]) -> None:
    specials = vocabulary._SPECIALS[kind]
    assert specials == numbered[: len(specials)]
