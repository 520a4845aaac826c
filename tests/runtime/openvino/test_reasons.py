"""The library's exceptions in one line."""

import pytest

from tritonforge.runtime.openvino.reasons import reason_of

CHECK = "Check 'prompt_len > 0' failed at /builds/repos/openvino.genai/src/cpp/src/sequence_group.hpp:483:\nIt is 0\n"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError(CHECK), "It is 0"),
        (RuntimeError("Exception from /builds/src/core/a.cpp:5:\n" + CHECK), "It is 0"),
        (RuntimeError("Exception from /builds/src/core/a.cpp:5:"), "Exception from /builds/src/core/a.cpp:5:"),
        (ValueError("bad\nvalue"), "ValueError: bad value"),
        (KeyError("plugins"), "KeyError: 'plugins'"),
    ],
)
def test_a_reason_is_one_line_without_places(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
