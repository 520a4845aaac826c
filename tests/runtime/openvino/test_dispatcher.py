"""The worker process for real, with an engine of two layers: batching, cancelling, dying and coming back."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_llama
from tests.support.engines import build_small, logits, small_spec
from tests.support.processes import wait_until
from tritonforge.runtime.openvino.dispatcher import Dispatcher, EngineDown
from tritonforge.runtime.openvino.protocol import Generation, Update

DEADLINE_S = 60.0
LONG = 900  # tokens: an answer that takes long enough to be interrupted
PROMPT = (5, 7, 11)


class Answer:
    """Collects the updates of one request."""

    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self.gone = False
        self.ids: list[int] = []
        self.log_probs: list[float] = []
        self.updates: list[Update] = []
        self._changed = threading.Condition()

    def is_cancelled(self) -> bool:
        return self.gone

    def update(self, update: Update) -> None:
        with self._changed:
            self.ids.extend(update.ids)
            self.log_probs.extend(update.log_probs)
            self.updates.append(update)
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE_S), f"no {what} after {DEADLINE_S} s"

    def begun(self) -> "Answer":
        self.wait_for(lambda: bool(self.ids), "first token")
        return self

    def last(self) -> Update:
        self.wait_for(lambda: bool(self.updates) and self.updates[-1].final, "end of the answer")
        return self.updates[-1]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("engine")
    source = write_llama(work / "hf", tokenizer=None, max_position=1024)
    return build_small(source, work / "engine", max_input_len=64, max_seq_len=1024).path


@pytest.fixture(scope="module")
def unfused_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("unfused")
    source = write_llama(work / "hf", tokenizer=None, max_position=1024)
    spec = small_spec(fused_attention=False)
    return build_small(source, work / "engine", spec=spec, max_input_len=64, max_seq_len=1024).path


@pytest.fixture(scope="module")
def shared(engine: Path) -> Iterator[Dispatcher]:
    yield from started(engine)


@pytest.fixture
def dispatcher(engine: Path) -> Iterator[Dispatcher]:
    """One of its own, for tests that end its worker."""
    yield from started(engine)


@pytest.fixture
def unfused(unfused_engine: Path) -> Iterator[Dispatcher]:
    yield from started(unfused_engine)


def started(folder: Path) -> Iterator[Dispatcher]:
    made = Dispatcher(folder, log=lambda line: None)
    made.start(deadline_s=DEADLINE_S)
    yield made
    made.close()


def ask(dispatcher: Dispatcher, generation: Generation, request_id: str = "") -> Answer:
    answer = Answer(request_id)
    dispatcher.submit(generation, answer)
    return answer


def greedy(folder: Path, prompt: tuple[int, ...], count: int) -> list[int]:
    """The answer by the plain graph, without cache and pipeline."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(logits(folder, ids)[-1].argmax()))
    return ids[len(prompt) :]


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has buried yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_tokens_are_those_of_the_plain_graph(shared: Dispatcher, engine: Path) -> None:
    answer = ask(shared, Generation(PROMPT, 6))
    assert answer.last().finish == "length"
    assert answer.ids == greedy(engine, PROMPT, 6)


def test_more_requests_than_the_batch_takes_are_all_answered(shared: Dispatcher) -> None:
    lengths = [1 + 7 * number % 23 for number in range(32)]  # max_batch_size is 4
    answers = [ask(shared, Generation((5, 7, 11 + number), length)) for number, length in enumerate(lengths)]
    assert [answer.last().finish for answer in answers] == ["length"] * 32
    assert [len(answer.ids) for answer in answers] == lengths


def test_a_request_answers_alike_alone_and_among_others(shared: Dispatcher) -> None:
    sampled = Generation(PROMPT, 12, greedy=False, temperature=5.0, seed=7)
    alone = ask(shared, sampled)
    alone.last()
    together = [ask(shared, sampled), ask(shared, Generation(PROMPT, 12, greedy=False, temperature=5.0, seed=8))]
    together += [ask(shared, sampled), ask(shared, Generation((9, 8), 20))]
    for answer in together:
        answer.last()
    assert together[0].ids == together[2].ids == alone.ids
    assert together[1].ids != alone.ids


