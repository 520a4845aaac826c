"""Peak memory of a conversion does not grow with the model."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from scripts.llama_shapes import LLAMA_2_7B, LlamaShape, write_llama_shape
from tests.support.peak_memory import peak_of_conversion

MIB = 1 << 20
SHAPE = LlamaShape(hidden=1024, heads=8, kv_heads=8, intermediate=4096, vocab=32768)  # 64 MiB embedding, 32 MiB a layer


@pytest.mark.parametrize("options", [{}, {"tp": 4, "pp": 2, "embedding_sharding": "vocab"}, {"dtype": "float16"}])
def test_floats_pass_in_blocks(tmp_path: Path, options: dict[str, Any]) -> None:
    write_llama_shape(tmp_path / "hf", SHAPE, layers=4, dtype="BF16")
    peak = peak_of_conversion(tmp_path / "hf", tmp_path / "out", options)
    assert peak < 128 * MIB  # Python and numpy have 45 MiB; the model has 256


@pytest.mark.slow
def test_llama_2_7b_is_converted_within_a_gigabyte_and_two_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All 32 layers where half of the free disk holds the 13.5 GB that come of them, otherwise as many as it holds."""
    free_bytes = shutil.disk_usage(tmp_path).free // 2
    layers = max((n for n in range(1, 33) if LLAMA_2_7B.size_bytes(layers=n) < free_bytes), default=1)
    write_llama_shape(tmp_path / "hf", LLAMA_2_7B, layers=layers, dtype="BF16", sparse=True)
    peak = peak_of_conversion(tmp_path / "hf", tmp_path / "out", {"tp": 2})
    largest = LLAMA_2_7B.vocab * LLAMA_2_7B.hidden * 2
    with capsys.disabled():
        print(f"\nLlama-2-7B, {layers} of 32 layers, 2 ranks: peak {peak / MIB:.0f} MiB")
    assert peak < 1024 * MIB + 2 * largest
    written = sum(file.stat().st_size for file in (tmp_path / "out").glob("*.safetensors"))
    assert written >= LLAMA_2_7B.size_bytes(layers=layers)
    shutil.rmtree(tmp_path / "out")
