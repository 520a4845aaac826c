"""Properties: what is dumped reads back the same, and no file brings the reader down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.spec.examples import TENSORRT_LLM, TWO_VERSIONS
from tritonforge.errors import SpecError
from tritonforge.spec.document import read_document
from tritonforge.spec.dump import dump_spec
from tritonforge.spec.forge import ForgeSpec
from tritonforge.spec.load import load_spec
from tritonforge.spec.schema import json_schema

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TRICKY = st.sampled_from(
    ["yes", "1e5", "12", "0x1", "null", "~", "- a", "a: b", "#", "&a", "*a", "!t", "'", '"', " x ", "\t"]
)
VALIDATOR = Draft202012Validator(json_schema())
COUNTS = st.integers(1, 1024)


def optional(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


LIMITS = optional(max_batch_size=COUNTS, max_input_len=st.integers(1, 4095), max_seq_len=st.integers(4096, 2**24))
OPENVINO = st.fixed_dictionaries(
    {"kind": st.just("openvino")},
    optional={
        "precision": st.sampled_from(["float32", "float16", "int8", "int4"]),
        "plugins": optional(context_fmha=st.booleans(), rotary_embedding=st.booleans()),
        "runtime": optional(
            num_threads=COUNTS | st.none(), kv_cache_gib=st.floats(1e-9, 4096), enable_prefix_caching=st.booleans()
        ),
    },
)
TRTLLM = st.fixed_dictionaries(
    {"kind": st.just("tensorrt_llm"), "release": st.sampled_from(["0.9.0", "0.17.0.post1", "1.2.1"])},
    optional={"tensor_parallel": COUNTS, "plugins": st.just({"rotary_embedding": False, "gpt_attention": "disable"})},
)
GROUP = optional(count=COUNTS) | st.just({"kind": "KIND_GPU", "gpus": [0, 3]})
SERVING = optional(
    instance_group=st.lists(GROUP, min_size=1, max_size=2),
    dynamic_batching=st.none()
    | optional(max_queue_delay_microseconds=st.integers(0, 10**6), preserve_ordering=st.booleans()),
    default_max_tokens=st.integers(1, 4000),
)
TESTS = st.lists(st.fixed_dictionaries({"prompt": WORDS | TRICKY}, optional={"contains": WORDS | TRICKY}), max_size=2)


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    versions = draw(
        st.dictionaries(
            st.integers(1, 2**31 - 1),
            st.fixed_dictionaries({"engine": OPENVINO | TRTLLM}, optional={"limits": LIMITS, "serving": SERVING}),
            min_size=1,
            max_size=3,
        )
    )
    model = {
        "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)),
        "checkpoint": draw(st.sampled_from(["./a b", "/c/é.gguf", "~/x", "yes", "1"])),
        "versions": versions,
    }
    model |= draw(optional(limits=LIMITS, serving=SERVING, tests=TESTS))
    if draw(st.booleans()):
        model["traffic"] = {number: draw(st.floats(0.5, 1e9)) for number in versions}
    return {"schema": 1, "repository": "./r", "models": [model]}


@QUICK
@given(specs())
def test_a_dumped_specification_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, written: dict[str, Any]
) -> None:
    spec = ForgeSpec.model_validate(written)
    path = tmp_path_factory.mktemp("dumped") / "forge.yaml"
    path.write_text(dump_spec(spec), encoding="utf-8")
    assert load_spec(path).spec == spec


@QUICK
@given(specs())
def test_the_schema_accepts_what_the_reader_accepts(written: dict[str, Any]) -> None:
    ForgeSpec.model_validate(written)
    VALIDATOR.validate(json.loads(json.dumps(written)))


JUNK = st.sampled_from(
    [
        "\t",
        "\n",
        "\0",
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        "- ",
        "#",
        "&a ",
        "*a ",
        "!!set ",
        "'",
        '"',
        "? ",
        "<<: ",
        "|",
        ">",
        "%",
        "@",
    ]
    + [
        "true",
        "null",
        ".nan",
        "9" * 50,
        "-1",
        "1e999",
        "é",
        "\u2028",
        "\x85",
        "\ud7ff",
        "schema",
        "kind: x",
        '"\\ud800"',
        "name: [",
        "  ",
    ]
)


@settings(QUICK, max_examples=200)
@given(st.sampled_from([TWO_VERSIONS, TENSORRT_LLM]), st.integers(0, 900), st.integers(0, 12), JUNK)
def test_a_damaged_file_never_brings_the_reader_down(
    tmp_path_factory: pytest.TempPathFactory, text: str, at: int, dropped: int, junk: str
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "forge.yaml"
    path.write_text(text[:at] + junk + text[at + dropped :], encoding="utf-8", newline="")
    try:
        load_spec(path)
    except SpecError as error:
        str(error).encode("utf-8")  # it can be printed
        assert str(error).startswith(str(path))


@QUICK
@given(st.binary(max_size=60))
def test_any_bytes_give_a_specification_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "forge.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError):
        load_spec(path)


@pytest.mark.parametrize("text", ["a\n'\x85:-", '"😀\x85', "'null\x85'\u2028", "\u2029 a: 'b'\n", "你好\u2028: 👋"])
def test_texts_with_separators_of_lines_survive(text: str) -> None:
    engine = {"kind": "vllm", "engine_args": {"a": text, "b": {text: [text]}}}
    model = {"name": "a", "checkpoint": "./c", "versions": {1: {"engine": engine}}}
    spec = ForgeSpec.model_validate({"schema": 1, "repository": "./r", "models": [model]})
    assert ForgeSpec.model_validate(read_document(dump_spec(spec)).value) == spec
