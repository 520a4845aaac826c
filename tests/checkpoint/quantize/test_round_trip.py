"""Quantised ranks made floats again and joined are the source, but for the roundings that the format allows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.activation_ranges import write_ranges
from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.dequantise import DTYPES, dequantise, read_tensors
from tests.support.rejoin import join_ranks, source_parts
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant

FLOATS = {"float16": np.float16, "bfloat16": DTYPES["BF16"]}
FUSED = {"q": "input_norm", "k": "input_norm", "v": "input_norm", "gate": "post_norm", "up": "post_norm"}


def llama(folder: Path, **how: object) -> Path:
    return write_llama(folder, **{"hidden": 512, "heads": 4, "kv_heads": 2, "intermediate": 512, **how}, tokenizer=None)


def chatglm(folder: Path, **how: object) -> Path:
    return write_chatglm(
        folder, **{"hidden": 512, "heads": 4, "groups": 2, "intermediate": 512, **how}, vocab=64, tokenizer=False
    )


def compare(source: Path, out: Path, dtype: np.dtype, close: Callable[[np.ndarray, np.ndarray], bool]) -> None:
    """Every matrix of the layers as `close(source, errors)` says; everything else to the bit."""
    expected = {name: values.astype(np.float32) for name, values in source_parts(source, dtype).items()}
    found = join_ranks(dequantise(out, out.with_name("floats")))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        number, _, part = name.partition(".")
        if not (number.isdigit() and part.endswith("weight")):
            assert np.array_equal(found[name], values), name
            continue
        errors = np.abs(found[name] - values)
        assert close(values, errors), (name, errors.max())
        assert errors.any(), name  # something was rounded


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    family=st.sampled_from([llama, chatglm]),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2]),
    group_size=st.sampled_from([64, 128]),
    dtype=st.sampled_from(list(FLOATS)),
    stored=st.sampled_from(["F16", "BF16", "F32"]),
    with_ranges=st.booleans(),
    seed=st.integers(0, 100),
)
def test_int4(
    tmp_path_factory: pytest.TempPathFactory,
    family: Callable[..., Path],
    tp: int,
    pp: int,
    group_size: int,
    dtype: str,
    stored: str,
    with_ranges: bool,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("int4")
    source = family(folder / "hf", dtype=stored, seed=seed)
    pp = 1 if family is chatglm else pp
    ranges = write_ranges(source, folder / "ranges.safetensors", seed=seed) if with_ranges else None
    options = ConvertOptions(
        dtype=dtype, precision="int4_awq", tp=tp, pp=pp, group_size=group_size, activation_ranges=ranges
    )
    convert(source, folder / "out", options)

    def close(values: np.ndarray, errors: np.ndarray) -> bool:
        if with_ranges:  # then a step depends on the factors; on the whole rows, errors stay as small
            return bool((np.linalg.norm(errors, axis=1) <= 0.2 * np.linalg.norm(values, axis=1)).all())
        steps = np.abs(values).reshape(len(values), -1, group_size).max(axis=2) / 7
        return bool((errors <= np.repeat(steps / 2 * 1.02, group_size, axis=1)).all())

    compare(source, folder / "out", FLOATS[dtype], close)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    family=st.sampled_from([llama, chatglm]),
    tp=st.sampled_from([1, 2, 4]),
    dtype=st.sampled_from([*FLOATS, "float32"]),
    seed=st.integers(0, 100),
)
def test_fp8(
    tmp_path_factory: pytest.TempPathFactory, family: Callable[..., Path], tp: int, dtype: str, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("fp8")
    source = family(folder / "hf", seed=seed, hidden=64, intermediate=96)
    ranges = write_ranges(source, folder / "ranges.safetensors", seed=seed)
    convert(source, folder / "out", ConvertOptions(dtype=dtype, precision="fp8", tp=tp, activation_ranges=ranges))

    def close(values: np.ndarray, errors: np.ndarray) -> bool:
        # Three bits after the point, and a smallest step of 2^-9 scales; no weight here exceeds 1, which is 448 scales.
        assert np.abs(values).max() < 1
        return bool((errors <= np.maximum(np.abs(values) / 16, 2.0**-10 / 448) * 1.001).all())

    compare(source, folder / "out", FLOATS.get(dtype, np.float32), close)


@settings(max_examples=16, deadline=None, derandomize=True)
@given(
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2]),
    kv_heads=st.sampled_from([1, 2, 4]),
    per_channel=st.booleans(),
    per_token=st.booleans(),
    alpha=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    dtype=st.sampled_from([*FLOATS, "float32"]),
    seed=st.integers(0, 100),
)
def test_smoothquant(
    tmp_path_factory: pytest.TempPathFactory,
    tp: int,
    pp: int,
    kv_heads: int,
    per_channel: bool,
    per_token: bool,
    alpha: float,
    dtype: str,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("smooth")
    source = llama(folder / "hf", seed=seed, hidden=64, intermediate=96, kv_heads=kv_heads, dtype="F16")
    options = ConvertOptions(
        dtype=dtype,
        precision="int8_smoothquant",
        tp=tp,
        pp=pp,
        smoothquant=SmoothQuant(alpha, per_channel, per_token),
        activation_ranges=write_ranges(source, folder / "ranges.safetensors", seed=seed),
    )
    convert(source, folder / "out", options)
    expected = source_parts(source, np.dtype(np.float32))
    found = join_ranks(dequantise(folder / "out", folder / "floats"))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        number, _, part = name.partition(".")
        norm = FUSED.get(part.removesuffix(".weight"))
        if not part.endswith(".weight"):
            continue
        # What a norm's outputs are divided by shows in its weights.
        smoother = expected[f"{number}.{norm}"] / found[f"{number}.{norm}"] if norm else np.ones(1, np.float32)
        # A step of one channel or of the whole tensor; errors are those of smoothed weights, so compare them there.
        smoothed = np.abs(values * smoother)
        scale = np.maximum(smoothed.max(axis=1, keepdims=True) if per_channel else smoothed.max(), 1e-6) / 127
        if norm is None:
            smoothers = read_smoothers(folder / "out", name, tp, pp)
            smoothed = np.abs(values * smoothers)
            scale = (smoothed.max(axis=1, keepdims=True) if per_channel else smoothed.max()) / 127
            errors = np.abs(found[name] - values) * smoothers
        else:
            errors = np.abs(found[name] - values * smoother)
        # Half a step, and what 16-bit floats lose on the way: of weights, scales and the norm.
        lost = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
        assert (errors <= scale * 0.5 + smoothed * 3 * lost + scale * lost * 127).all(), (name, (errors / scale).max())


def read_smoothers(out: Path, name: str, tp: int, pp: int) -> np.ndarray:
    number, _, part = name.partition(".")
    place = {"dense": "attention.dense", "down": "mlp.proj"}[part.removesuffix(".weight")]
    layers = 2 // pp
    stage, local = divmod(int(number), layers)
    files = [out / f"rank{stage * tp + rank}.safetensors" for rank in range(tp)]
    return np.concatenate(
        [read_tensors(file)[f"transformer.layers.{local}.{place}.smoother"] for file in files], axis=1
    )
