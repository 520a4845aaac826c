"""What the tags of tensorrtllm_backend say of the ensemble, from a table of their own: not the package's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("ensemble_backend.tsv")
TAGS = ("0.9.0", "0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0", "0.18.2", "0.19.0")
CHOSEN = {"${logits_datatype}": "TYPE_FP32"}  # left to the user by the template, and what is written for it
Maps = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Row:
    """One tensor of one tag."""

    type: str
    dims: tuple[int, ...]
    optional: bool
    ragged: bool


def rows(tag: str, model: str, what: str) -> dict[str, Row]:
    """Inputs or outputs (`what`) of a model in a tag, by name."""
    found = {}
    for line in FILE.read_text().splitlines():
        if line.startswith("#"):
            continue
        owner, kind, name, first, last, type_, dims, marks = line.split("\t")
        if (owner, kind) == (model, what) and _number(first) <= _number(tag) <= _number(last):
            assert name not in found
            sizes = tuple(int(size) for size in dims.split(","))
            found[name] = Row(CHOSEN.get(type_, type_), sizes, "optional" in marks, "ragged" in marks)
    return found


def maps(tag: str) -> tuple[Maps, Maps, Maps]:
    """Input and output maps of the three steps, as written in four tags: key is the model's tensor."""
    text_in = dict(_TEXT_IN)
    text_out = {name: f"_{name}" for name in _TEXT_OUT} | _RENAMED_OUT
    engine_in = dict(_ENGINE_IN_019)
    engine_out = {"output_ids": "_TOKENS_BATCH", "sequence_length": "_SEQUENCE_LENGTH"}
    passed = ["cum_log_probs", "output_log_probs", "context_logits", "generation_logits", "batch_index"]
    engine_out |= {name: name for name in [*passed, "sequence_index", *_STATISTICS_016, *_STATISTICS_019]}
    answer_in = {"TOKENS_BATCH": "_TOKENS_BATCH", "SEQUENCE_LENGTH": "_SEQUENCE_LENGTH"}
    answer_out = {"OUTPUT": "text_output"}
    if _number(tag) <= (0, 16, 0):
        engine_in["return_kv_cache_reuse_stats"] = engine_in.pop("return_perf_metrics")
        engine_in["return_kv_cache_reuse_stats"] = "return_kv_cache_reuse_stats"
        _drop(engine_in, "guided_decoding_guide_type", "guided_decoding_guide")
        _drop(engine_out, *_STATISTICS_019)
    if _number(tag) <= (0, 12, 0):
        _drop(text_in, "PROMPT_TABLE_EXTRA_ID")
        _drop(text_out, "OUT_PROMPT_TABLE_EXTRA_IDS")
        text_in |= {"IMAGE": "image_input", "PROMPT_EMBEDDING_TABLE": "prompt_embedding_table"}
        text_out["OUT_PROMPT_EMBEDDING_TABLE"] = engine_in["prompt_embedding_table"] = "out_prompt_embedding_table"
        _drop(
            engine_in,
            *("return_kv_cache_reuse_stats", "num_return_sequences", "exclude_input_in_output"),
            *("prompt_table_extra_ids", "lora_task_id", "lora_weights", "lora_config"),
        )
        _drop(engine_out, "sequence_index", *_STATISTICS_016)
        engine_out |= {name: f"_{name.upper()}" for name in passed}
        answer_in |= {name.upper(): f"_{name.upper()}" for name in passed}
        answer_out |= {f"OUT_{name.upper()}": name for name in passed}
    steps = (
        {"in": text_in, "out": text_out},
        {"in": engine_in, "out": engine_out},
        {"in": answer_in, "out": answer_out},
    )
    return _of_0_9(*steps) if _number(tag) <= (0, 9, 0) else steps


