"""Publishing, traffic, loading and unloading on a server that goes on serving."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.conftest import EXACT, ROUNDED, Served, spec_text
from tests.support.processes import model_processes, wait_until
from tritonforge.client import Client
from tritonforge.errors import ModelNotReady, PublishFailed, TritonforgeError
from tritonforge.pipeline.traffic import change_traffic

pytestmark = pytest.mark.triton


@contextmanager
def questions(served: Served, model: str, *, clients: int = 3) -> Iterator[list[int | TritonforgeError | None]]:
    """A load on one model; yields the versions that answer, and the errors, as they come."""
    answers: list[int | TritonforgeError | None] = []
    leaving = threading.Event()

    def ask_on() -> None:
        with Client(served.server.grpc_url) as client:
            while not leaving.is_set():
                try:
                    answers.append(client.generate(model, "once upon a time", max_tokens=12).engine_version)
                except TritonforgeError as error:
                    answers.append(error)

    threads = [threading.Thread(target=ask_on, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        leaving.set()
        for thread in threads:
            thread.join(60.0)


def test_two_models_are_served_from_one_repository(grpc_client: Client) -> None:
    ready = {model.name for model in grpc_client.models() if model.state == "READY"}

    assert {"tale", "tale_engine_v1", "tale_engine_v2", "glm", "glm_engine_v1"} <= ready


def test_traffic_moves_under_load_without_a_failed_request(served: Served) -> None:
    engines = model_processes(served.server.pid, "tale_engine_v1")

    with questions(served, "tale") as answers:
        wait_until(lambda: len(answers) >= 10)
        change_traffic(served.repository, "tale", {2: 100}, server=served.server.grpc_url)
        moved_at = len(answers)
        wait_until(lambda: len(answers) >= moved_at + 20)
        change_traffic(served.repository, "tale", {1: 100}, server=served.server.grpc_url)

    assert not [answer for answer in answers if isinstance(answer, TritonforgeError)]
    assert set(answers[:10]) == {1}
    assert set(answers[moved_at + 5 : moved_at + 20]) == {2}  # the first ones were asked before the change
    assert model_processes(served.server.pid, "tale_engine_v1") == engines != set()


def test_new_version_is_published_without_a_reload_of_the_old(
    served: Served, grpc_client: Client, tiny_llama: Path, tiny_chatglm: Path
) -> None:
    before = served.spec.read_text()
    engines = model_processes(served.server.pid, "glm_engine_v1")
    served.rewrite(spec_text(tiny_llama, tiny_chatglm, glm_versions=f"1: {EXACT}\n      2: {ROUNDED}"))

    with questions(served, "glm") as answers:
        result = served.build()
    served.rewrite(before)

    assert {(v.model, v.version): v.state for v in result.versions}[("glm", 2)] == "new"
    assert set(answers) == {1}  # no request failed, and the new version has no traffic yet
    assert grpc_client.generate("glm", "once", max_tokens=2, version=2).engine_version == 2
    assert model_processes(served.server.pid, "glm_engine_v1") == engines != set()


def test_build_keeps_the_traffic_in_force_until_it_is_told_otherwise(served: Served, grpc_client: Client) -> None:
    change_traffic(served.repository, "tale", {2: 100}, server=served.server.grpc_url)

    kept = served.build().traffic["tale"]
    answered_by = grpc_client.generate("tale", "once", max_tokens=2).engine_version
    applied = served.build(traffic=True).traffic["tale"]

    assert (kept, answered_by) == ({1: 0, 2: 100, 3: 0}, 2)
    assert applied == {1: 100, 2: 0, 3: 0}
    assert grpc_client.generate("tale", "once", max_tokens=2).engine_version == 1


def test_version_that_fails_its_test_is_not_published(served: Served, tiny_llama: Path, tiny_chatglm: Path) -> None:
    before = served.spec.read_text()
    files = tree(served.repository)
    tests = '\n    tests: [{prompt: "once", max_tokens: 2, contains: "words that no random weights would say"}]\n'
    served.rewrite(spec_text(tiny_llama, tiny_chatglm, glm_versions=f"1: {EXACT}\n      3: {ROUNDED}") + tests)

    with pytest.raises(PublishFailed, match="version 3 fails test 1"):
        served.build()
    served.rewrite(before)

    assert tree(served.repository) == files
    with Client(served.server.grpc_url) as client:
        assert client.generate("glm", "once", max_tokens=2).engine_version == 1
        assert not client.model_ready("glm_engine_v3")


def test_unloaded_model_says_so_and_comes_back(client: Client) -> None:
    client.unload("tale_engine_v2")
    wait_until(lambda: not client.model_ready("tale_engine_v2"))

    with pytest.raises(TritonforgeError, match="tale_engine_v2"):
        client.generate("tale", "once", max_tokens=2, version=2)

    client.load("tale_engine_v2")
    client.wait_ready("tale_engine_v2")
    assert client.generate("tale", "once", max_tokens=2, version=2).engine_version == 2


def test_unloaded_gateway_is_not_ready(client: Client) -> None:
    client.unload("glm")
    wait_until(lambda: not client.model_ready("glm"))
    try:
        with pytest.raises(ModelNotReady):
            client.generate("glm", "once", max_tokens=2)
    finally:
        client.load("glm")
        client.wait_ready("glm")


def tree(folder: Path) -> set[tuple[str, int]]:
    """All files below a folder, with their sizes."""
    return {(str(path.relative_to(folder)), path.stat().st_size) for path in folder.rglob("*") if path.is_file()}
