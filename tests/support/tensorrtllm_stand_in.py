"""Turns rendered engine models of the `tensorrtllm` backend into models that a Triton without a GPU can load.

Nothing of TensorRT-LLM runs in them: see tensorrtllm_model.py for what they answer.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tritonforge.repository.pbtxt import quoted, read_config

_METRICS = re.compile(r"\n# Time to the first response[^\n]*\nmodel_metrics \{.*?\n\}\n", re.DOTALL)


def stand_in(folder: Path, **behaviour: object) -> None:
    """Give a rendered model the stand-in for its backend, in place.

    Every tensor, parameter and setting stays as it was rendered, but for the backend itself and model_metrics, which
    the embedded Triton does not know.

    Args:
        folder: Model folder with its version folder.
        behaviour: `token_delay_s` (seconds before each token) and `endless` (it repeats its prompt for ever).
    """
    config = folder / "config.pbtxt"
    text = config.read_text()
    assert text.count('backend: "tensorrtllm"') == 1
    text = _METRICS.sub("", text.replace('backend: "tensorrtllm"', 'backend: "python"'))
    text += f'parameters {{ key: "stand_in" value {{ string_value: {quoted(json.dumps(behaviour))} }} }}\n'
    config.write_text(text)
    (number,) = read_config(config).version_policy.specific.versions
    shutil.copy(Path(__file__).with_name("tensorrtllm_model.py"), folder / str(number) / "model.py")
