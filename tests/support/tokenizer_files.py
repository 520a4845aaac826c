"""Small real tokenizers, trained on a fixed text: they split, join and carry special tokens like the published ones."""

import base64
import io
import json
from functools import cache
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXT = (
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "A model server answers many requests at once: it batches them and streams every token as it comes.",
    "def fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n",
    "Numbers such as 3.14159, 42 and 2024-11-30 are split into digits.",
    "你好，世界。今天的天气很好，我们去公园散步吧。",
    "Größe, café, naïve, señor: words with accents. Emoji too: 👋🙂.",
)
CHATML_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' "
    "+ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
GLM_SPECIALS = (
    "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>",
    "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
)  # fmt: skip
GLM_TEMPLATE = (
    "[gMASK]<sop>{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# Special tokens of ChatGLM2 and ChatGLM3 are numbered from the end of the sentencepiece vocabulary, in this order.
CHATGLM_SPECIALS = (
    "[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
)  # fmt: skip
GLM4_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


@cache
def byte_level_bpe(specials: tuple[str, ...], merges: int = 120) -> str:
    """A byte-level BPE tokenizer.json: specials first, then the 256 bytes, then merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(specials) + 256 + merges,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in specials],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    if "[gMASK]" in specials:
        prefix = [(text, specials.index(text)) for text in ("[gMASK]", "<sop>")]
        tokenizer.post_processor = processors.TemplateProcessing(single="[gMASK] <sop> $A", special_tokens=prefix)
    return tokenizer.to_str()


@cache
def sentencepiece_bpe(pieces: int = 420) -> bytes:
    """A sentencepiece tokenizer.model like Llama 2's: BPE with byte fallback, <unk> 0, <s> 1, </s> 2, no padding."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in TEXT for line in text.splitlines()),
        model_writer=model,
        model_type="bpe",
        vocab_size=pieces,
        byte_fallback=True,
        character_coverage=0.98,  # leaves some characters to byte fallback
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@cache
def rank_text(ranks: int = 400) -> bytes:
    """A tokenizer.model like GLM-4's: one line per token, base64 of its bytes, a space, its rank."""
    vocabulary = json.loads(byte_level_bpe((), ranks - 256))["model"]["vocab"]
    alphabet = _byte_of_character()
    # Bytes come first in the trained vocabulary but not in byte order; any order is a valid set of ranks.
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    lines = (base64.b64encode(bytes(alphabet[char] for char in token)) + b" %d" % i for i, token in enumerate(tokens))
    return b"\n".join(lines) + b"\n"


def write_chatml(folder: Path) -> int:
    """Write a ChatML tokenizer; returns its number of tokens."""
    text = byte_level_bpe(CHATML_SPECIALS)
    (folder / "tokenizer.json").write_text(text)
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "pad_token": "<|im_end|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": CHATML_TEMPLATE,
        },
    )
    _write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2})
    return Tokenizer.from_str(text).get_vocab_size()


def write_glm(folder: Path) -> int:
    """Write a tokenizer like that of the transformers-native GLM-4; returns its number of tokens."""
    text = byte_level_bpe(GLM_SPECIALS)
    (folder / "tokenizer.json").write_text(text)
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": GLM_TEMPLATE,
        },
    )
    _write_json(folder / "generation_config.json", {"eos_token_id": [0, 7, 9], "pad_token_id": 0})
    return Tokenizer.from_str(text).get_vocab_size()


def write_sentencepiece(folder: Path) -> int:
    """Write a Llama 2 style tokenizer without tokenizer.json; returns its number of tokens."""
    model = sentencepiece_bpe()
    (folder / "tokenizer.model").write_bytes(model)
    config = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    _write_json(folder / "tokenizer_config.json", {**config, "legacy": True, "add_bos_token": True})
    _write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    return sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()


def write_chatglm(folder: Path, version: str) -> int:
    """Write the tokenizer of chatglm2, chatglm3 or glm4; returns its number of tokens, specials included."""
    config: dict[str, object] = {"remove_space": False, "do_lower_case": False, "tokenizer_class": "ChatGLMTokenizer"}
    if version == "glm4":
        (folder / "tokenizer.model").write_bytes(rank_text())
        config["tokenizer_class"] = "ChatGLM4Tokenizer"
        count = rank_text().count(b"\n") + 14
    else:
        (folder / "tokenizer.model").write_bytes(sentencepiece_bpe())
        count = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_bpe()).get_piece_size()
        specials = CHATGLM_SPECIALS if version == "chatglm3" else CHATGLM_SPECIALS[:5]
        if version == "chatglm3":
            config["added_tokens_decoder"] = {
                str(count + i): {"content": text, "special": False} for i, text in enumerate(specials)
            }
        count += len(specials)
    _write_json(folder / "tokenizer_config.json", config)
    return count


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False))
