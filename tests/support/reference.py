"""What transformers makes of a checkpoint. Tests that import this are skipped where it is not installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def reference_logits(folder: Path, ids: Sequence[int]) -> np.ndarray:
    """Logits in float32 of a Hugging Face folder, [tokens, vocabulary]."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits: np.ndarray = model(torch.tensor([list(ids)])).logits[0].numpy()
    return logits
