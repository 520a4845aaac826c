"""Rotary scaling: linear by its keys, Llama 3's by the factors that the file keeps; anything else is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import GgufSource, from_checkpoint
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.gguf import import_gguf
from tritonforge.errors import UnsupportedModel


@pytest.fixture
def source(tmp_path: Path) -> GgufSource:
    return from_checkpoint(write_llama(tmp_path / "source", head_dim=64, rope_theta=500000.0))


def scaling_of(tmp_path: Path, source: GgufSource) -> dict[str, object] | None:
    out = import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")
    return json.loads((out / "config.json").read_text())["rope_scaling"]


def llama3_factors(*, factor: float, original: int, high: float = 4.0, base: float = 500000.0) -> np.ndarray:
    """The factors as the published reference computes them, one frequency at a time (low_freq_factor 1)."""
    factors = []
    for pair in range(32):
        wavelength = 2 * math.pi * base ** (pair / 32)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original:
            factors.append(factor)
        else:
            smooth = (original / wavelength - 1.0) / (high - 1.0)
            factors.append(1.0 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


def test_no_scaling(tmp_path: Path, source: GgufSource) -> None:
    assert scaling_of(tmp_path, source) is None


def test_factors_of_one_are_no_scaling(tmp_path: Path, source: GgufSource) -> None:
    source.tensors["rope_freqs.weight"] = np.ones(32, np.float32)
    assert scaling_of(tmp_path, source) is None


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_scaling_is_found_from_its_factors(tmp_path: Path, source: GgufSource, factor: float) -> None:
    source.tensors["rope_freqs.weight"] = llama3_factors(factor=factor, original=8192)

    assert scaling_of(tmp_path, source) == llama3_scaling() | {"factor": factor}


def test_the_original_length_is_taken_from_the_file(tmp_path: Path, source: GgufSource) -> None:
    source.tensors["rope_freqs.weight"] = llama3_factors(factor=4.0, original=2048)
    source.fields["llama.rope.scaling.original_context_length"] = 2048

    scaling = scaling_of(tmp_path, source)

    assert scaling is not None
    assert scaling["original_max_position_embeddings"] == 2048


@pytest.mark.parametrize(
    "factors",
    [
        llama3_factors(factor=8.0, original=2048),
        llama3_factors(factor=8.0, original=8192, high=8.0),
        np.linspace(1, 8, 32, dtype=np.float32),
        np.ones(16, np.float32),
        np.zeros(32, np.float32),
        np.full(32, np.inf, np.float32),
    ],
    ids=["another_length", "another_high_factor", "arbitrary", "too_few", "zero", "infinite"],
)
def test_other_factors_are_refused(tmp_path: Path, source: GgufSource, factors: np.ndarray) -> None:
    source.tensors["rope_freqs.weight"] = factors
    with pytest.raises(UnsupportedModel, match=r"rope_freqs\.weight are not Llama 3's"):
        scaling_of(tmp_path, source)


@pytest.mark.parametrize(
    "fields",
    [
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        {"llama.rope.scale_linear": 4.0},
    ],
    ids=["current_keys", "older_key"],
)
def test_linear_scaling(tmp_path: Path, source: GgufSource, fields: dict[str, object]) -> None:
    source.fields |= fields
    assert scaling_of(tmp_path, source) == {"rope_type": "linear", "type": "linear", "factor": 4.0}


def test_linear_scaling_by_one_is_none(tmp_path: Path, source: GgufSource) -> None:
    source.fields |= {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 1.0}
    assert scaling_of(tmp_path, source) is None


@pytest.mark.parametrize("kind", ["yarn", "longrope"])
def test_another_scaling_is_refused_by_name(tmp_path: Path, source: GgufSource, kind: str) -> None:
    source.fields |= {"llama.rope.scaling.type": kind, "llama.rope.scaling.factor": 4.0}
    with pytest.raises(UnsupportedModel, match=f"'{kind}'"):
        scaling_of(tmp_path, source)
