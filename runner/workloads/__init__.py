"""All workloads by name. Importing this package imports no torch."""

from runner.workloads.base import Allowed, Built, Compile, Cost, Operation, Workload, predicted_step_s, torch_dtype
from runner.workloads.elementwise import Elementwise, Intensity
from runner.workloads.matmul import Addmm, MatmulAdd, MatmulItem
from runner.workloads.own import Custom
from runner.workloads.plain import Fault, Noop

__all__ = [
    "WORKLOADS", "Allowed", "Built", "Compile", "Cost", "Custom", "MatmulAdd", "Operation", "Workload",
    "predicted_step_s", "torch_dtype",
]  # fmt: skip

_ALL = (MatmulAdd, MatmulItem, Addmm, Elementwise, Intensity, Noop, Fault, Custom)
WORKLOADS: dict[str, Workload] = {each.name: each() for each in _ALL}
