"""What a user may choose about a server. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server is started.

    Args:
        host: Address that all three endpoints listen on. Loopback unless asked otherwise: Triton has no login.
        grpc_port: Port of the gRPC endpoint; 0 picks a free one.
        http_port: Port of the HTTP endpoint; 0 picks a free one.
        metrics_port: Port of the Prometheus endpoint; 0 picks a free one.
        models: Models to load at start; None loads every folder of the repository, an empty tuple none.
        ready_timeout_s: Seconds after which a server whose models are still loading is given up.
        exit_timeout_s: Seconds that requests under way get to finish when the server is stopped.
        log: Log file; None puts it into the repository's forge folder.
        log_verbose: Triton's verbosity, 0 for none.
        cache: Folder that keeps the backend folder between starts; None is ``~/.cache/tritonforge``.
    """

    host: str = LOOPBACK
    grpc_port: int = 8001
    http_port: int = 8000
    metrics_port: int = 8002
    models: tuple[str, ...] | None = None
    ready_timeout_s: float = 300.0
    exit_timeout_s: float = 30.0
    log: Path | None = None
    log_verbose: int = 0
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server answers.

    Args:
        host: Address that it listens on.
        grpc_port: Port of the gRPC endpoint.
        http_port: Port of the HTTP endpoint.
        metrics_port: Port of the Prometheus endpoint.
    """

    host: str
    grpc_port: int
    http_port: int
    metrics_port: int

    @property
    def grpc_url(self) -> str:
        """``host:port`` for a gRPC channel."""
        return f"{self._reachable_host}:{self.grpc_port}"

    @property
    def http_url(self) -> str:
        """``http://host:port``."""
        return f"http://{self._reachable_host}:{self.http_port}"

    @property
    def metrics_url(self) -> str:
        """``http://host:port/metrics``."""
        return f"http://{self._reachable_host}:{self.metrics_port}/metrics"

    @property
    def _reachable_host(self) -> str:
        """The listening address as a client on this machine writes it."""
        host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self.host, self.host)
        return f"[{host}]" if ":" in host else host
