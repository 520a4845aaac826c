"""What the library's exceptions say, without the places in its source that they begin with. Pure."""

from __future__ import annotations


def reason_of(error: Exception) -> str:
    """The reason in one line; the kind of error is named unless it is the RuntimeError of the C++ library.

    The library's messages are lines of "Exception from file:line" and "Check … failed at file:line" before the reason.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(line for line in lines if line and "/src/" not in line) or " ".join(lines)
    return said if isinstance(error, RuntimeError) else f"{type(error).__name__}: {said}"
