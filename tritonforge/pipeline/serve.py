"""A repository as it is to be, then a server on it."""

from __future__ import annotations

from pathlib import Path

from tritonforge.repository.publish import recover
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions


def serve(repository: Path, *, options: ServerOptions | None = None) -> RunningServer:
    """Undo what a killed build left half published, then start the embedded Triton and wait until it is ready.

    Args:
        repository: The model repository.
        options: How the server is started; the defaults of `ServerOptions` when None.

    Returns:
        The server, which its context stops.

    Raises:
        RepositoryError: The repository does not exist, is empty, cannot be put back, or is being changed.
        ServerError: The server could not be started, or a model did not become ready.
        ToolMissing: nvidia-pytriton or libpython is not installed.
    """
    recover(repository)
    return start_embedded(repository, options=options)
