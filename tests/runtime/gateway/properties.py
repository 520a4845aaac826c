"""How the properties of the gateway are tried: the same examples in every run."""

from hypothesis import settings

SAME_EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True, database=None)
