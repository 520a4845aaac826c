"""Fixtures that several packages of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama checkpoint of two layers with random weights and a real tokenizer. Read only."""
    return write_llama(tmp_path_factory.mktemp("checkpoints") / "tiny-llama", max_position=4096)
