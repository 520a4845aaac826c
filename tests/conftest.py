"""Fixtures that several packages of tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.smollm2 import fetch_gguf
from tests.support.checkpoints import write_llama
from tests.support.docker_engine import DockerEngine, usable_engine
from tritonforge.checkpoint.gguf import import_gguf

# Where the demo keeps it too: it is downloaded once.
DOWNLOADS = Path(__file__).parents[1] / ".demo" / "downloads"


def pytest_configure() -> None:
    """Take Ctrl-C again where a shell ran this in the background: it is ignored there, and would be in every child."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama checkpoint of two layers with random weights and a real tokenizer. Read only."""
    return write_llama(tmp_path_factory.mktemp("checkpoints") / "tiny-llama", max_position=4096)


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The published SmolLM2-135M-Instruct as a GGUF file. Only for slow tests: 93 MB are downloaded."""
    return fetch_gguf(DOWNLOADS)


@pytest.fixture(scope="session")
def smollm2(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a Hugging Face folder in float16. Read only."""
    return import_gguf(smollm2_gguf, tmp_path_factory.mktemp("smollm2") / "checkpoint")


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[DockerEngine]:
    """A real Docker Engine with stand-in images for trtllm-build; skips where there can be none."""
    with usable_engine() as engine:
        yield engine
