"""Every kind of bad input gets one clear error that names the field, the value and the limit; nothing hangs."""

from __future__ import annotations

from typing import Any

import pytest

from tritonforge.client import Client
from tritonforge.errors import InvalidRequest, ModelNotFound, Rejected, TritonforgeError

pytestmark = pytest.mark.triton

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("empty prompt", {"prompt": ""}, "text_input"),
    ("prompt too long", {"prompt": "word " * 2000}, "256"),
    ("answer too long", {"prompt": "a", "max_tokens": 5000}, "2048"),
    ("no tokens", {"prompt": "a", "max_tokens": 0}, "max_tokens"),
    ("negative tokens", {"prompt": "a", "max_tokens": -3}, "-3"),
    ("negative temperature", {"prompt": "a", "temperature": -0.5}, "temperature"),
    ("temperature not a number", {"prompt": "a", "temperature": float("nan")}, "temperature"),
    ("top_p above 1", {"prompt": "a", "top_p": 1.5}, "top_p"),
    ("negative top_k", {"prompt": "a", "top_k": -1}, "top_k"),
    ("repetition penalty of 0", {"prompt": "a", "repetition_penalty": 0.0}, "repetition_penalty"),
    ("minimum above maximum", {"prompt": "a", "max_tokens": 4, "min_length": 9}, "min_length"),
    ("unknown version", {"prompt": "a", "version": 9}, "1, 2, 3"),
    ("no messages", {"messages": []}, "messages"),
    ("message without a role", {"messages": [{"content": "a"}]}, "role"),
    (
        "bad words on an engine without them",
        {"prompt": "a", "bad_words": ["b"]},
        "bad_words is given; engine version 1",
    ),
]


@pytest.mark.parametrize(("fields", "named"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_bad_field_is_named(client: Client, fields: dict[str, Any], named: str, stream: bool) -> None:
    options = {"max_tokens": 4, **fields}
    prompt = options.pop("prompt", None)

    with pytest.raises(TritonforgeError) as caught:
        if stream:
            list(client.stream("tale", prompt, timeout_s=20.0, **options))
        else:
            client.generate("tale", prompt, timeout_s=20.0, **options)

    assert named in str(caught.value)


def test_role_without_a_token_of_its_own_is_named(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="nobody"):
        client.generate("glm", messages=[{"role": "nobody", "content": "hello"}])


def test_server_goes_on_after_bad_requests(client: Client) -> None:
    with pytest.raises(InvalidRequest):
        client.generate("tale", "a", max_tokens=-1)

    assert client.generate("tale", "a", max_tokens=2).completion_tokens == 2


def test_unknown_model_is_not_found_and_the_nearest_is_named(client: Client) -> None:
    with pytest.raises(ModelNotFound) as caught:
        client.generate("tael", "a")

    assert "tale" in str(caught.value.hint)


def test_engine_refuses_ids_outside_its_vocabulary(grpc_client: Client) -> None:
    import numpy as np

    one = np.ones((1, 1), dtype=np.int32)
    inputs = {"input_ids": np.full((1, 3), 10**6, np.int32), "input_lengths": one * 3, "request_output_len": one}

    with pytest.raises(Rejected, match="input_ids"):
        list(grpc_client.infer_stream("tale_engine_v1", inputs))
