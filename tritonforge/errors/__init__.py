"""Every error that tritonforge raises on purpose, in one tree.

    TritonforgeError                 exit 1
    ├─ SpecError                     exit 2
    │   ├─ SpecNotFound
    │   ├─ SpecInvalid
    │   └─ UnknownRelease
    ├─ CheckpointError               exit 3
    │   ├─ CheckpointNotFound
    │   ├─ CorruptFile
    │   ├─ MissingWeight
    │   ├─ ShapeMismatch
    │   └─ UnsupportedModel
    ├─ BuildError                    exit 4
    │   ├─ CommandFailed
    │   ├─ ContainerError
    │   └─ ToolMissing
    ├─ RepositoryError               exit 5
    │   ├─ ConfigInvalid
    │   ├─ EngineMismatch
    │   ├─ PublishFailed
    │   ├─ RepositoryLocked
    │   └─ TemplateError
    ├─ ServerError                   exit 6
    │   ├─ NotReady
    │   ├─ PortTaken
    │   └─ ServerExited
    └─ ClientError                   exit 7
        ├─ NoAnswer
        ├─ TransportError
        │   ├─ Cancelled
        │   ├─ ConnectFailed
        │   └─ TimedOut
        ├─ Rejected
        │   ├─ InvalidRequest
        │   ├─ ModelNotFound
        │   └─ ModelNotReady
        └─ StreamBroken

Misuse by the programmer (a closed client, a stream read twice) is a `UsageBug`, which the command line does not catch.

Each branch is a module of this package; every name is imported from here.

A message says what failed with its value, what was expected, and, in `hint`, what to do.
"""

from __future__ import annotations

from tritonforge.errors.base import TritonforgeError, UsageBug, did_you_mean
from tritonforge.errors.build import BuildError, CommandFailed, ContainerError, ToolMissing
from tritonforge.errors.checkpoint import (
    CheckpointError,
    CheckpointNotFound,
    CorruptFile,
    MissingWeight,
    ShapeMismatch,
    UnsupportedModel,
)
from tritonforge.errors.client import (
    Cancelled,
    ClientError,
    ConnectFailed,
    InvalidRequest,
    ModelNotFound,
    ModelNotReady,
    NoAnswer,
    Rejected,
    StreamBroken,
    TimedOut,
    TransportError,
)
from tritonforge.errors.repository import (
    ConfigInvalid,
    EngineMismatch,
    PublishFailed,
    RepositoryError,
    RepositoryLocked,
    TemplateError,
)
from tritonforge.errors.server import NotReady, PortTaken, ServerError, ServerExited
from tritonforge.errors.spec import SpecError, SpecInvalid, SpecNotFound, UnknownRelease

__all__ = [
    "BuildError",
    "Cancelled",
    "CheckpointError",
    "CheckpointNotFound",
    "ClientError",
    "CommandFailed",
    "ConfigInvalid",
    "ConnectFailed",
    "ContainerError",
    "CorruptFile",
    "EngineMismatch",
    "InvalidRequest",
    "MissingWeight",
    "ModelNotFound",
    "ModelNotReady",
    "NoAnswer",
    "NotReady",
    "PortTaken",
    "PublishFailed",
    "Rejected",
    "RepositoryError",
    "RepositoryLocked",
    "ServerError",
    "ServerExited",
    "ShapeMismatch",
    "SpecError",
    "SpecInvalid",
    "SpecNotFound",
    "StreamBroken",
    "TemplateError",
    "TimedOut",
    "ToolMissing",
    "TransportError",
    "TritonforgeError",
    "UnknownRelease",
    "UnsupportedModel",
    "UsageBug",
    "did_you_mean",
]
