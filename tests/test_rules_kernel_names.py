"""Rules on the names of kernels: each with a case where it fires, and a near miss."""

from pathlib import Path

from given import write_store
from rule_given import H200, Trace, outcome

from analysis.rules import all_rules, judge
from analysis.store import open_store

TENSOR = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
PLAIN = "volta_sgemm_64x64_tn"
POINTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)


def product(name: str, shapes: str | None = None, op: str = "aten::mm", us: float = 10) -> Trace:
    """Four steps with one product."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 50)
        trace.host(op, at + 5, 20, step, shapes=shapes)
        trace.launched(name, at + 10, at + 20, us, step)
    return trace


def test_gemm_off_tensor_cores_fires(tmp_path: Path) -> None:
    """fp32 without tf32: the reason stands beside the name."""
    found = outcome(tmp_path, "gemm_off_tensor_cores", product(PLAIN), {"dtype": "fp32"})
    assert found["outcome"] == "fired"
    assert "volta_sgemm_64x64_tn (aten::mm) does not use the tensor cores: its inputs are fp32" in found["sentence"]


def test_gemm_off_tensor_cores_near_miss(tmp_path: Path) -> None:
    """A kernel with a matrix instruction is clear; a name that tells nothing is not judged."""
    assert outcome(tmp_path / "tensor", "gemm_off_tensor_cores", product(TENSOR))["outcome"] == "clear"
    assert outcome(tmp_path / "unknown", "gemm_off_tensor_cores", product("gemm"))["outcome"] == "not applicable"


DEVICE = {"wall_us": 100, "issue_us": 20, "device_us": 100}


def test_older_architecture_fires(tmp_path: Path) -> None:
    """A kernel for sm80 on an H200, in a step at a tenth of its roof."""
    cost = {"operations": [{"name": "mm", "flops": 1e10, "bytes": 1}], "bytes_min": 1, "working_set_bytes": 1}
    runs = [{**DEVICE, "dtype": "bf16", "facts": {"cost": cost}}]
    roofs = [{"roof": "flops", "dtype": "bf16", "value_per_s": 1e15}, {"roof": "dram", "value_per_s": 1e12}]
    events = product(TENSOR, us=100).events()
    store = write_store(tmp_path, runs=runs, events=events, environments=[H200], roofs=roofs)
    with open_store(store) as connection:
        judge(connection, rules=[rule for rule in all_rules() if rule.rule == "older_architecture"])
        found = connection.execute("SELECT sentence FROM findings").fetchall()
    assert found == [(f"{TENSOR} was built for sm80 and runs on sm90, and the step reaches 10.0 % of its roofs.",)]


def test_older_architecture_near_miss(tmp_path: Path) -> None:
    """A kernel for sm80 on an H200 says nothing by itself: the roofs are not known here."""
    found = outcome(tmp_path, "older_architecture", product(TENSOR, us=100), DEVICE)
    assert found["outcome"] == "clear"
    assert "built for sm80, the device is sm90" in found["reason"]


def test_narrow_alignment_fires(tmp_path: Path) -> None:
    """Two elements of bf16 are four bytes."""
    name = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_32x6_tn_align2"
    found = outcome(tmp_path, "narrow_alignment", product(name))
    assert found["outcome"] == "fired"
    assert "loads 2 elements (4 bytes) at a time" in found["sentence"]


def test_narrow_alignment_near_miss(tmp_path: Path) -> None:
    """Eight elements are 16 bytes."""
    name = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_32x6_tn_align8"
    assert outcome(tmp_path, "narrow_alignment", product(name))["outcome"] == "clear"


def test_tile_too_large_fires(tmp_path: Path) -> None:
    """16 rows of a tile of 128: an eighth of it."""
    found = outcome(tmp_path, "tile_too_large", product(TENSOR, "[[16, 4096], [4096, 4096]]"))
    assert found["outcome"] == "fired"
    assert "an output of 16 x 4096 with a tile of 128 x 128: 87.5 %" in found["sentence"]


def test_tile_too_large_near_miss(tmp_path: Path) -> None:
    """96 rows are three quarters of it; the bias of addmm is no input of the product."""
    assert outcome(tmp_path / "mm", "tile_too_large", product(TENSOR, "[[96, 64], [64, 128]]"))["outcome"] == "clear"
    added = product(TENSOR, "[[8], [128, 64], [64, 128]]", "aten::addmm")
    assert outcome(tmp_path / "addmm", "tile_too_large", added)["outcome"] == "clear"


def test_same_kernel_compiled(tmp_path: Path) -> None:
    """The same product kernel is told as such, another one by both names, and without an eager run nothing is."""
    runs = [{"compile": "true"}, {"compile": "false"}]
    same = outcome(tmp_path / "same", "same_kernel_compiled", [product(TENSOR, us=9), product(TENSOR)], runs)
    assert f"run the same product kernel, {TENSOR}: 9.00 us compiled, 10.0 us eager" in same["sentence"]
    other = outcome(tmp_path / "other", "same_kernel_compiled", [product(TENSOR), product(PLAIN)], runs)
    assert f"the eager one {PLAIN}" in other["sentence"]
    alone = outcome(tmp_path / "alone", "same_kernel_compiled", product(TENSOR), {"compile": "true"})
    assert alone["outcome"] == "not applicable"


def pointwise(kernels: int, gemm_us: float) -> Trace:
    """Four steps with a product, and so many additions of 2 us behind it."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 300)
        trace.host("aten::mm", at + 1, 8, step)
        trace.launched(TENSOR, at + 2, at + 20, gemm_us, step)
        for number in range(kernels):
            trace.host("aten::add", at + 10 + 10 * number, 8, step)
            trace.launched(POINTWISE, at + 12 + 10 * number, at + 200 + 3 * number, 2, step)
    return trace


