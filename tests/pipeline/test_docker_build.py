"""`tritonforge build` by a container of a real Docker Engine and the cache. Its trtllm-build is a stand-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.tensorrt_llm_builds import engine, spec_of
from tests.support.docker_engine import DockerEngine
from tritonforge.cli.main import run


@pytest.fixture
def image(docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in image of release 0.16.0 on the engine that commands find."""
    if not docker_engine.gives_gpus:
        pytest.skip("this Docker Engine takes no requests for GPUs")
    monkeypatch.setenv("DOCKER_HOST", docker_engine.address)
    return docker_engine.standin("0.16.0")


def test_the_whole_way_through_a_container_and_then_out_of_the_cache(
    docker_engine: DockerEngine, image: str, tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = engine(executor="docker", image=image, tensor_parallel=2)
    spec = str(spec_of(tmp_path, tiny_llama, f"{version}\n      2: {version}"))

    assert run(["build", "-f", spec, "--json"]) == 0

    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert [(one["version"], one["state"], one["cache"]) for one in result["versions"]] == [
        (1, "new", "miss"),
        (2, "new", "hit"),
    ]
    assert printed.err.count(f"running trtllm-build in {image}") == 1
    folder = tmp_path / "models" / "tiny_engine_v1" / "1"
    assert all("stand-in" in (folder / f"rank{rank}.engine").read_text() for rank in range(2))
    assert json.loads((folder / "config.json").read_text())["version"] == "0.16.0"
    assert json.loads((folder / "forge-manifest.json").read_text())["release"] == "0.16.0"
    assert docker_engine.containers() == []
