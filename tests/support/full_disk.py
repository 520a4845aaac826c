"""A disk that is full, as far as this process can tell."""

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Within the block, no file can grow beyond `size_bytes`: writing more fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
