"""Whatever a specification may say, its engine configs parse and pass the lint."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.repository.specs import make_model
from tests.repository.trees import build_tree
from tritonforge.repository.context import engine_context
from tritonforge.repository.lint import lint
from tritonforge.repository.pbtxt import parse_config
from tritonforge.repository.templates import TemplateTree

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", fullmatch=True)
GROUPS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["KIND_CPU", "KIND_GPU", "KIND_AUTO", "KIND_MODEL"]), "count": st.integers(1, 1024)},
    optional={"gpus": st.lists(st.integers(0, 1023), max_size=3, unique=True)},
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "timeout_action": st.sampled_from(["REJECT", "DELAY"]),
        "default_timeout_microseconds": st.integers(0, 2**53),
        "allow_timeout_override": st.booleans(),
        "max_queue_size": st.integers(0, 2**32 - 1),
    },
)
BATCHING = st.fixed_dictionaries(
    {},
    optional={
        "preferred_batch_size": st.lists(st.integers(1, 64), max_size=3),
        "max_queue_delay_microseconds": st.integers(0, 2**53),
        "preserve_ordering": st.booleans(),
        "default_queue_policy": POLICIES,
    },
)


@settings(deadline=None)
@given(
    name=NAMES,
    number=st.integers(1, 2**31 - 1),
    max_batch_size=st.integers(1, 65536),
    groups=st.lists(GROUPS, min_size=1, max_size=3),
    batching=st.none() | BATCHING,
    with_histograms=st.booleans(),
)
def test_any_valid_specification_renders_to_a_config_without_errors(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    number: int,
    max_batch_size: int,
    groups: list[dict[str, object]],
    batching: dict[str, object] | None,
    with_histograms: bool,
) -> None:
    try:
        model = make_model(
            name,
            versions={number: {"engine": {"kind": "openvino"}}},
            limits={"max_batch_size": max_batch_size},
            serving={"instance_group": groups, "dynamic_batching": batching},
        )
    except ValidationError:
        return  # not a valid specification
    context = engine_context(model.resolved(number), server_folder="/models", with_histograms=with_histograms)

    files = TREE.render("openvino", context, version=number)

    text = next(file.text for file in files if file.path == Path("config.pbtxt"))
    config = parse_config(text, file="config.pbtxt")
    assert (config.name, config.max_batch_size) == (f"{name}_engine_v{number}", max_batch_size)
    root = tmp_path_factory.mktemp("rendered")
    build_tree(root, {f"{config.name}/{file.path}": file.text for file in files})
    assert [finding for finding in lint(root) if finding.severity == "error"] == []


TREE = TemplateTree()
