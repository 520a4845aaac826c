"""A Python model in the place of a TensorRT-LLM engine: it echoes its prompt, and says what else it was given.

It stands in for the `tensorrtllm` backend where only tensors matter; nothing is computed.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

MODEL = '''
    """Stands in for the tensorrtllm backend: answers with its prompt."""

    import numpy as np
    import triton_python_backend_utils as pb_utils

    FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


    class TritonPythonModel:
        def execute(self, requests):
            for request in requests:
                self.answer({t.name(): t.as_numpy() for t in request.inputs()}, request.get_response_sender())

        def answer(self, given, sender):
            ids, lengths = given["input_ids"], given["input_lengths"].reshape(-1)
            size = len(ids)
            # What came, where clients can see it: each input by the number of its elements, and the bias.
            counts = [given[name].size if name in given else -1 for name in ("stop_words_list", "bad_words_list")]
            bias = given["embedding_bias"] if "embedding_bias" in given else np.zeros((size, 0), np.float32)
            more = {
                "cum_log_probs": np.array([[float(np.sum(row))] for row in bias], np.float32),
                "output_log_probs": np.array([[[float(len(given)), *counts]]] * size, np.float32),
            }
            if not given.get("streaming", np.zeros(1, bool)).any():
                return self.send(sender, ids[:, None, :], lengths, more, FINAL)
            for token in ids[0][: lengths[0]]:
                self.send(sender, np.array([[[token]]], np.int32), [1], more, 0)
            sender.send(flags=FINAL)

        def send(self, sender, ids, lengths, more, flags):
            outputs = {"output_ids": ids, "sequence_length": np.array(lengths, np.int32).reshape(-1, 1), **more}
            tensors = [pb_utils.Tensor(name, array) for name, array in outputs.items()]
            sender.send(pb_utils.InferenceResponse(tensors), flags=flags)
'''


def put_standin(engine_model: Path) -> None:
    """Run a rendered engine model of the `tensorrtllm` backend as a Python model; its tensors stay as they are.

    The last block, histograms that Triton 2.51 does not know, is cut off.

    Args:
        engine_model: The model folder.
    """
    config = engine_model / "config.pbtxt"
    text = config.read_text()
    assert text.count('backend: "tensorrtllm"') == 1
    config.write_text(text.replace('backend: "tensorrtllm"', 'backend: "python"').split("\nmodel_metrics {")[0])
    (folder,) = (path for path in engine_model.iterdir() if path.is_dir())
    (folder / "model.py").write_text(dedent(MODEL).lstrip())
