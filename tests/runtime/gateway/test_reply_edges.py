"""White space at the edges of a reply, and the placeholder in it: any chunks give the same text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.edge_space import EdgeSpace
from tritonforge.runtime.gateway.placeholder import Placeholder


@SAME_EXAMPLES
@given(st.lists(st.text(" \na", max_size=4)))
def test_chunks_give_the_stripped_text(chunks: list[str]) -> None:
    edge = EdgeSpace()
    assert "".join(edge.push(chunk) for chunk in chunks) == "".join(chunks).strip()


@SAME_EXAMPLES
@given(st.lists(st.sampled_from(["[", "[[", "x", "]]", "]", "[[x]]", "y"])))
def test_chunks_give_the_text_with_the_placeholder_replaced(chunks: list[str]) -> None:
    placeholder = Placeholder("[[x]]", "2023")
    shown = "".join(placeholder.push(chunk) for chunk in chunks) + placeholder.finish()
    assert shown == "".join(chunks).replace("[[x]]", "2023")
