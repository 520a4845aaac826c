"""Start the embedded Triton on a model repository, and end it well."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tritonforge.errors import RepositoryError, ServerError, ServerExited, did_you_mean
from tritonforge.launch.command import Command
from tritonforge.launch.process import Process, process_start
from tritonforge.places import forge_folder
from tritonforge.server.claim import claimed, write_holder
from tritonforge.server.command import tritonserver_command
from tritonforge.server.embedded import (
    Installation,
    backend_directory,
    check_path,
    default_cache,
    find_installation,
    find_libpython,
    library_path,
)
from tritonforge.server.options import ServerAddress, ServerOptions
from tritonforge.server.ports import choose_address
from tritonforge.server.ready import wait_until_ready
from tritonforge.server.state import (
    ServerState,
    remove_state,
    write_state,
)

# What tritonserver needs beyond its own exit timeout to unload models and write its last lines.
STOP_MARGIN_S = 10.0


class RunningServer:
    """A server that this process started and owns. Leaving the context stops it.

    Args:
        repository: What it serves.
        process: Its process.
        address: Where it answers.
        models: The models that were loaded at start.
        ready_after_s: Seconds from start to ready.
    """

    def __init__(
        self,
        repository: Path,
        process: Process,
        address: ServerAddress,
        *,
        models: tuple[str, ...],
        ready_after_s: float,
    ) -> None:
        self.repository = repository
        self.address = address
        self.models = models
        self.ready_after_s = ready_after_s
        self._process = process
        self._stopped_with: int | None = None

    @property
    def grpc_url(self) -> str:
        """``host:port`` of the gRPC endpoint."""
        return self.address.grpc_url

    @property
    def http_url(self) -> str:
        """``http://host:port`` of the HTTP endpoint."""
        return self.address.http_url

    @property
    def metrics_url(self) -> str:
        """URL of the Prometheus metrics."""
        return self.address.metrics_url

    @property
    def pid(self) -> int:
        """Process id of tritonserver."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """Its log file."""
        return self._process.log

    def returncode(self) -> int | None:
        """Exit code, or None while it runs."""
        return self._process.returncode()

    def wait(self) -> NoReturn:
        """Wait for as long as the server runs.

        Raises:
            ServerExited: It has ended by itself.
        """
        raise ServerExited(self._process.wait(), tail=self._process.tail(), log=self.log)

    def stop(self) -> int:
        """Let requests under way finish, then end the server; returns its exit code. Does nothing the second time."""
        if self._stopped_with is None:
            try:
                self._stopped_with = self._process.stop()
            finally:
                remove_state(self.repository, pid=self.pid)
        return self._stopped_with

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_embedded(repository: Path, *, options: ServerOptions | None = None) -> RunningServer:
    """Start the embedded Triton on `repository` and wait until every wanted model is ready.

    Args:
        repository: Folder with one folder per model.
        options: Ports, models, deadlines; the defaults of `ServerOptions` when None.

    Raises:
        ToolMissing: nvidia-pytriton or libpython is not installed.
        RepositoryError: The repository does not exist, is empty, or lacks a wanted model.
        PortTaken: A port is in use.
        NotReady: A model was not ready, with the server's reason. The server has been stopped.
        ServerExited: The server ended early, with the end of its log.
        ServerError: The repository is served already, or this machine or its file system does not allow it.
    """
    options = options or ServerOptions()
    repository = repository.absolute()
    models = wanted_models(repository, options.models)
    check_path(repository)
    with claimed(repository) as lock, contextlib.ExitStack() as undo:
        command, address = _prepare(repository, models, options)
        process = _start(command, repository, options, lock)
        undo.callback(process.stop)
        write_holder(lock, process.pid)
        started_ticks = process_start(process.pid) or 0
        after_s = wait_until_ready(process, address.http_url, models=models, timeout_s=options.ready_timeout_s)
        write_state(repository, ServerState(address, process.pid, started_ticks, process.log))
        undo.pop_all()
    return RunningServer(repository, process, address, models=models, ready_after_s=after_s)


def wanted_models(repository: Path, models: tuple[str, ...] | None) -> tuple[str, ...]:
    """The models to load at start: those asked for, or every folder of the repository that is not hidden, sorted.

    Raises:
        RepositoryError: The repository does not exist or is empty, or a model asked for is not in it.
    """
    build = "tritonforge build writes a repository from forge.yaml"
    if not repository.is_dir():
        raise RepositoryError(f"{repository}: no such model repository", hint=build)
    present = sorted(entry.name for entry in repository.iterdir() if entry.is_dir() and entry.name[0] != ".")
    if models is None:
        if not present:
            raise RepositoryError(f"{repository} holds no model", hint=build)
        return tuple(present)
    for model in models:
        if model not in present:
            hint = did_you_mean(model, present) or f"models there: {', '.join(present) or 'none'}"
            raise RepositoryError(f"{repository} has no model {model!r}", hint=hint)
    return models


def _prepare(repository: Path, models: tuple[str, ...], options: ServerOptions) -> tuple[Command, ServerAddress]:
    installation = find_installation()
    env = _environment(installation)
    backends = backend_directory(installation, options.cache or default_cache())
    address = choose_address(options)
    command = tritonserver_command(
        installation.binary,
        repository,
        address=address,
        models=models,
        options=options,
        backends=backends,
        env=env,
    )
    return command, address


def _start(command: Command, repository: Path, options: ServerOptions, lock: int) -> Process:
    log = options.log or forge_folder(repository) / "logs" / "tritonserver.log"
    try:
        return Process(command, log=log, grace_s=options.exit_timeout_s + STOP_MARGIN_S, pass_fds=(lock,))
    except OSError as error:
        raise ServerError(f"{error.filename or command.argv[0]}: {error.strerror}", hint=f"log file: {log}") from error


def _environment(installation: Installation) -> Mapping[str, str]:
    """Variables by which the python backend's stub runs as this Python, with the packages of this environment."""
    # An embedded interpreter finds its environment through the first `python3` on PATH; a command that is run by its
    # full path has no activated environment there.
    scripts = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath)
    return {
        "LD_LIBRARY_PATH": library_path(installation, find_libpython()),
        "PATH": f"{scripts}:{path}",
    }
