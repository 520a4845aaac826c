"""A running embedded server and a version for TensorRT-LLM: refused before any work, or published on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.builds import INT8, write_spec
from tests.support.standin_tool import install_standin
from tritonforge.cli.main import run
from tritonforge.client import Client
from tritonforge.pipeline.build import build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.repository.layout import find_version
from tritonforge.server.launcher import start_embedded
from tritonforge.server.options import ServerOptions
from tritonforge.spec.load import load_spec

LIMITS = "    limits: {max_batch_size: 4, max_seq_len: 128}\n"
TRTLLM = '{engine: {kind: tensorrt_llm, release: "0.14.0", executor: local}}'


@pytest.mark.triton
def test_it_is_refused_while_the_server_runs_unless_it_is_only_published(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its program says that it is of the release whose container carries the embedded server's version of Triton.
    monkeypatch.setenv("PATH", install_standin(tmp_path / "environment", "0.14.0"), prepend=":")
    build_spec(load_spec(write_spec(tmp_path, tiny_llama, more=LIMITS)), BuildOptions())
    spec = str(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {TRTLLM}", more=LIMITS))
    repository = tmp_path / "models"
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=5.0)
    with start_embedded(repository, options=options) as server, Client(server.grpc_url) as client:
        for more in ([], ["--dry-run"]):
            assert run(["build", "-f", spec, *more]) == 5
            said = capsys.readouterr().err
            assert "tiny_engine_v2 cannot be loaded: it needs Triton's backend 'tensorrtllm'" in said
            assert "converting" not in said

        assert run(["build", "-f", spec, "--no-load", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["server"] is None
        assert find_version(repository, "tiny", 2) is not None

        assert run(["load", "tiny_engine_v2", "--repository", str(repository)]) == 5
        said = capsys.readouterr().err
        assert "it needs Triton's backend 'tensorrtllm', and the embedded server has python only" in said
        assert "nvcr.io/nvidia/tritonserver:24.10-trtllm-python-py3" in said
        assert client.generate("tiny", "a", max_tokens=1).engine_version == 1
