"""All workloads by name. Importing this package imports no torch."""

from runner.workloads.attention import Attention
from runner.workloads.base import Allowed, Built, Compile, Cost, Operation, Workload, predicted_step_s, torch_dtype
from runner.workloads.elementwise import Elementwise, Intensity
from runner.workloads.linear import Linear
from runner.workloads.llm import LlmDecode, LlmPrefill
from runner.workloads.matmul import Addmm, MatmulAdd, MatmulItem
from runner.workloads.mlp import Mlp
from runner.workloads.norm import Norm
from runner.workloads.own import Custom
from runner.workloads.plain import Fault, Noop
from runner.workloads.shapes import ShapeSequence
from runner.workloads.train import TrainStep
from runner.workloads.transformer import TransformerBlock

__all__ = [
    "WORKLOADS", "Allowed", "Built", "Compile", "Cost", "Custom", "MatmulAdd", "Operation", "Workload",
    "predicted_step_s", "torch_dtype",
]  # fmt: skip

_ALL = (
    MatmulAdd,
    MatmulItem,
    Addmm,
    Elementwise,
    Intensity,
    Linear,
    Mlp,
    Norm,
    Attention,
    TransformerBlock,
    ShapeSequence,
    Noop,
    Fault,
    Custom,
    TrainStep,
    LlmPrefill,
    LlmDecode,
)
WORKLOADS: dict[str, Workload] = {each.name: each() for each in _ALL}
