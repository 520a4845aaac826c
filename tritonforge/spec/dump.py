"""Specification → YAML text that reads back as the same specification. Pure."""

from __future__ import annotations

import yaml

from tritonforge.spec.document import SCALARS
from tritonforge.spec.forge import ForgeSpec

_SEPARATORS = frozenset("\x85\u2028\u2029")


def dump_spec(spec: ForgeSpec) -> str:
    """The specification as YAML: what was given, without the defaults, in the order of the fields.

    `load_spec` of the text gives an equal specification.
    """
    written = spec.model_dump(by_alias=True, exclude_unset=True)
    text = _dump(written, allow_unicode=True)
    # PyYAML writes line separators other than \n as they are, and reads something else where it takes them for one.
    return text if _SEPARATORS.isdisjoint(text) else _dump(written, allow_unicode=False)


def _dump(written: dict[str, object], *, allow_unicode: bool) -> str:
    text: str = yaml.dump(written, Dumper=_SpecDumper, sort_keys=False, allow_unicode=allow_unicode, width=2**31)
    return text


class _SpecDumper(yaml.SafeDumper):
    """Quotes by the scalar rules of our reader, and repeats equal values instead of pointing at them."""

    yaml_implicit_resolvers = {}

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Whether to write a value out although it has been written before: always."""
        return True


for _tag, _pattern, _first in SCALARS:
    _SpecDumper.add_implicit_resolver(_tag, _pattern, _first)