def _of_0_9(
    text: dict[str, dict[str, str]], engine: dict[str, dict[str, str]], answer: dict[str, dict[str, str]]
) -> tuple[Maps, Maps, Maps]:
    """The maps of 0.12 without what came after 0.9."""
    _drop(text["in"], "DECODER_QUERY", "IMAGE", "PROMPT_EMBEDDING_TABLE")
    _drop(text["out"], "DECODER_INPUT_ID", "REQUEST_DECODER_INPUT_LEN", "OUT_PROMPT_EMBEDDING_TABLE")
    _drop(engine["in"], "decoder_input_ids", "decoder_input_lengths")
    engine["in"]["prompt_embedding_table"] = "prompt_embedding_table"
    _drop(engine["out"], "batch_index")
    _drop(answer["in"], "BATCH_INDEX")
    _drop(answer["out"], "OUT_BATCH_INDEX")
    return text, engine, answer


def _drop(mapping: dict[str, str], *names: str) -> None:
    for name in names:
        del mapping[name]


def _number(tag: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tag.split("."))


_TEXT_IN = {
    "QUERY": "text_input",
    "DECODER_QUERY": "decoder_text_input",
    "REQUEST_OUTPUT_LEN": "max_tokens",
    "BAD_WORDS_DICT": "bad_words",
    "STOP_WORDS_DICT": "stop_words",
    "EMBEDDING_BIAS_WORDS": "embedding_bias_words",
    "EMBEDDING_BIAS_WEIGHTS": "embedding_bias_weights",
    "END_ID": "end_id",
    "PAD_ID": "pad_id",
    "PROMPT_TABLE_EXTRA_ID": "prompt_table_extra_id",
}
_TEXT_OUT = (
    "REQUEST_INPUT_LEN", "INPUT_ID", "REQUEST_DECODER_INPUT_LEN", "DECODER_INPUT_ID", "REQUEST_OUTPUT_LEN",
    "STOP_WORDS_IDS", "BAD_WORDS_IDS", "EMBEDDING_BIAS", "OUT_PROMPT_TABLE_EXTRA_IDS",
)  # fmt: skip
_RENAMED_OUT = {"OUT_END_ID": "_PREPROCESSOR_END_ID", "OUT_PAD_ID": "_PREPROCESSOR_PAD_ID"}
_SAME_NAME = (
    "exclude_input_in_output", "temperature", "repetition_penalty", "min_length", "presence_penalty",
    "frequency_penalty", "random_seed", "return_log_probs", "return_context_logits", "return_generation_logits",
    "return_perf_metrics", "num_return_sequences", "beam_width", "prompt_embedding_table", "prompt_vocab_size",
    "lora_task_id", "lora_weights", "lora_config", "guided_decoding_guide_type", "guided_decoding_guide",
)  # fmt: skip
_ENGINE_IN_019 = {
    "input_ids": "_INPUT_ID",
    "decoder_input_ids": "_DECODER_INPUT_ID",
    "input_lengths": "_REQUEST_INPUT_LEN",
    "decoder_input_lengths": "_REQUEST_DECODER_INPUT_LEN",
    "request_output_len": "_REQUEST_OUTPUT_LEN",
    "end_id": "_PREPROCESSOR_END_ID",
    "pad_id": "_PREPROCESSOR_PAD_ID",
    "embedding_bias": "_EMBEDDING_BIAS",
    "runtime_top_k": "top_k",
    "runtime_top_p": "top_p",
    "len_penalty": "length_penalty",
    "streaming": "stream",
    "stop_words_list": "_STOP_WORDS_IDS",
    "bad_words_list": "_BAD_WORDS_IDS",
    "prompt_table_extra_ids": "_OUT_PROMPT_TABLE_EXTRA_IDS",
    **{name: name for name in _SAME_NAME},
}
_STATISTICS_016 = ("kv_cache_alloc_new_blocks", "kv_cache_reused_blocks", "kv_cache_alloc_total_blocks")
_STATISTICS_019 = (
    "arrival_time_ns", "first_scheduled_time_ns", "first_token_time_ns", "last_token_time_ns", "acceptance_rate",
    "total_accepted_draft_tokens", "total_draft_tokens",
)  # fmt: skip
