"""Run a real Triton Inference Server on a model repository.

`start_embedded` starts the server of the nvidia-pytriton wheel; `running_server` finds one that serves a repository.
"""

from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerAddress, ServerOptions
from tritonforge.server.state import running_server

__all__ = ["RunningServer", "ServerAddress", "ServerOptions", "running_server", "start_embedded"]
