"""From forge.yaml to a published version in a container of a real Docker Engine. Its trtllm-build is a stand-in."""

import json
from pathlib import Path

import pytest

from tests.pipeline.builds import build, write_spec
from tests.support.docker_engine import DockerEngine
from tests.support.registry import registry
from tests.support.standin_image import FOLDER, image_tar
from tritonforge.errors import BuildError, ContainerError

LIMITS = "    limits: {max_batch_size: 4, max_input_len: 64, max_seq_len: 128}\n"


@pytest.fixture
def engine(docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    if not docker_engine.gives_gpus:
        pytest.skip("this engine gives no GPUs, which every build asks for")
    monkeypatch.setenv("DOCKER_HOST", docker_engine.address)
    return docker_engine


def spec_of(folder: Path, checkpoint: Path, image: str, release: str = "0.16.0") -> Path:
    block = {"kind": "tensorrt_llm", "release": release, "image": image, "gpu_architecture": "sm_90"}
    return write_spec(folder, checkpoint, versions=f"1: {{engine: {json.dumps(block)}}}", more=LIMITS)


def test_the_whole_way(tiny_llama: Path, tmp_path: Path, engine: DockerEngine) -> None:
    build(spec_of(tmp_path, tiny_llama, engine.standin("0.16.0")))

    folder = tmp_path / "models" / "tiny_engine_v1"
    assert "stand-in" in json.loads((folder / "1" / "config.json").read_text())["stand_in"]
    assert "stand-in" in (folder / "1" / "rank0.engine").read_text()
    assert "max_batch_size: 4" in (folder / "config.pbtxt").read_text()
    assert "TensorRT-LLM version: 0.16.0" in (tmp_path / "models.forge" / "logs" / "tiny-v1-engine.log").read_text()
    assert engine.containers() == []


def test_a_missing_image_is_known_before_the_conversion(tiny_llama: Path, tmp_path: Path, engine: DockerEngine) -> None:
    with pytest.raises(ContainerError, match="the image registry.invalid/trtllm:1 is not on the Docker Engine"):
        build(spec_of(tmp_path, tiny_llama, "registry.invalid/trtllm:1"))

    assert not list(tmp_path.rglob("rank0.safetensors")), "nothing was converted for it"


def test_a_missing_image_is_pulled_when_that_is_asked_for(
    tiny_llama: Path, tmp_path: Path, engine: DockerEngine
) -> None:
    with registry("trtllm", image_tar("0.16.0"), path=FOLDER) as image:
        build(spec_of(tmp_path, tiny_llama, image), pull=True)

    assert (tmp_path / "models" / "tiny_engine_v1" / "1" / "rank0.engine").is_file()


def test_a_build_that_fails_in_its_container_publishes_nothing(
    tiny_llama: Path, tmp_path: Path, engine: DockerEngine
) -> None:
    with pytest.raises(BuildError, match=r"trtllm-build is of TensorRT-LLM 0\.16\.0; expected 0\.9\.0"):
        build(spec_of(tmp_path, tiny_llama, engine.standin("0.16.0"), release="0.9.0"))

    assert not list((tmp_path / "models").glob("*"))
    assert engine.containers() == []
