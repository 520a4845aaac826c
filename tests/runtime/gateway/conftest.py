"""One real server for all tests of the gateway that need Triton, and one tokenizer of every kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.runtime.gateway import text_repository, tokenizer_folders
from tests.runtime.gateway.repository import write_repository
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.server import RunningServer, ServerOptions, start_embedded


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tokenizer]:
    """A small real tokenizer of every kind."""
    root = tmp_path_factory.mktemp("tokenizers")
    return {kind: tokenizer_folders.load(kind, root / kind) for kind in tokenizer_folders.KINDS}


@pytest.fixture(scope="session")
def gateway_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A Triton with the model `talker` and its stand-in engines."""
    folder = tmp_path_factory.mktemp("gateway")
    repository = write_repository(folder / "model_repository", folder / "checkpoint")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10)
    with start_embedded(repository, options=options) as server:
        yield server


@pytest.fixture(scope="session")
def text_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A Triton with models whose versions are of different kinds, behind one gateway each."""
    folder = tmp_path_factory.mktemp("text")
    repository = text_repository.write_repository(folder)
    text_repository.install_backend(folder / "cache")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10, cache=folder / "cache")
    with start_embedded(repository, options=options) as server:
        yield server
