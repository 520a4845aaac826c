from pathlib import Path

from tritonforge.launch.command import Command
from tritonforge.server.command import tritonserver_command
from tritonforge.server.options import ServerAddress, ServerOptions

ADDRESS = ServerAddress("127.0.0.1", 18001, 18000, 18002)


def make(**chosen: object) -> Command:
    arguments: dict[str, object] = {"models": ["a"], "options": ServerOptions(), "backends": None, "env": {}} | chosen
    return tritonserver_command(Path("/opt/tritonserver"), Path("/models of mine"), address=ADDRESS, **arguments)


def test_a_path_with_blanks_stays_one_argument():
    assert "--model-repository=/models of mine" in make().argv


def test_control_is_explicit_and_each_model_is_named():
    argv = make(models=["a", "b"]).argv
    assert "--model-control-mode=explicit" in argv
    assert [argument for argument in argv if argument.startswith("--load-model")] == [
        "--load-model=a",
        "--load-model=b",
    ]


def test_all_three_endpoints_are_bound_to_the_host():
    argv = make().argv
    for endpoint, port in (("grpc", 18001), ("http", 18000), ("metrics", 18002)):
        assert f"--{endpoint}-address=127.0.0.1" in argv
        assert f"--{endpoint}-port={port}" in argv


def test_the_backend_folder_is_passed_when_there_is_one():
    assert not any(argument.startswith("--backend-directory") for argument in make().argv)
    assert "--backend-directory=/cache/b" in make(backends=Path("/cache/b")).argv


def test_a_server_on_all_addresses_is_reached_by_loopback():
    address = ServerAddress("0.0.0.0", 1, 2, 3)
    assert (address.grpc_url, address.http_url, address.metrics_url) == (
        "127.0.0.1:1",
        "http://127.0.0.1:2",
        "http://127.0.0.1:3/metrics",
    )
    assert ServerAddress("::", 1, 2, 3).grpc_url == "[::1]:1"
