import pytest

from tritonforge.client.advice import explain
from tritonforge.client.readiness import ReadyWait
from tritonforge.client.types import ModelInfo
from tritonforge.errors import ModelNotFound, ModelNotReady, NotReady

FAILED = ModelInfo("a", "2", "UNAVAILABLE", "Internal: no weights\n")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def wait_for(model: str, version: str = "") -> tuple[ReadyWait, Clock]:
    clock = Clock()
    return ReadyWait(model, version, server="host:1", timeout_s=10, clock=clock), clock


def test_the_deadline_says_what_the_server_said_last():
    wait, clock = wait_for("a")
    wait.look_at([ModelInfo("a", "1", "LOADING", ""), ModelInfo("b", "1", "READY", "")])
    clock.now_s += 10
    with pytest.raises(NotReady, match="model a at host:1 not ready after 10 s: loading"):
        wait.remaining_s()


def test_a_server_that_never_answered_is_the_reason():
    wait, clock = wait_for("a", "3")
    clock.now_s += 11
    with pytest.raises(NotReady, match="model a version 3 at host:1 .*: the server does not answer"):
        wait.remaining_s()


def test_a_failed_load_ends_the_wait_at_once():
    wait, _ = wait_for("a")
    with pytest.raises(ModelNotReady, match="model 'a' version 2 could not be loaded: Internal: no weights"):
        wait.look_at([FAILED])


def test_a_failure_of_another_version_does_not_matter():
    wait, _ = wait_for("a", "1")
    wait.look_at([FAILED])
    assert wait.remaining_s() == 10


def test_delays_grow_but_stay_within_the_deadline():
    wait, clock = wait_for("a")
    delays = [wait.next_delay_s() for _ in range(20)]
    assert delays == sorted(delays)
    assert delays[-1] == 0.5
    clock.now_s += 9.9
    assert wait.next_delay_s() == pytest.approx(0.1)


def refusal(kind: type, detail: str) -> ModelNotFound | ModelNotReady:
    return kind(detail, server="host:1", status="NOT_FOUND")


def test_a_misspelt_model_points_at_the_nearest():
    error = refusal(ModelNotFound, "Request for unknown model: 'smolm2' is not found")
    explain(error, [ModelInfo("smollm2", "1", "READY", ""), ModelInfo("b", "1", "READY", "")])
    assert error.hint == "did you mean 'smollm2'?"


def test_a_missing_version_lists_those_that_are_ready():
    error = refusal(ModelNotFound, "Request for unknown model: 'a' version 9 is not found")
    explain(error, [ModelInfo("a", "1", "READY", ""), ModelInfo("a", "3", "READY", "")])
    assert error.hint == "versions there: 1, 3"


def test_a_model_that_failed_gives_the_servers_reason():
    error = refusal(ModelNotReady, "Request for unknown model: 'a' has no available versions")
    explain(error, [FAILED])
    assert error.hint == "the server could not load version 2: Internal: no weights"


def test_an_unloaded_model_says_so():
    error = refusal(ModelNotReady, "Request for unknown model: 'a' has no available versions")
    explain(error, [ModelInfo("a", "1", "UNAVAILABLE", "unloaded")])
    assert error.hint == "it is unloaded; load it first"
