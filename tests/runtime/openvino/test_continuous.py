"""The paged engine in this process, with a cache so small that requests get in each other's way."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tests.support.engines import build_small, small_spec
from tritonforge.runtime.openvino.continuous import ContinuousEngine
from tritonforge.runtime.openvino.protocol import Generation, Update
from tritonforge.runtime.openvino.settings import EngineSettings

SMALL_BLOCKS = 4
SMALL_TOKENS = 128


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("engine")
    return build_small(write_llama(work / "hf", tokenizer=None), work / "engine", spec=small_spec()).path


def load(folder: Path, **changes: object) -> ContinuousEngine:
    return ContinuousEngine(folder, dataclasses.replace(EngineSettings.read(folder), **changes))


def run(engine: ContinuousEngine, generations: Sequence[Generation]) -> tuple[dict[int, list[Update]], int]:
    """Answer all; returns the updates of each, and how many were under way at most."""
    updates: dict[int, list[Update]] = {key: [] for key in range(len(generations))}
    most = 0

    def note(news: Sequence[Update]) -> None:
        nonlocal most
        for update in news:
            updates[update.key].append(update)
        begun = [answer for answer in updates.values() if answer]
        most = max(most, sum(not answer[-1].final for answer in begun))

    for key, generation in enumerate(generations):
        engine.submit(key, generation)
    while engine.busy:
        engine.step(note)
    return updates, most


def ids(updates: Sequence[Update]) -> list[int]:
    return [token for update in updates for token in update.ids]


def test_requests_beyond_the_batch_wait(folder: Path) -> None:
    updates, most = run(load(folder, max_batch_size=2), [Generation([5, 7], 4 + key) for key in range(5)])
    assert most == 2
    assert [len(ids(updates[key])) for key in range(5)] == [4, 5, 6, 7, 8]


def test_requests_that_push_each_other_out_of_the_cache_are_all_answered(folder: Path) -> None:
    prompts = [[5 + key] * 40 for key in range(8)]
    small = load(folder, max_batch_size=8, kv_cache_blocks=SMALL_BLOCKS)
    updates, _ = run(small, [Generation(prompt, 60) for prompt in prompts])
    assert [updates[key][-1].finish for key in updates] == ["length"] * 8
    alone, _ = run(load(folder), [Generation(prompts[3], 60)])
    assert ids(updates[3]) == ids(alone[0])


def test_a_request_that_can_never_fit_ends_with_the_limit(folder: Path) -> None:
    small = load(folder, kv_cache_blocks=SMALL_BLOCKS, kv_cache_tokens=SMALL_TOKENS)
    updates, _ = run(small, [Generation([5] * 10, SMALL_TOKENS)])
    assert str(updates[0][-1].error).startswith("the KV cache holds 128 tokens, too few for this request")
    again, _ = run(small, [Generation([5] * 10, 5)])
    assert again[0][-1].finish == "length"


def test_a_cached_prompt_answers_like_a_new_one(folder: Path) -> None:
    engine = load(folder, enable_prefix_caching=True)
    generation = Generation(list(range(5, 69)), 8)
    first, _ = run(engine, [generation])
    second, _ = run(engine, [generation])
    assert ids(first[0]) == ids(second[0])


def test_prompts_that_begin_with_each_other_are_answered_as_alone(folder: Path) -> None:
    """Each prompt is the beginning of the next: none may be served from a block that another one still fills."""
    prompts = [[5 + token % 90 for token in range(length)] for length in (33, 36, 40, 45, 60, 62, 70, 90)]
    alone = [ids(run(load(folder), [Generation(prompt, 12)])[0][0]) for prompt in prompts]
    engine = load(folder, max_batch_size=8, kv_cache_blocks=64, kv_cache_tokens=64 * 32)

    for turn in range(6):
        order = [(number * 3 + turn) % len(prompts) for number in range(len(prompts))]
        together, _ = run(engine, [Generation(prompts[number], 12) for number in order])
        assert [ids(together[key]) for key in range(len(order))] == [alone[number] for number in order]