def test_log_probabilities_come_with_each_token(shared: Dispatcher, engine: Path) -> None:
    answer = ask(shared, Generation(PROMPT, 4, log_probs=True))
    assert len(answer.last().ids) <= len(answer.ids) == len(answer.log_probs) == 4
    assert answer.updates[-1].cum_log_prob == pytest.approx(sum(answer.log_probs), abs=1e-4)
    scores = logits(engine, PROMPT)[-1].astype(np.float64)
    assert answer.log_probs[0] == pytest.approx(scores[answer.ids[0]] - np.log(np.exp(scores).sum()), abs=1e-3)


def test_a_stop_id_ends_the_answer_and_is_its_last_token(shared: Dispatcher, engine: Path) -> None:
    plain = greedy(engine, PROMPT, 6)
    answer = ask(shared, Generation(PROMPT, 50, stop_ids=[plain[3]]))
    assert answer.last().finish == "stop"
    assert answer.ids == plain[: plain.index(plain[3]) + 1]


def test_no_stop_id_comes_before_the_least_length(shared: Dispatcher, engine: Path) -> None:
    first = greedy(engine, PROMPT, 1)[0]
    answer = ask(shared, Generation(PROMPT, 8, stop_ids=[first], min_new_tokens=5))
    answer.last()
    assert len(answer.ids) >= 5
    assert first not in answer.ids[:5]


def test_a_stop_sequence_ends_the_answer(shared: Dispatcher, engine: Path) -> None:
    plain = greedy(engine, PROMPT, 6)
    answer = ask(shared, Generation(PROMPT, LONG, stop_sequences=[plain[1:4]]))
    assert answer.last().finish == "stop"
    assert answer.ids == plain[:4] or answer.ids[-3:] == plain[1:4]


def test_a_request_is_cancelled_by_its_id(shared: Dispatcher) -> None:
    answer = ask(shared, Generation(PROMPT, LONG), "mine").begun()
    other = ask(shared, Generation(PROMPT, 5), "other")
    assert shared.cancel("mine") == 1
    assert answer.last().finish == "cancelled"
    assert len(answer.ids) < LONG
    assert other.last().finish == "length"
    assert shared.cancel("mine") == 0


def test_a_waiting_request_is_cancelled_too(shared: Dispatcher) -> None:
    running = [ask(shared, Generation(PROMPT, LONG), "running") for _ in range(4)]
    waiting = ask(shared, Generation(PROMPT, LONG), "waiting")
    shared.cancel("waiting")
    assert waiting.last().finish == "cancelled"
    assert waiting.ids == []
    shared.cancel("running")
    assert {answer.last().finish for answer in running} == {"cancelled"}


def test_a_client_that_leaves_frees_the_engine(shared: Dispatcher) -> None:
    answer = ask(shared, Generation(PROMPT, LONG)).begun()
    answer.gone = True
    assert answer.last().finish == "cancelled"
    assert len(answer.ids) < LONG


def test_a_listener_that_fails_is_dropped_and_does_not_stop_the_others(shared: Dispatcher) -> None:
    class Failing(Answer):
        def update(self, update: Update) -> None:
            super().update(update)
            raise OSError("the client's socket is closed")

    failing = Failing()
    shared.submit(Generation(PROMPT, LONG), failing)
    assert ask(shared, Generation(PROMPT, 5)).last().finish == "length"
    assert failing.last().finish == "cancelled"


def test_a_killed_worker_fails_what_it_held_and_comes_back(dispatcher: Dispatcher) -> None:
    first_pid = dispatcher.worker_pid
    assert first_pid is not None
    held = [ask(dispatcher, Generation(PROMPT, LONG)).begun() for _ in range(2)]
    os.kill(first_pid, signal.SIGKILL)
    for answer in held:
        assert "worker process failed: it was ended by signal 9" in str(answer.last().error)
    assert ask(dispatcher, Generation(PROMPT, 3)).last().finish == "length"
    assert dispatcher.worker_pid != first_pid


