"""Engines that do not fit the server or its GPU are refused before they are loaded, with the command that mends it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tritonforge.errors import EngineMismatch
from tritonforge.pipeline.compatibility import Advice, EngineNeeds, ServerFacts, check_needs
from tritonforge.pipeline.machine import Gpu
from tritonforge.releases.table import all_releases

NEEDS = EngineNeeds(
    "tiny", 2, "tensorrt_llm", backend="tensorrtllm", release="0.16.0", gpu_architecture="sm_90", mount="/models"
)
H100, A100 = Gpu(0, "NVIDIA H100", "sm_90"), Gpu(1, "NVIDIA A100", "sm_80")
FIRST_IS_OLD = (Gpu(0, "NVIDIA A100", "sm_80"), Gpu(1, "NVIDIA H100", "sm_90"))
FITS = ServerFacts(triton="2.53.0", backends=("python", "tensorrtllm"), gpus=(H100,))
ADVICE = Advice(Path("/srv/models"), Path("/srv/forge.yaml"))
BUILD = "tritonforge build -f /srv/forge.yaml --model tiny --version 2 --replace"
RUN = (
    "docker run --rm --gpus all --network host --shm-size 2g -v /srv/models:/models:ro "
    "nvcr.io/nvidia/tritonserver:24.12-trtllm-python-py3 tritonserver --model-repository /models "
    "--model-control-mode explicit --load-model tiny_engine_v2 --load-model tiny"
)


def test_what_fits_is_taken_without_a_word() -> None:
    assert check_needs(NEEDS, FITS, ADVICE) == ()


@pytest.mark.parametrize(
    ("server", "problem", "hint"),
    [
        (
            replace(FITS, triton="2.54.0"),
            "it is for TensorRT-LLM 0.16.0; the server runs Triton 2.54.0, whose container carries TensorRT-LLM 0.17.0",
            f"run it with: {RUN}; or set engine.release to 0.17.0 and run: {BUILD}",
        ),
        (
            replace(FITS, gpus=FIRST_IS_OLD),
            "it is compiled for sm_90; GPU 0 of the server is sm_80 (NVIDIA A100)",
            f"build it on a machine with that GPU: {BUILD}",
        ),
        (
            replace(FITS, backends=("python",)),
            "it needs Triton's backend 'tensorrtllm', and the embedded server has python only",
            f"run it with: {RUN}",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_command(server: ServerFacts, problem: str, hint: str) -> None:
    with pytest.raises(EngineMismatch) as caught:
        check_needs(NEEDS, server, ADVICE)

    assert caught.value.message == f"tiny_engine_v2 cannot be loaded: {problem}"
    assert caught.value.hint == hint
    shlex.split(hint.partition(": ")[2])  # can be pasted into a shell


@pytest.mark.parametrize("release", all_releases(), ids=lambda release: release.name)
def test_a_release_fits_each_of_its_containers_and_no_other(release) -> None:
    needs = replace(NEEDS, release=release.name)
    for other in all_releases():
        for container in other.containers:
            server = replace(FITS, triton=container.triton)
            if other == release:
                assert check_needs(replace(needs, tensorrt=container.tensorrt), server, ADVICE) == ()
            else:
                with pytest.raises(EngineMismatch, match=f"TensorRT-LLM {release.name}"):
                    check_needs(needs, server, ADVICE)


@pytest.mark.parametrize(
    ("needs", "server", "note"),
    [
        (NEEDS, ServerFacts(triton=None, gpus=(H100,)), "whether the server carries TensorRT-LLM 0.16.0 is not known"),
        (NEEDS, replace(FITS, triton="3.99.0"), "the release table has no container with Triton 3.99.0"),
        (NEEDS, replace(FITS, gpus=()), "whether the server's GPU is sm_90 is not known"),
        (replace(NEEDS, gpu_architecture=None), FITS, "for which GPU it is compiled is not known"),
        (replace(NEEDS, gpus=(0, 1)), FITS, "whether the server's GPU 1 is sm_90 is not known"),
        (
            replace(NEEDS, release="0.9.0"),
            replace(FITS, triton="2.45.0"),
            "its manifest does not say which TensorRT built it; the server's has TensorRT 9.3.0.post12.dev1",
        ),
        (replace(NEEDS, release=None), FITS, "its manifest does not say which TensorRT-LLM built it"),
    ],
)
def test_what_is_not_known_is_a_note(needs: EngineNeeds, server: ServerFacts, note: str) -> None:
    (found,) = check_needs(needs, server, ADVICE)

    assert note in found


def test_only_the_gpus_of_the_version_count() -> None:
    both = replace(FITS, gpus=(H100, A100))

    assert check_needs(NEEDS, both, ADVICE) == ()  # the first one is meant
    assert check_needs(replace(NEEDS, gpus=(0,)), both, ADVICE) == ()
    with pytest.raises(EngineMismatch, match="GPU 1"):
        check_needs(replace(NEEDS, gpus=(1,)), both, ADVICE)
    assert check_needs(replace(NEEDS, gpu_architecture="sm_90a"), FITS, ADVICE) == ()


@pytest.mark.parametrize(("ranks", "gpu"), [(1, 0), (2, 0)])
def test_without_numbers_the_first_gpus_are_judged_as_when_it_is_built(ranks: int, gpu: int) -> None:
    with pytest.raises(EngineMismatch, match=f"compiled for sm_90; GPU {gpu} of the server is sm_80"):
        check_needs(replace(NEEDS, ranks=ranks), replace(FITS, gpus=FIRST_IS_OLD), ADVICE)
    with pytest.raises(EngineMismatch, match="compiled for sm_90; GPU 1 of the server is sm_80"):
        check_needs(replace(NEEDS, ranks=2), replace(FITS, gpus=(H100, A100)), ADVICE)
    assert check_needs(replace(NEEDS, gpus=(1,)), replace(FITS, gpus=FIRST_IS_OLD), ADVICE) == ()


def test_an_engine_of_another_tensorrt_than_the_servers_is_refused_with_the_container_that_has_it() -> None:
    needs = replace(NEEDS, release="0.9.0", tensorrt="10.0.1.6")

    assert check_needs(needs, replace(FITS, triton="2.46.0"), ADVICE) == ()
    with pytest.raises(EngineMismatch) as caught:
        check_needs(needs, replace(FITS, triton="2.45.0"), ADVICE)

    assert caught.value.message == (
        "tiny_engine_v2 cannot be loaded: it is compiled with TensorRT 10.0.1.6; the server runs Triton 2.45.0, whose "
        "container has TensorRT 9.3.0.post12.dev1"
    )
    image = "nvcr.io/nvidia/tritonserver:24.0{}-trtllm-python-py3"
    assert caught.value.hint == (
        f"run it with: {RUN.replace('24.12', '24.05')}; or build it in {image.format(4)} (engine.image): {BUILD}"
    )


@pytest.mark.parametrize(
    ("built", "fits"), [("10.7.0", True), ("10.7.0.23", True), ("10.7.0.post1", True), ("10.8.0", False)]
)
def test_a_tensorrt_is_named_by_its_first_three_numbers(built: str, fits: bool) -> None:
    needs = replace(NEEDS, tensorrt=built)
    if fits:
        assert check_needs(needs, FITS, ADVICE) == ()
    else:
        with pytest.raises(EngineMismatch, match=r"TensorRT 10\.8\.0; the server runs Triton 2\.53\.0"):
            check_needs(needs, FITS, ADVICE)


def test_engines_of_no_release_fit_everywhere() -> None:
    assert check_needs(EngineNeeds("tiny", 1, "openvino", backend="python"), ServerFacts(), ADVICE) == ()


def test_an_engine_of_several_ranks_is_started_with_a_worker_for_each() -> None:
    with pytest.raises(EngineMismatch) as caught:
        check_needs(replace(NEEDS, ranks=2), replace(FITS, backends=("python",)), ADVICE)

    orchestrator = "-e TRTLLM_ORCHESTRATOR=1 -e TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES=1"
    command, comment = str(caught.value.hint).split("  # ")
    assert command == f"run it with: {RUN.replace('-v ', f'{orchestrator} -v ')}"
    assert comment.endswith("read in upstream's launch script, not run")


@pytest.mark.parametrize(
    ("needs", "problem", "image"),
    [
        (
            EngineNeeds("tiny", 2, "llmapi", backend="python", release="1.0.0", ranks=2),
            "it needs TensorRT-LLM 1.0.0, and the embedded server has python only",
            "nvcr.io/nvidia/tritonserver:25.10-trtllm-python-py3",
        ),
        (
            EngineNeeds("tiny", 2, "vllm", backend="vllm"),
            "it needs Triton's backend 'vllm', and the embedded server has python only",
            "nvcr.io/nvidia/tritonserver:25.05-vllm-python-py3",
        ),
    ],
)
def test_engines_that_take_text_run_in_their_containers_only(needs: EngineNeeds, problem: str, image: str) -> None:
    with pytest.raises(EngineMismatch, match=problem) as caught:
        check_needs(needs, replace(FITS, backends=("python",)), ADVICE)

    words = shlex.split(str(caught.value.hint).partition(": ")[2], comments=True)
    assert words[words.index("/srv/models:/srv/models:ro") + 1] == image
    assert "-e" not in words, "the LLM API starts a process for each GPU by itself"
