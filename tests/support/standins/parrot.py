"""Stands in for an engine that takes text: no model, but a real tokenizer. It repeats its prompt.

Some prompts are commands: ``show ids``, ``show parameters``, ``show counts``, ``go on`` (without end), ``break`` (fails
after two tokens), ``give up`` (ends with a reason that no answer ends with).
"""

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import Tokenizer

CUT_CHARACTER = "\ufffd"


@dataclass
class Progress:
    """What there is of an answer."""

    prompt_ids: list[int]
    ids: list[int] = field(default_factory=list)
    text: str = ""
    reason: str | None = None


class Parrot:
    """The engine of one checkpoint."""

    def __init__(self, checkpoint: str, *, token_delay_s: float = 0.001) -> None:
        folder = Path(checkpoint)
        if not list(folder.glob("*.safetensors")):
            raise ValueError(f"{folder}: no weights")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        ends = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        self.ends = set(ends if isinstance(ends, list) else [ends])
        self.token_delay_s = token_delay_s
        self.lock = threading.Lock()
        self.counts = {"running": 0, "started": 0, "aborted": 0}

    def answer(self, prompt, parameters, is_aborted):
        """Yield the growing `Progress`, once a token; `parameters` are those that both engines have."""
        self._count(running=1, started=1)
        try:
            progress = Progress(self.tokenizer.encode(prompt).ids)
            for token_id in self._said(prompt, parameters, progress.prompt_ids):
                if is_aborted():
                    self._count(aborted=1)
                    return
                self._add(progress, token_id, parameters)
                if "break" in prompt and len(progress.ids) == 2:
                    raise RuntimeError("the engine fell over")
                if "give up" in prompt:
                    progress.reason = "abort"
                yield progress
                if progress.reason is not None:
                    return
                time.sleep(0.02 if "go on" in prompt else self.token_delay_s)
        finally:
            self._count(running=-1)

    def _said(self, prompt, parameters, prompt_ids):
        texts = {"show ids": prompt_ids, "show parameters": parameters, "show counts": self.counts}
        for command, value in texts.items():
            if command in prompt:
                yield from self.tokenizer.encode(json.dumps(value), add_special_tokens=False).ids
                yield min(self.ends)
                return
        while True:
            yield from prompt_ids
            if "go on" not in prompt:
                yield min(self.ends)

    def _add(self, progress, token_id, parameters):
        progress.ids.append(token_id)
        ends = set(parameters.get("stop_token_ids") or ()) | (set() if parameters.get("ignore_eos") else self.ends)
        if token_id in ends:
            progress.reason = "stop"
        elif len(progress.ids) >= parameters.get("max_tokens", 16):
            progress.reason = "length"
        text = self.tokenizer.decode(progress.ids, skip_special_tokens=True)
        if progress.reason is not None or not text.endswith(CUT_CHARACTER):
            progress.text = text
        for word in parameters.get("stop") or ():
            if word in progress.text and not parameters.get("deaf"):
                kept = len(word) if parameters.get("include_stop_str_in_output") else 0
                progress.text = progress.text[: progress.text.index(word) + kept]
                progress.reason = "stop"

    def _count(self, **changes):
        with self.lock:
            for name, change in changes.items():
                self.counts[name] += change
