"""Models that are rendered once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.specs import make_model, render_model


@pytest.fixture(scope="session")
def tiny_v1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model `tiny` with version 1."""
    folder = tmp_path_factory.mktemp("tiny_v1")
    render_model(make_model(), folder / "cache", folder / "out")
    return folder / "out"


@pytest.fixture(scope="session")
def tiny_v1_v2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model `tiny` with versions 1 and 2; version 1 has all the traffic."""
    folder = tmp_path_factory.mktemp("tiny_v1_v2")
    render_model(make_model(), folder / "cache", folder / "out", numbers=(1, 2))
    return folder / "out"
