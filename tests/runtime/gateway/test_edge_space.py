"""White space at the edges of a reply."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.edge_space import EdgeSpace


@SAME_EXAMPLES
@given(st.lists(st.text(" \na", max_size=4)))
def test_chunks_give_the_stripped_text(chunks: list[str]) -> None:
    edge = EdgeSpace()
    assert "".join(edge.push(chunk) for chunk in chunks) == "".join(chunks).strip()
