"""The rules, one module per subject; each module ends with the tuple of its rules."""

from tritonforge.repository.lint.rules.backend import BACKEND_RULES
from tritonforge.repository.lint.rules.batching import BATCHING_RULES
from tritonforge.repository.lint.rules.dialects import DIALECT_RULES
from tritonforge.repository.lint.rules.engine_files import ENGINE_FILE_RULES
from tritonforge.repository.lint.rules.ensemble import ENSEMBLE_RULES
from tritonforge.repository.lint.rules.ensemble_joints import ENSEMBLE_JOINT_RULES
from tritonforge.repository.lint.rules.gateway import GATEWAY_RULES
from tritonforge.repository.lint.rules.instances import INSTANCE_RULES
from tritonforge.repository.lint.rules.layout import LAYOUT_RULES, ROOT_RULES
from tritonforge.repository.lint.rules.servers import SERVER_RULES
from tritonforge.repository.lint.rules.tensorrt_llm import TENSORRT_LLM_RULES
from tritonforge.repository.lint.rules.tensorrt_llm_engine import TENSORRT_LLM_ENGINE_RULES
from tritonforge.repository.lint.rules.tensors import TENSOR_RULES
from tritonforge.repository.lint.rules.text import TEXT_RULES
from tritonforge.repository.lint.rules.text_engines import TEXT_ENGINE_RULES
from tritonforge.repository.lint.rules.versions import VERSION_RULES

REPOSITORY_RULES = (*ROOT_RULES, *SERVER_RULES)
MODEL_RULES = (
    *LAYOUT_RULES,
    *TEXT_RULES,
    *VERSION_RULES,
    *BACKEND_RULES,
    *TENSOR_RULES,
    *BATCHING_RULES,
    *INSTANCE_RULES,
    *ENSEMBLE_RULES,
    *ENSEMBLE_JOINT_RULES,
    *GATEWAY_RULES,
    *DIALECT_RULES,
    *TENSORRT_LLM_RULES,
    *TENSORRT_LLM_ENGINE_RULES,
    *TEXT_ENGINE_RULES,
    *ENGINE_FILE_RULES,
)

__all__ = ["MODEL_RULES", "REPOSITORY_RULES"]
