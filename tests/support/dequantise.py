"""A quantised TensorRT-LLM checkpoint as the floats that it stands for, rank by rank, without any code of the package.

Each rank is made floats with nothing but its own tensors, as an engine has it. The result is a checkpoint that the
forward pass and the joiner of ranks understand.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

Tensors = dict[str, np.ndarray]
DTYPES = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I8": np.dtype(np.int8),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
}


def read_tensors(file: Path) -> Tensors:
    """A safetensors file; the reader of the library for numpy knows no 8-bit floats."""
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[first:last], DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def dequantise(folder: Path, out: Path) -> Path:
    """Write the float32 checkpoint that a quantised one stands for."""
    out.mkdir(parents=True)
    config = json.loads((folder / "config.json").read_text())
    config["quantization"] = {"quant_algo": None, "kv_cache_quant_algo": None}
    config["dtype"] = "float32"
    (out / "config.json").write_text(json.dumps(config))
    for file in sorted(folder.glob("rank*.safetensors")):
        tensors = dequantised(read_tensors(file))
        save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, out / file.name)
    return out


def dequantised(tensors: Tensors) -> Tensors:
    """All tensors of a rank as float32, scales taken into the weights."""
    made: Tensors = {}
    for name, values in tensors.items():
        place, _, kind = name.rpartition(".")
        if kind in ("weight", "bias"):
            is_float = values.dtype in (np.float16, np.float32, DTYPES["BF16"])
            made[name] = (values if is_float else _weight(place, values, tensors)).astype(np.float32)
    return made


def _weight(place: str, values: np.ndarray, tensors: Tensors) -> np.ndarray:
    def of(kind: str) -> np.ndarray:
        return tensors[f"{place}.{kind}"].astype(np.float32)

    if values.dtype == DTYPES["F8_E4M3"]:
        return values.astype(np.float32) * of("weights_scaling_factor")
    if f"{place}.weights_scaling_factor" in tensors:
        return _int4(values, of("weights_scaling_factor")) * of("prequant_scaling_factor")
    weight = values.astype(np.float32) * of("per_channel_scale").T
    if f"{place}.act_scale" in tensors:
        weight = weight * of("act_scale") * _input_scale(place, tensors)
    return weight / of("smoother") if f"{place}.smoother" in tensors else weight


def _int4(packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    numbers = packed.astype(np.int64) % 256
    rows = np.empty((2 * len(packed), packed.shape[1]))
    for parity, nibbles in enumerate((numbers % 16, numbers // 16)):
        rows[parity::2] = np.where(nibbles > 7, nibbles - 16, nibbles)
    return rows * np.repeat(scales, rows.shape[1] // scales.shape[1], axis=1)


def _input_scale(place: str, tensors: Tensors) -> np.ndarray:
    layer, block, linear = place.rsplit(".", 2)
    names = {
        "qkv": f"{layer}.input_layernorm.scale_to_int",
        "fc": f"{layer}.post_layernorm.scale_to_int",
        "gate": f"{layer}.post_layernorm.scale_to_int",
        "dense": f"{layer}.attention.quantization_scaling_factor",
        "proj": f"{layer}.mlp.quantization_scaling_factor",
    }
    assert block in ("attention", "mlp")
    return tensors[names[linear]]
