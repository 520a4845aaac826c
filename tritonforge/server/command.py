"""The tritonserver command line. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonforge.launch.command import Command
from tritonforge.server.options import ServerAddress, ServerOptions


def tritonserver_command(
    binary: Path,
    repository: Path,
    *,
    address: ServerAddress,
    models: Sequence[str],
    options: ServerOptions,
    backends: Path | None,
    env: Mapping[str, str],
) -> Command:
    """The command that serves `models` of `repository`.

    Args:
        binary: The tritonserver program.
        repository: The model repository, as the server sees it.
        address: Where to listen; all ports are chosen.
        models: Models to load at start. Others can be loaded later: control is explicit.
        options: The rest of what the user chose.
        backends: Folder with one folder per backend, or None for the server's own.
        env: Variables to set for it.
    """
    argv = [
        str(binary),
        f"--model-repository={repository}",
        "--model-control-mode=explicit",
        *(f"--load-model={model}" for model in models),
        # A model that does not load must not end the server: then the index could not be asked for the reason.
        "--exit-on-error=false",
        f"--exit-timeout-secs={round(options.exit_timeout_s)}",
        f"--grpc-address={address.host}",
        f"--grpc-port={address.grpc_port}",
        f"--http-address={address.host}",
        f"--http-port={address.http_port}",
        f"--metrics-address={address.host}",
        f"--metrics-port={address.metrics_port}",
        "--allow-gpu-metrics=false",
        f"--log-verbose={options.log_verbose}",
        *([f"--backend-directory={backends}"] if backends is not None else []),
    ]
    return Command(tuple(argv), env=env)
