"""Which of ChatGLM2, ChatGLM3 and GLM-4 a checkpoint is.

All three have the same architecture, tensor names and model type, yet they differ in how `rope_ratio` acts, in the
tokenizer and in the chat format. The folder's name proves nothing, so the version is found from what the files say.
The first of these rules that has an answer decides:

1. ``chatglm_version`` in config.json, for a checkpoint that says nothing else: add the key by hand.
2. The published repository that config.json names as its origin (``_name_or_path``: ``THUDM/chatglm3-6b``, …). Only
   the vendor's own repositories count; a path on somebody's disk does not.
3. GLM-4: tokenizer.model holds ranks (a text of base64 and numbers) instead of a sentencepiece model, the tokenizer's
   class is ChatGLM4Tokenizer, generation ends at several ids, or the vocabulary has more than 100,000 rows (65,024 in
   ChatGLM2 and 3, 151,552 in GLM-4).
4. ChatGLM3: the tokenizer's files name the role token ``<|assistant|>``, which ChatGLM2 does not have.
5. ChatGLM2: the tokenizer's own code is there and does not name a role token; or config.json has the switches of its
   prefix tuning (``pre_seq_len``, ``prefix_projection``); or its ``auto_map`` offers no AutoModelForCausalLM, which
   only the ChatGLM2 releases lack.
6. Otherwise ChatGLM3. Without `rope_ratio` the two compute the same, so this matters for the chat format only.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from tritonforge.checkpoint.families.base import SourceFacts
from tritonforge.formats.input_file import has_file, open_input, read_input
from tritonforge.formats.json_fields import MOST_JSON_BYTES, JsonFields, read_json_object

VERSIONS = ("chatglm2", "chatglm3", "glm4")
_PUBLISHED = re.compile(r"(?:THUDM|zai-org)/(?P<version>chatglm2|chatglm3|glm-4)-[\w.-]+")
_GLM4_VOCABULARY = 100_000
_ROLE_TOKEN = b"<|assistant|>"
_TOKENIZER_CODE = "tokenization_chatglm.py"
_TOKENIZER_TEXTS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", _TOKENIZER_CODE)
_PREFIX_TUNING = ("pre_seq_len", "prefix_projection")
_RANK_LINE = re.compile(rb"(?P<token>[A-Za-z0-9+/]+={0,2}) \d+\r?")


def find_version(facts: SourceFacts) -> str:
    """The version of a ChatGLM checkpoint in its original naming, by the rules above.

    Raises:
        CorruptFile: config.json names a version that does not exist, or a file of the tokenizer cannot be read.
    """
    fields = facts.fields
    if "chatglm_version" in fields:
        named = fields.text("chatglm_version")
        if named not in VERSIONS:
            raise fields.wrong("chatglm_version", named, f"one of {', '.join(VERSIONS)}")
        return named
    published = _PUBLISHED.fullmatch(fields.text("_name_or_path", ""))
    if published is not None:
        return published["version"].replace("-", "")
    if _is_glm4(facts):
        return "glm4"
    files = {name: facts.folder / name for name in _TOKENIZER_TEXTS}
    texts = {name: read_input(file, most_bytes=MOST_JSON_BYTES) for name, file in files.items() if has_file(file)}
    if any(_ROLE_TOKEN in text for text in texts.values()):
        return "chatglm3"
    return "chatglm2" if _TOKENIZER_CODE in texts or _looks_like_chatglm2(fields) else "chatglm3"


def is_rank_file(file: Path) -> bool:
    """Whether a tokenizer.model is a text of ranks (base64 of a token, a space, its number) and no sentencepiece."""
    with open_input(file) as stream:
        line = stream.readline(4096).rstrip(b"\n")
    found = _RANK_LINE.fullmatch(line)
    if found is None or len(found["token"]) % 4:
        return False
    return bool(base64.b64decode(found["token"]))


def _is_glm4(facts: SourceFacts) -> bool:
    tokenizer = facts.folder / "tokenizer.model"
    if has_file(tokenizer):
        return is_rank_file(tokenizer)
    settings = facts.folder / "tokenizer_config.json"
    if has_file(settings) and read_json_object(settings).get("tokenizer_class") == "ChatGLM4Tokenizer":
        return True
    ends = facts.fields.values.get("eos_token_id")
    several_ends = isinstance(ends, list) and len(ends) > 1
    return several_ends or facts.fields.integer("padded_vocab_size") > _GLM4_VOCABULARY


def _looks_like_chatglm2(fields: JsonFields) -> bool:
    # The keys count even when they are null, as ChatGLM2 publishes them.
    if any(key in fields.values for key in _PREFIX_TUNING):
        return True
    auto_map = fields.nested("auto_map")
    return auto_map is not None and "AutoModelForCausalLM" not in auto_map
