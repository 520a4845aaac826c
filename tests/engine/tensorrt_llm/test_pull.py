from pathlib import Path

import pytest

from tests.support.docker_engine import DockerEngine
from tests.support.registry import registry
from tests.support.standin_image import FOLDER, image_tar
from tests.support.trtllm_builds import LIMITS, Adapted, empty_checkpoint, tensorrt_llm_spec
from tritonforge.engine.tensorrt_llm.build import build_engine
from tritonforge.engine.tensorrt_llm.docker import DockerExecutor
from tritonforge.engine.tensorrt_llm.pull import GIB_BYTES, PullProgress
from tritonforge.errors import ContainerError


def build(engine: DockerEngine, folder: Path, image: str, lines: list[str]) -> tuple[str, ...]:
    executor = Adapted(DockerExecutor(address=engine.address, pull=True), changes={"gpus": None})
    made = build_engine(
        tensorrt_llm_spec(image=image),
        empty_checkpoint(folder / "checkpoint"),
        folder / "engine",
        limits=LIMITS,
        log=folder / "log",
        on_event=lines.append,
        executor=executor,
    )
    return made.files


def test_an_image_is_pulled_when_that_is_asked_for(docker_engine: DockerEngine, tmp_path: Path):
    lines: list[str] = []
    with registry("standin", image_tar("0.16.0"), path=FOLDER) as image:
        assert build(docker_engine, tmp_path, image, lines) == ("config.json", "rank0.engine")
    docker_engine.images[image] = image  # removed with the others if the engine is not our own
    assert lines[0] == f"pulling {image}"


def test_a_download_that_breaks_off_says_why(docker_engine: DockerEngine, tmp_path: Path):
    """The engine has answered by then, so it can only tell at the end of its answer."""
    with (
        registry("broken", image_tar("0.12.0"), path=FOLDER, truncated=True) as image,
        pytest.raises(ContainerError, match=f"could not pull the image {image}: .+") as caught,
    ):
        build(docker_engine, tmp_path, image, [])
    assert (caught.value.hint or "").startswith(f"see what this says: docker pull {image}; ")


def test_a_registry_that_is_not_there_is_named(docker_engine: DockerEngine, tmp_path: Path):
    with pytest.raises(
        ContainerError, match=r"could not pull the image 127\.0\.0\.1:1/trtllm:1: .*connection refused"
    ) as caught:
        build(docker_engine, tmp_path, "127.0.0.1:1/trtllm:1", [])
    assert (caught.value.hint or "").startswith("see what this says: docker pull 127.0.0.1:1/trtllm:1; ")


def downloading(layer: str, done_gib: float) -> dict[str, object]:
    done_bytes = int(done_gib * GIB_BYTES)
    return {"status": "Downloading", "id": layer, "progressDetail": {"current": done_bytes, "total": 8 * GIB_BYTES}}


def test_progress_is_told_every_half_gib_over_all_layers():
    progress = PullProgress()
    events = [
        {"status": "Pulling from tritonserver", "id": "1"},
        downloading("a", 0.2),
        downloading("b", 0.2),
        downloading("a", 0.4),
        downloading("a", 0.6),
        {"status": "Download complete", "id": "a", "progressDetail": {}},
        downloading("b", 2.0),
        {"status": "Downloading", "id": "c"},
    ]

    assert [line for event in events for line in progress.lines(event)] == [
        "downloaded 0.6 GiB",
        "downloaded 2.6 GiB",
    ]
