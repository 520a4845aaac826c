"""The rules for checkpoints as data: well formed, and applied to the lines that they name."""

import string
from collections.abc import Mapping

import pytest

from tritonforge.releases.checkpoint_rules import CheckpointRule, checkpoint_rules, config_features, judge
from tritonforge.releases.files import read_data
from tritonforge.releases.table import all_lines, find_release, version_key

FACTS: Mapping[str, object] = {
    "family": "llama",
    "chatglm_version": None,
    "attention_bias": False,
    "own_head_size": False,
    "rotary": "none",
    "rotary_type_key": False,
    "rotary_factor_above_1": False,
    "tp_above_1": True,
    "pp_above_1": True,
    "heads_divide": True,
    "kv_heads_divide": True,
    "kv_heads_repeated": False,
    "width_divides": True,
    "hidden_divides": True,
    "vocab_divides": True,
    "layers_divide": True,
    "stages_filled": True,
    "embedding_sharding": "none",
    "precision": None,
    "kv_cache": "auto",
    "tied": False,
}
VALUES = {
    "tp": 2,
    "pp": 2,
    "heads": 4,
    "kv_heads": 2,
    "width": 96,
    "hidden": 64,
    "vocab": 131,
    "layers": 5,
    "kept_layers": 4,
    "factor": "2",
}


@pytest.mark.parametrize("rule", checkpoint_rules(), ids=lambda rule: rule.name)
def test_a_rule_is_well_formed(rule: CheckpointRule) -> None:
    assert rule.effect in ("refuse", "note")
    assert rule.evidence in ("run", "read", "inferred", "memory")
    assert rule.when.keys() <= FACTS.keys()
    assert {field for _, field, _, _ in string.Formatter().parse(rule.text) if field} <= {"release", *VALUES}
    lines = [version_key(line) for line in all_lines()]
    for border in (rule.since, rule.until):
        assert border is None or version_key(border) in lines
    assert "\n" not in rule.text.strip()


def test_names_of_rules_and_features_differ() -> None:
    names = [rule.name for rule in checkpoint_rules()]
    assert len(set(names)) == len(names)
    features = [row["feature"] for row in read_data("checkpoint_rules")["config"]]
    assert len(set(features)) == len(features)


def test_a_plain_llama_is_fine_in_every_line() -> None:
    for line in all_lines():
        assert judge(find_release(f"{line}.0"), FACTS, VALUES).refusals == ()


@pytest.mark.parametrize(
    ("facts", "refused_in"),
    [
        ({"layers_divide": False}, ("0.9", "0.21")),
        ({"attention_bias": True}, ("0.9", "0.11")),
        ({"rotary": "llama3"}, ("0.9", "0.11")),
        ({"rotary": "linear", "rotary_factor_above_1": True}, ("0.9", "0.10")),
        ({"rotary": "linear", "rotary_type_key": True}, ("0.9", "0.10")),
        ({"embedding_sharding": "hidden"}, ("0.9", "0.9")),
        ({"embedding_sharding": "vocab", "vocab_divides": False}, ("0.9", "0.11")),
        ({"family": "chatglm", "vocab_divides": False, "pp_above_1": False}, ("0.9", "1.2")),
    ],
)
def test_a_rule_holds_for_its_lines_only(facts: dict[str, object], refused_in: tuple[str, str]) -> None:
    first, last = (version_key(line) for line in refused_in)
    for line in all_lines():
        refusals = judge(find_release(f"{line}.0"), {**FACTS, **facts}, VALUES).refusals
        assert bool(refusals) == (first <= version_key(line) <= last), (line, refusals)


@pytest.mark.parametrize(
    ("facts", "text", "noted_in"),
    [
        ({"precision": "int8_smoothquant"}, "a preview of TensorRT-LLM 0.16", ("0.17", "1.2")),
        ({"precision": "int8_smoothquant", "family": "chatglm"}, "a preview of TensorRT-LLM 0.16", ("0.17", "1.2")),
        ({"precision": "int8_smoothquant"}, "as TensorRT-LLM 0.12, 0.14 and", ("0.9", "0.11")),
        ({"kv_heads_repeated": True, "attention_bias": True}, "heads with biases are repeated", ("0.14", "0.16")),
        ({"tied": True}, "fails on the last stage of a tied model", ("0.16", "1.2")),
        ({"tied": True, "pp_above_1": False}, "fails where it is not stored", ("0.12", "0.15")),
    ],
)
def test_a_note_is_given_for_its_lines_only(facts: dict[str, object], text: str, noted_in: tuple[str, str]) -> None:
    first, last = (version_key(line) for line in noted_in)
    for line in all_lines():
        notes = judge(find_release(f"{line}.0"), {**FACTS, "tp_above_1": False, **facts}, VALUES).notes
        assert any(text in note for note in notes) == (first <= version_key(line) <= last), (line, notes)


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("ChatGLM in stages", "inferred"),
        ("query heads do not divide", "read"),
        ("key and value heads neither divide nor repeat", "read"),
        ("SmoothQuant of a later line", "inferred"),
        ("repeated heads with biases", "run"),
        ("tied embedding in stages", "read"),
    ],
)
def test_a_rule_is_marked_no_stronger_than_it_is_known(name: str, evidence: str) -> None:
    assert {rule.name: rule.evidence for rule in checkpoint_rules()}[name] == evidence


def test_config_json_of_a_line_has_its_features() -> None:
    chatglm, llama = {"rope_ratio", "chatglm_for_causal_lm"}, {"kv_dtype", "flat_moe", "exclude_lm_head"}
    for release, expected in {
        "0.9.0": chatglm | llama,
        "0.11.0": chatglm,
        "0.14.0": set(),
        "0.16.0": {"rotary_embedding_dim"},
    }.items():
        found = config_features(find_release(release))
        assert found & (chatglm | llama | {"rotary_embedding_dim"}) == expected
