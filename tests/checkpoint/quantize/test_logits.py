"""The answers of quantised models, computed as an engine computes them, stay near those of the float model."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_llama
from tests.support.quantised_forward import quantised_logits, record_ranges
from tests.support.trtllm_forward import logits
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant

IDS = [5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43]
# Largest distance from the float logits, relative to them. Random weights are as hard as weights get.
SMOOTHQUANT = {
    SmoothQuant(alpha, per_channel, per_token): 0.06
    for alpha, per_channel, per_token in itertools.product((0.3, 0.5), (True, False), (True, False))
}
VARIANTS = [(ConvertOptions(precision="int8_smoothquant", smoothquant=how), most) for how, most in SMOOTHQUANT.items()]
VARIANTS += [(ConvertOptions(precision="fp8"), 0.16), (ConvertOptions(precision="int4_awq", group_size=64), 0.5)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its conversion to floats, and the ranges of what its modules read and write."""
    folder = tmp_path_factory.mktemp("loud")
    source = write_llama(folder / "hf", hidden=128, intermediate=256, layers=1, dtype="F16", tokenizer=None)
    convert(source, folder / "floats", ConvertOptions(dtype="float32"))
    record_ranges(folder / "floats", IDS, folder / "ranges.safetensors")
    return source


@pytest.mark.parametrize(("options", "most"), VARIANTS, ids=lambda value: getattr(value, "precision", None))
def test_quantised_logits_are_near_the_float_ones(
    tmp_path: Path, source: Path, options: ConvertOptions, most: float
) -> None:
    convert(source, tmp_path / "out", replace(options, activation_ranges=source.with_name("ranges.safetensors")))
    expected = logits(source.with_name("floats"), IDS)
    found = quantised_logits(tmp_path / "out", IDS)
    distance = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert distance < most
