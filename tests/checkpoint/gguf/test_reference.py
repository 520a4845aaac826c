"""Against transformers, which reads GGUF files itself: the same weights, the same ids, the same logits.

The slow tests do so with the published SmolLM2 file.
"""

import hashlib
import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import from_checkpoint
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.gguf import import_gguf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.reference

GOLDEN = Path(__file__).parents[2] / "golden" / "smollm2_greedy.json"


@pytest.fixture(autouse=True)
def quiet() -> None:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)


def load(folder: Path, **options: object) -> "transformers.PreTrainedModel":
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **options).eval()


@pytest.mark.parametrize(
    "form", [{}, {"tied": True}, {"head_dim": 32, "kv_heads": 1}], ids=["grouped", "tied", "wide_heads"]
)
def test_weights_are_those_that_transformers_reads_from_the_same_file(tmp_path: Path, form: dict) -> None:
    file = from_checkpoint(write_llama(tmp_path / "source", **form), storage="Q8_0").write(tmp_path / "model.gguf")

    expected = load(tmp_path, gguf_file=file.name, dtype=torch.float32).state_dict()
    made = load(import_gguf(file, tmp_path / "out"), dtype=torch.float16).state_dict()

    assert set(made) == set(expected)
    for name, values in expected.items():
        assert torch.equal(made[name], values.to(torch.float16)), name


@pytest.mark.parametrize(
    "form",
    [
        {"attention_bias": True, "mlp_bias": True},
        {"head_dim": 64, "rope_theta": 500000.0, "rope_scaling": llama3_scaling()},
        {"rope_scaling": {"type": "linear", "factor": 4.0}},
    ],
    ids=["biases", "llama3", "linear"],
)
def test_logits_are_those_of_the_checkpoint_that_the_file_was_made_from(tmp_path: Path, form: dict) -> None:
    folder = write_llama(tmp_path / "source", **form)
    source = from_checkpoint(folder)
    reference = load(folder, dtype=torch.float32)
    scaling = form.get("rope_scaling", {})
    if scaling.get("type") == "linear":
        source.fields |= {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": scaling["factor"]}
    elif scaling:
        plain = 500000.0 ** (-torch.arange(0, 64, 2, dtype=torch.float32) / 64)
        source.tensors["rope_freqs.weight"] = (plain / reference.model.rotary_emb.inv_freq).numpy()

    made = load(import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out", dtype="float32"))

    ids = torch.randint(0, 300, (1, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(made(ids).logits, reference(ids).logits)


def test_the_tokenizer_class_of_transformers_takes_tokenizer_json_as_it_is(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source", layers=1, tokenizer="sentencepiece"))
    out = import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")

    tokenizer = transformers.AutoTokenizer.from_pretrained(out)

    expected = Tokenizer.from_file(str(out / "tokenizer.json"))
    for text in ("The capital", "  two spaces", "</s>Hello", "\n"):
        assert tokenizer(text).input_ids == expected.encode(text).ids
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (1, 2, 0)


@pytest.mark.slow
def test_the_file_is_the_one_that_the_goldens_were_made_from(smollm2_gguf: Path) -> None:
    digest = hashlib.sha256(smollm2_gguf.read_bytes()).hexdigest()
    assert digest == json.loads(GOLDEN.read_text())["gguf"]["sha256"]


@pytest.mark.slow
def test_smollm2_weights_equal_those_of_transformers_to_the_bit(smollm2: Path, smollm2_gguf: Path) -> None:
    expected = load(smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float16).state_dict()
    made = load(smollm2, dtype=torch.float16).state_dict()

    assert set(made) == set(expected)
    assert [name for name in expected if not torch.equal(made[name], expected[name])] == []


@pytest.mark.slow
def test_smollm2_ids_equal_those_of_transformers(smollm2: Path, smollm2_gguf: Path) -> None:
    expected = transformers.AutoTokenizer.from_pretrained(smollm2_gguf.parent, gguf_file=smollm2_gguf.name)
    # transformers does not know how the `smollm` vocabulary cuts text and takes GPT-2's way. The published
    # tokenizer.json has this, so that digits stand alone.
    expected.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made = transformers.AutoTokenizer.from_pretrained(smollm2)

    for text in texts(500):
        ids = made(text).input_ids
        assert ids == expected(text).input_ids, repr(text)
        assert made.decode(ids) == text
    assert made.chat_template == expected.chat_template


@pytest.mark.slow
def test_smollm2_prompts_have_the_ids_of_the_goldens(smollm2: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2)
    for case in json.loads(GOLDEN.read_text())["cases"]:
        assert tokenizer(case["prompt"]).input_ids == case["prompt_ids"], case["name"]
        if "messages" in case:
            rendered = tokenizer.apply_chat_template(case["messages"], tokenize=False, add_generation_prompt=True)
            assert rendered == case["prompt"]


def texts(count: int) -> list[str]:
    """Strings put together at random from what tokenizers stumble over; the same on every run."""
    parts = (
        "The", " capital", " of", "France", " ", "  ", "    ", "\n", "\n\n", "\t", "\r\n", "1", " 42", "2024-11-30",
        "3.14", "½", "٣", "def f(x):", " return", "{}", "[0]", "==", "!", "?!", "...", "'s", "don't", "I'LL", "naïve",
        "e\u0301", "你好", "世界", "日本語", "Привет", "مرحبا", "👋🏽", "🇩🇪", "👩\u200d💻", "<|im_start|>",
        "<|im_end|>", "<|endoftext|>", "<|im_start", "<repo_name>", "\u00a0", "\u3000", "\u200b", "\ufeff", "\x00", "Ġ",
        "https://a.b/c?d=e",
    )  # fmt: skip
    chosen = random.Random(0)
    return ["", *parts, *("".join(chosen.choices(parts, k=chosen.randint(2, 12))) for _ in range(count))]
