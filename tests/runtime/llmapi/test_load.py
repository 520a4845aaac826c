"""How the library is found and asked, release by release. It cannot run here: modules of its shape stand in for it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tritonforge.runtime.llmapi.load import load_llm

ARGS = {"model": "/models/m", "backend": "pytorch", "kv_cache_config": {"enable_block_reuse": True}}


class Llm:
    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments


class TorchLlm(Llm):
    pass


def library(monkeypatch: pytest.MonkeyPatch, version: str, **modules: object) -> None:
    names = {"": {"__version__": version, "LLM": Llm, "SamplingParams": dict}, **modules}
    for name, values in names.items():
        full = f"tensorrt_llm{name.replace('/', '.')}"
        module = ModuleType(full)
        module.__path__ = []
        module.__dict__.update(values)  # type: ignore[call-overload]
        monkeypatch.setitem(sys.modules, full, module)


@pytest.fixture(autouse=True)
def _without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE", raising=False)


def test_from_1_0_on_the_llm_is_the_pytorch_path(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, "1.0.0", **{"/_torch": {}, "/_torch/llm": {"LLM": TorchLlm}})
    loaded = load_llm(ARGS)
    assert type(loaded.llm) is Llm
    assert loaded.llm.arguments == {**ARGS, "trust_remote_code": False}
    assert loaded.sampling_params is dict


def test_before_1_0_it_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, "0.19.0", **{"/_torch": {}, "/_torch/llm": {"LLM": TorchLlm}})
    assert type(load_llm(ARGS).llm) is TorchLlm


def test_before_1_0_without_that_place_the_llm_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, "0.21.0")
    loaded = load_llm(ARGS)
    assert type(loaded.llm) is Llm
    assert loaded.llm.arguments["backend"] == "pytorch"


def test_nested_arguments_go_through_upstreams_own_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        return {**known, **more, "kv_cache_config": ("KvCacheConfig", more["kv_cache_config"])}

    names = {"/llmapi": {}, "/llmapi/llm_utils": {"update_llm_args_with_extra_dict": convert}}
    library(monkeypatch, "1.0.0", **names)
    assert load_llm(ARGS).llm.arguments["kv_cache_config"] == ("KvCacheConfig", {"enable_block_reuse": True})


def test_a_server_under_mpirun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, "1.0.0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="OMPI_COMM_WORLD_SIZE is 2: Triton was started by mpirun"):
        load_llm(ARGS)
