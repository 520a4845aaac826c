"""The script of docs/quantisation.md records what a conversion can use."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_llama
from tests.support.quantised_forward import record_ranges
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.numpy import load_file  # noqa: E402

pytestmark = pytest.mark.reference
PAGE = Path(__file__).parents[3] / "docs" / "quantisation.md"
TEXT = "Two plus two is four, and the sun goes down."


@pytest.mark.parametrize("tied", [False, True])
def test_the_documented_script_records_the_ranges_that_a_forward_pass_has(tmp_path: Path, *, tied: bool) -> None:
    source = write_llama(tmp_path / "hf", layers=2, tied=tied)
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "record.py").write_text(script)
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n\n")
    out = tmp_path / "ranges.safetensors"
    command = [sys.executable, "record.py", str(source), "texts.txt", str(out)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

    ids = transformers.AutoTokenizer.from_pretrained(source)(TEXT)["input_ids"]
    convert(source, tmp_path / "floats", ConvertOptions(dtype="float32"))
    record_ranges(tmp_path / "floats", ids, tmp_path / "expected.safetensors")
    found, expected = load_file(out), load_file(tmp_path / "expected.safetensors")
    assert found.keys() - expected.keys() == {"lm_head.x", "lm_head.y"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-3, atol=1e-4, err_msg=name)

    options = ConvertOptions(precision="int8_smoothquant", kv_cache="int8", activation_ranges=out)
    convert(source, tmp_path / "out", options)
    assert (tmp_path / "out" / "rank0.safetensors").is_file()