def test_a_poisoned_step_fails_what_was_held_with_its_reason(dispatcher: Dispatcher) -> None:
    held = ask(dispatcher, Generation(PROMPT, LONG)).begun()
    # A generation that no checked request can be: the library takes it, and its step cannot.
    poison = ask(dispatcher, Generation("not ids", 5))  # type: ignore[arg-type]
    assert "worker process failed: ValueError" in str(held.last().error)
    assert poison.last().error == held.last().error
    assert ask(dispatcher, Generation(PROMPT, 3)).last().finish == "length"


def test_what_the_library_refuses_fails_alone(dispatcher: Dispatcher) -> None:
    held = ask(dispatcher, Generation(PROMPT, 20))
    refused = ask(dispatcher, Generation(PROMPT, 5, presence_penalty=5.0))
    assert "the engine refused the request: 'presence_penalty' penalty must be within" in str(refused.last().error)
    assert held.last().finish == "length"


def test_the_worker_ends_within_seconds_of_close(engine: Path) -> None:
    made = Dispatcher(engine, log=lambda line: None)
    made.start(deadline_s=DEADLINE_S)
    pid = made.worker_pid
    answer = ask(made, Generation(PROMPT, LONG)).begun()
    begun = time.monotonic()
    made.close()
    assert time.monotonic() - begun < 5
    assert pid is not None
    assert gone(pid)
    assert "closing" in str(answer.last().error)
    with pytest.raises(EngineDown, match="closing"):
        made.submit(Generation(PROMPT, 1), Answer())


def test_the_worker_dies_with_a_killed_model(engine: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from tritonforge.runtime.openvino.dispatcher import Dispatcher\n"
        "made = Dispatcher(Path(sys.argv[1]), log=lambda line: None); made.start(deadline_s=60)\n"
        "print(made.worker_pid, flush=True); time.sleep(60)"
    )
    model = subprocess.Popen([sys.executable, "-c", script, str(engine)], stdout=subprocess.PIPE, text=True)
    assert model.stdout is not None
    with model.stdout:
        worker_pid = int(model.stdout.readline())
        assert not gone(worker_pid)
        model.kill()
        model.wait()
    wait_until(lambda: gone(worker_pid), "end of the worker")


def test_an_engine_that_cannot_be_loaded_says_why(engine: Path, tmp_path: Path) -> None:
    broken = tmp_path / "engine"
    broken.mkdir()
    (broken / "engine.json").write_text((engine / "engine.json").read_text())
    made = Dispatcher(broken, log=lambda line: None)
    with pytest.raises(EngineDown, match="worker process failed: Could not find a model in the directory"):
        made.start(deadline_s=DEADLINE_S)


def test_an_engine_of_a_newer_kind_is_refused(engine: Path, tmp_path: Path) -> None:
    settings = json.loads((engine / "engine.json").read_text())
    (tmp_path / "engine.json").write_text(json.dumps({**settings, "schema_version": 2}))
    with pytest.raises(EngineDown, match="schema_version 2; expected kind 'openvino', schema_version 1"):
        Dispatcher(tmp_path, log=lambda line: None).start(deadline_s=DEADLINE_S)


def test_an_unfused_engine_answers_one_after_the_other(unfused: Dispatcher, engine: Path) -> None:
    plain = greedy(engine, PROMPT, 6)
    answers = [ask(unfused, Generation(PROMPT, 6)) for _ in range(3)]
    stopped = ask(unfused, Generation(PROMPT, 50, stop_ids=[plain[3]]))
    sequence = ask(unfused, Generation(PROMPT, LONG, stop_sequences=[plain[1:4]]))
    assert [answer.last().finish for answer in answers] == ["length"] * 3
    assert [answer.ids for answer in answers] == [plain] * 3
    assert (stopped.last().finish, sequence.last().finish) == ("stop", "stop")
    assert stopped.ids == plain[: plain.index(plain[3]) + 1]
    assert sequence.ids[-3:] == plain[1:4]


def test_an_unfused_engine_cancels_running_and_waiting_requests(unfused: Dispatcher) -> None:
    running = ask(unfused, Generation(PROMPT, LONG), "first").begun()
    waiting = ask(unfused, Generation(PROMPT, LONG), "second")
    unfused.cancel("second")
    unfused.cancel("first")
    assert (running.last().finish, waiting.last().finish) == ("cancelled", "cancelled")
    assert len(running.ids) < LONG
    assert waiting.ids == []
