"""What a TensorRT-LLM checkpoint says of its quantisation beside the names of the algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tritonforge.formats.json_fields import JsonFields


@dataclass(frozen=True, slots=True)
class QuantDetails:
    """Further keys of ``quantization``; None is not written, since older lines reject keys that they do not know.

    Args:
        group_size: Input channels that share a scale.
        has_zero_point: Integers stand for floats around something else than 0.
        pre_quant_scale: Inputs are multiplied by a factor for each channel.
        smoothquant_val: SmoothQuant's alpha.
        exclude_modules: Modules that stay floats.
    """

    group_size: int | None = None
    has_zero_point: bool | None = None
    pre_quant_scale: bool | None = None
    smoothquant_val: float | None = None
    exclude_modules: tuple[str, ...] | None = None

    def to_json(self) -> Mapping[str, object]:
        """The keys that are set."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        if self.exclude_modules is not None:
            values["exclude_modules"] = list(self.exclude_modules)
        return values

    @classmethod
    def from_json(cls, fields: JsonFields) -> QuantDetails:
        """Read ``quantization``; what is not there is None.

        Args:
            fields: The object.

        Raises:
            CorruptFile: A key has a wrong type.
        """
        return cls(
            group_size=fields.integer("group_size") if "group_size" in fields else None,
            has_zero_point=fields.flag("has_zero_point") if "has_zero_point" in fields else None,
            pre_quant_scale=fields.flag("pre_quant_scale") if "pre_quant_scale" in fields else None,
            smoothquant_val=_alpha(fields) if "smoothquant_val" in fields else None,
            exclude_modules=fields.strings("exclude_modules") if "exclude_modules" in fields else None,
        )


def _alpha(fields: JsonFields) -> float:
    return 0.0 if fields.values["smoothquant_val"] == 0 else fields.number("smoothquant_val", most=1.0)
