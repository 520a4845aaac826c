"""Activation ranges as a recording would give them, with random values."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

Ranges = dict[str, np.ndarray]
SAME_INPUTS = {"k_proj": "q_proj", "v_proj": "q_proj", "up_proj": "gate_proj"}


def make_ranges(folder: Path, *, seed: int = 0, shared: bool = True) -> Ranges:
    """Ranges of every module with a matrix, lm_head included, the embedding not.

    Args:
        shared: Modules that read the same have the same inputs, as in any recording; otherwise each has its own, so
            that a comparison shows which are used.
    """
    random = np.random.default_rng(seed)
    ranges: Ranges = {}
    for file in sorted(folder.glob("*.safetensors")):
        for name, weight in load_file(file).items():
            if weight.ndim == 2 and "embed" not in name:
                module = name.removesuffix(".weight")
                ranges[f"{module}.x"] = random.uniform(0.5, 20, weight.shape[1]).astype(np.float32)
                ranges[f"{module}.y"] = random.uniform(0.5, 5, weight.shape[0]).astype(np.float32)
    for name in ranges if shared else ():
        for part, first in SAME_INPUTS.items():
            if name.endswith(f".{part}.x"):
                ranges[name] = ranges[name.replace(part, first)]
    return ranges


def write_ranges(folder: Path, path: Path, *, seed: int = 0, shared: bool = True, **changed: object) -> Path:
    """Write them to a file; `changed` maps names (dots as two underscores) to other values, None leaves one out."""
    ranges = make_ranges(folder, seed=seed, shared=shared)
    for key, value in changed.items():
        name = key.replace("__", ".")
        if value is None:
            del ranges[name]
        else:
            ranges[name] = value
    save_file(ranges, path)
    return path
