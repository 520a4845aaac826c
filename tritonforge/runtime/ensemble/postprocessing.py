"""Last step of the ensemble: token ids to text, each response of the engine for itself. No Triton here.

A step of an ensemble keeps nothing between calls, so a character whose bytes come in two streamed responses can not be
put together: both halves become U+FFFD. A space at the start of a response stays, because it parts words there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..gateway.detokenize import Detokenizer
from ..gateway.tokenization.vocabulary import Vocabulary
from ..tensors import Array, RequestRejected

# Outputs that carry an input through, which releases before 0.14 have; with their dimensions, batch and beam included.
_CARRIED = {
    "OUT_CUM_LOG_PROBS": ("CUM_LOG_PROBS", 2, np.float32),
    "OUT_OUTPUT_LOG_PROBS": ("OUTPUT_LOG_PROBS", 3, np.float32),
    "OUT_CONTEXT_LOGITS": ("CONTEXT_LOGITS", 3, np.float32),
    "OUT_GENERATION_LOGITS": ("GENERATION_LOGITS", 4, np.float32),
    "OUT_BATCH_INDEX": ("BATCH_INDEX", 2, np.int32),
}


class Postprocessing:
    """The step, for the vocabulary of one engine version.

    Args:
        vocabulary: What the ids stand for.
        outputs: Names of the outputs that the model has.
    """

    def __init__(self, vocabulary: Vocabulary, outputs: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._carried = {name: _CARRIED[name] for name in outputs if name in _CARRIED}

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs for the inputs of one request.

        Args:
            arrays: `TOKENS_BATCH` `[batch, beams, n]`, `SEQUENCE_LENGTH` `[batch, beams]`, and what is carried through.

        Returns:
            `OUTPUT` is flat, one text per prompt and beam, as clients of NVIDIA's ensembles read it (`[0]` is the
            text). What the engine did not send is carried through as a single 0, as upstream does.

        Raises:
            RequestRejected: The tensors do not fit together.
        """
        tokens, lengths = arrays.get("TOKENS_BATCH"), arrays.get("SEQUENCE_LENGTH")
        if tokens is None or lengths is None or tokens.ndim != 3 or lengths.shape != tokens.shape[:2]:
            shapes = [None if array is None else list(array.shape) for array in (tokens, lengths)]
            raise RequestRejected(
                f"TOKENS_BATCH and SEQUENCE_LENGTH have shapes {shapes[0]} and {shapes[1]}; expected [batch, beams, n] "
                f"and [batch, beams]"
            )
        rows = tokens.reshape(-1, tokens.shape[2]).tolist()
        texts = [self._text(row[: max(0, length)]) for row, length in zip(rows, lengths.ravel().tolist(), strict=True)]
        outputs: dict[str, Array] = {"OUTPUT": np.array([text.encode() for text in texts], dtype=np.object_)}
        for name, (source, dimensions, kind) in self._carried.items():
            given = arrays.get(source)
            outputs[name] = np.zeros((1,) * dimensions, dtype=kind) if given is None else given
        return outputs

    def _text(self, token_ids: Sequence[int]) -> str:
        detokenizer = Detokenizer(self._vocabulary, drops_first_space=False)
        return "".join([*map(detokenizer.push, token_ids), detokenizer.finish()])