def test_unfused_pointwise_fires(tmp_path: Path) -> None:
    """Three additions in a row, 6 of 16 us."""
    found = outcome(tmp_path, "unfused_pointwise", pointwise(3, 10))
    assert found["outcome"] == "fired"
    assert "3 pointwise kernels follow one another in a step, 6.00 us together" in found["sentence"]
    assert "37.5 % of the device's time" in found["sentence"]


def test_unfused_pointwise_near_miss(tmp_path: Path) -> None:
    """Two in a row; and three beside a long product."""
    assert outcome(tmp_path / "two", "unfused_pointwise", pointwise(2, 10))["outcome"] == "clear"
    assert outcome(tmp_path / "long", "unfused_pointwise", pointwise(3, 100))["outcome"] == "clear"


SQUARE = "[[512, 512], [512, 512]]"


def two_products(slow_us: float, second: str, shapes: str = SQUARE) -> Trace:
    """Four steps with a product of 10 us, and another one by kernel `second`."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 90)
        trace.host("aten::mm", at + 5, 20, step, shapes=SQUARE)
        trace.launched(TENSOR, at + 10, at + 200, 10, step)
        trace.host("aten::mm", at + 35, 20, step, shapes=shapes)
        trace.launched(second, at + 40, at + 300, slow_us, step)
    return trace


def test_equal_flops_other_speed_fires(tmp_path: Path) -> None:
    """Equal FLOPs, another layout, 20 us in place of 10: 10 of 30 us are lost."""
    found = outcome(
        tmp_path, "equal_flops_other_speed", two_products(20, TENSOR.replace("_tn", "_nt"), "[[256, 512], [512, 1024]]")
    )
    assert found["outcome"] == "fired"
    assert "takes 20.0 us for [256, 512] x [512, 1024]" in found["sentence"]
    assert f"{TENSOR} takes 10.0 us for [512, 512] x [512, 512], equal FLOPs, in the same step" in found["sentence"]
    assert "lose 33.3 % of the kernels' time" in found["sentence"]


def test_equal_flops_other_speed_near_miss(tmp_path: Path) -> None:
    """A fifth longer is clear; other FLOPs, and a kernel that adds something inside, are not compared."""
    other = TENSOR.replace("_tn", "_nt")
    assert outcome(tmp_path / "fifth", "equal_flops_other_speed", two_products(12, other))["outcome"] == "clear"
    larger = two_products(20, other, "[[512, 512], [512, 1024]]")
    assert outcome(tmp_path / "larger", "equal_flops_other_speed", larger)["outcome"] == "not applicable"
    fused = two_products(20, TENSOR.replace("ldg8", "ldg8_relu"))
    assert outcome(tmp_path / "fused", "equal_flops_other_speed", fused)["outcome"] == "not applicable"


def test_equal_flops_of_another_mode(tmp_path: Path) -> None:
    """The faster kernel may be that of the same point compiled; an overhead-bound step gains nothing by it."""
    traces = [product(TENSOR.replace("_tn", "_nt"), SQUARE, us=20), product(TENSOR, SQUARE)]
    runs = [{"compile": "false", **DEVICE}, {"compile": "max-autotune", **DEVICE}]
    found = outcome(tmp_path / "device", "equal_flops_other_speed", traces, runs)
    assert "takes 10.0 us for the same with compile=max-autotune" in found["sentence"]
    runs[0] = {"compile": "false", "wall_us": 100, "issue_us": 100, "device_us": 20}
    found = outcome(tmp_path / "overhead", "equal_flops_other_speed", traces, runs)
    assert found["outcome"] == "clear"
    assert "the step is overhead-bound" in found["reason"]


def split(reduction: str) -> Trace:
    """Four steps with a product of 10 us, and a kernel of 3 us by the same operation."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 50)
        trace.host("aten::mm", at + 5, 30, step)
        trace.launched(TENSOR, at + 10, at + 20, 10, step)
        trace.launched(reduction, at + 20, at + 40, 3, step)
    return trace


def test_split_k_fires(tmp_path: Path) -> None:
    """The product does not name it, the kernel behind it does."""
    adding = "void splitKreduce_kernel<float, float, float>(cublasSplitKParams<float>)"
    found = outcome(tmp_path, "split_k", split(adding))
    assert found["outcome"] == "fired"
    assert "1 product that is split along K (10.0 us)" in found["sentence"]
    assert "1 kernel that adds up the parts (3.00 us)" in found["sentence"]


def test_split_k_near_miss(tmp_path: Path) -> None:
    """An addition behind the product adds up no parts."""
    assert outcome(tmp_path, "split_k", split(POINTWISE))["outcome"] == "not applicable"
