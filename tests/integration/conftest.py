"""One real server for all integration tests: two small models, one of them in three versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.checkpoints import write_chatglm
from tritonforge.client import Client
from tritonforge.pipeline.build import BuildResult, build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions
from tritonforge.spec.load import load_spec

ENGINE = "{{engine: {{kind: openvino, precision: {precision}, runtime: {{num_threads: 1, kv_cache_gib: 0.25}}}}}}"
UNFUSED = (
    "{engine: {kind: openvino, precision: float32, plugins: {context_fmha: false, rotary_embedding: false}, "
    "runtime: {num_threads: 1}}}"
)
EXACT, ROUNDED = ENGINE.format(precision="float32"), ENGINE.format(precision="int8")


@dataclass(frozen=True, slots=True)
class Served:
    """A repository, its specification, and the server that serves it."""

    spec: Path
    repository: Path
    server: RunningServer

    def rewrite(self, text: str) -> None:
        """Give the specification another text."""
        self.spec.write_text(text)

    def build(self, *, traffic: bool = False) -> BuildResult:
        """Build what the specification asks for now, and have the server take it."""
        return build_spec(load_spec(self.spec), BuildOptions(traffic=traffic, server=self.server.grpc_url))


def spec_text(llama: Path, glm: Path, *, glm_versions: str = f"1: {EXACT}") -> str:
    """forge.yaml with the Llama model `tale` in three versions and the ChatGLM model `glm`."""
    return f"""
schema: 1
repository: ./models
models:
  - name: tale
    checkpoint: {llama}
    versions:
      1: {EXACT}
      2: {ROUNDED}
      3: {UNFUSED}
    traffic: {{1: 100, 2: 0, 3: 0}}
    limits: {{max_batch_size: 32, max_input_len: 256, max_seq_len: 2048}}
  - name: glm
    checkpoint: {glm}
    versions:
      {glm_versions}
"""


@pytest.fixture(scope="session")
def tiny_chatglm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ChatGLM3 checkpoint of two layers with random weights and a real tokenizer. Read only."""
    return write_chatglm(tmp_path_factory.mktemp("checkpoints") / "tiny-chatglm")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, tiny_chatglm: Path) -> Iterator[Served]:
    """The server. Tests leave versions, traffic and loaded models as they found them."""
    folder = tmp_path_factory.mktemp("served")
    spec = folder / "forge.yaml"
    spec.write_text(spec_text(tiny_llama, tiny_chatglm))
    build_spec(load_spec(spec), BuildOptions())
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10.0)
    with start_embedded(folder / "models", options=options) as server:
        yield Served(spec, folder / "models", server)


@pytest.fixture(params=["grpc", "http"])
def client(request: pytest.FixtureRequest, served: Served) -> Iterator[Client]:
    """A client of the server, once over each protocol."""
    url = served.server.grpc_url if request.param == "grpc" else served.server.http_url
    with Client(url, timeout_s=60.0) as client:
        yield client


@pytest.fixture
def grpc_client(served: Served) -> Iterator[Client]:
    """A client of the server over gRPC."""
    with Client(served.server.grpc_url, timeout_s=60.0) as client:
        yield client
