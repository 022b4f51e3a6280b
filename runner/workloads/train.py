"""One step of training: train_step.

The model is a stack of equal layers on random data: `mlp` (a product with a square matrix and its bias, then GELU), or
`transformer` (pre-norm blocks: attention among all tokens of an example, and a feed-forward part four times as wide).
The loss is the mean squared error against a fixed random target. The learning rate is so small that the step stays what
it is for thousands of calls: the optimizer does all of its work and moves a weight by 1e-6 at a time or so (in fp16, in
which Adam's second state can vanish, by 1e-4 at most).

FLOPs and bytes, with r rows (examples x tokens), width w, t tokens an example, item bytes b:
a product of r x i with i x o has 2 r i o FLOPs and moves (r i + i o + r o) b (Golub and Van Loan, Matrix Computations,
section 1.1). Backward has two such products for each of forward's, one for the gradient of its input and one for that
of its weight, each as large; the first layer of the mlp needs none of its input. Attention has 2 products of 2 r t w
FLOPs, and 5 in backward, which makes the scores once more (Dao et al., FlashAttention, arXiv 2205.14135, algorithm 4);
it moves q, k, v and its result alone. Optimizers: see `optimizers.update_operations`. With checkpoint=true what
backward needs of a layer is computed once more. Left out: the loss's last sum, and the passes that torch.compile saves
are those of bias gradients, residual sums, the loss and casts of activations alone.

With autocast products, attention and GELU compute in its dtype, of c bytes; norms, residual sums, loss and optimizer in
that of the weights (torch's lists of autocast's operators). Each cast is a pass of b + c bytes a value: of the weights
of all products in forward and of their gradients in backward, of the input, and of what norms, residual sums and loss
hand to products and get from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import ITEM_BYTES, Allowed, Built, Compile, Cost, Operation, Workload, torch_dtype
from runner.workloads.optimizers import (
    ADAMS,
    STATES,
    PlainAdam8bit,
    adam8bit,
    optimizer_of,
    state_bytes,
    unscaling_operations,
    update_operations,
    zeroing_operations,
)

if TYPE_CHECKING:
    import torch

    from runner.point import Point

ZERO_GRAD = "zero_grad"
HEAD_WIDTH = 64
LOSS_SCALE = 1024.0
NEVER = 10**9
"""Steps between two growths of the loss scale: a scale that changes would make some steps unlike others."""
RANKS = (2, 4, 8)
"""Ranks among which states would be sharded."""

Step = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a step: examples, tokens of each, width of a token, layers; and bytes of a value, of weights (item)
    and of what products read and write (low), which autocast makes another dtype."""

    model: str
    examples: int
    tokens: int
    width: int
    layers: int
    item: int
    low: int
    autocast: str | None = None

    @classmethod
    def of(cls, point: Point) -> Shape:
        """The sizes of a point."""
        assert point.size is not None
        own, item = dict(point.params), ITEM_BYTES[point.dtype]
        low = item if own["autocast"] is None else ITEM_BYTES[own["autocast"]]
        sizes = own["tokens"], own["width"], own["layers"]
        return cls(own["model"], point.size, *sizes, item, low, own["autocast"])

    @property
    def rows(self) -> int:
        """Tokens of all examples."""
        return self.examples * self.tokens

    @property
    def heads(self) -> int:
        """Attention heads of 64 numbers each; one where the width is less."""
        return max(1, self.width // HEAD_WIDTH)

    @property
    def weights(self) -> tuple[int, ...]:
        """Elements of each weight tensor."""
        square = self.width**2
        mlp = (square, self.width)
        block = (self.width, self.width, 3 * square, square, self.width, self.width, 4 * square, 4 * square)
        return (mlp if self.model == "mlp" else block) * self.layers

    @property
    def cast_weights(self) -> int:
        """Weights that autocast casts: those of products, biases with them; none without it."""
        if self.autocast is None:
            return 0
        return (self.width + 1 if self.model == "mlp" else 12 * self.width) * self.width * self.layers


# -- the model and its step --------------------------------------------------------------------------------------------


def model_of(shape: Shape, checkpoint: bool, device: torch.device, dtype: torch.dtype) -> torch.nn.Module:
    """The stack of layers; x (examples, tokens, width) to the same shape.

    checkpoint: of each layer the input alone is kept for backward, and the layer is computed again there; the state of
    random numbers is not kept, since no layer draws any.
    """
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint as recomputed

    width = shape.width
    place: dict[str, Any] = {"device": device, "dtype": dtype}

    class Block(nn.Module):
        """x + attention(norm(x)), then x + feed-forward(norm(x)); no biases but the norms'."""

        def __init__(self) -> None:
            super().__init__()
            self.before_attention = nn.LayerNorm(width, **place)
            self.qkv = nn.Linear(width, 3 * width, bias=False, **place)
            self.out = nn.Linear(width, width, bias=False, **place)
            self.before_feed_forward = nn.LayerNorm(width, **place)
            self.up = nn.Linear(width, 4 * width, bias=False, **place)
            self.down = nn.Linear(4 * width, width, bias=False, **place)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            examples, tokens, _ = x.shape
            qkv = self.qkv(self.before_attention(x)).view(examples, tokens, 3, shape.heads, -1)
            q, k, v = (each.transpose(1, 2) for each in qkv.unbind(2))  # (examples, heads, tokens, head width) each
            mixed = functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(mixed.transpose(1, 2).reshape(examples, tokens, width))
            return x + self.down(functional.gelu(self.up(self.before_feed_forward(x))))

    class Stack(nn.Module):
        def __init__(self, layers: list[nn.Module]) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = recomputed(layer, x, use_reentrant=False, preserve_rng_state=False) if checkpoint else layer(x)
            return x

    def layer() -> nn.Module:
        return Block() if shape.model == "transformer" else nn.Sequential(nn.Linear(width, width, **place), nn.GELU())

    return Stack([layer() for _ in range(shape.layers)])


def _initialised(model: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    """Matrices normal with deviation 1/sqrt(inputs), so that no layer shrinks or blows up its input; biases zero."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                weight.normal_(0, weight.shape[1] ** -0.5, generator=generator)
            elif name.endswith("bias"):
                weight.zero_()
    return model


def _loss_function(device: str, autocast: str | None) -> Step:
    """loss(model, x, target): the mean squared error, with the model under autocast where it is asked for."""
    import torch
    from torch.nn import functional

    def loss(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(model(x), target)

    if autocast is None:
        return loss
    lower = torch_dtype(autocast)

    def loss_in_autocast(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, lower):
            return functional.mse_loss(model(x), target)

    return loss_in_autocast


def _step(loss_of: Step, set_to_none: bool) -> Step:
    """train_step(model, optimizer, scaler, x, target) -> the loss before the step."""
    from runner.phases import BACKWARD, FORWARD, OPTIMIZER, phase

    def train_step(model: Any, optimizer: Any, scaler: Any, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        with phase(ZERO_GRAD):
            optimizer.zero_grad(set_to_none=set_to_none)
        with phase(FORWARD):
            loss = loss_of(model, x, target)
        with phase(BACKWARD):
            (loss if scaler is None else scaler.scale(loss)).backward()
        with phase(OPTIMIZER):
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
        return loss.detach()

    return train_step


def _with_plain_update(step: Step) -> Step:
    """The step with the update written out in place of torchao's."""

    def train_step(model: Any, optimizer: Any, *rest: Any) -> Any:
        return step(model, PlainAdam8bit(optimizer), *rest)

    return train_step


# -- what it costs -----------------------------------------------------------------------------------------------------


def _product(shape: Shape, name: str, inner: int, outer: int, times: int) -> Operation:
    """`times` products of rows x inner with inner x outer."""
    moved = shape.rows * (inner + outer) + inner * outer
    return Operation(name, 2 * shape.rows * inner * outer * times, moved * shape.low * times, shape.autocast)


def _pass(shape: Shape, name: str, flops: int, moved: int, times: int, dtype: str | None = None) -> Operation:
    """`times` passes with so many FLOPs and bytes moved for each of rows x width values."""
    values = shape.rows * shape.width * times
    return Operation(name, flops * values, moved * values, dtype)


def _weight_casts(shape: Shape, name: str) -> list[Operation]:
    """One pass over the weights of products, or their gradients, from one dtype to the other."""
    moved = (shape.item + shape.low) * shape.cast_weights
    return [Operation(name, 0, moved)] if shape.autocast else []


def _mlp_operations(shape: Shape, checkpoint: bool, compiled: bool) -> list[Operation]:
    layers, width, low, lower = shape.layers, shape.width, shape.low, shape.autocast
    cast = shape.item + low

    def forward(word: str) -> list[Operation]:
        casts = [_pass(shape, f"input cast{word}", 0, cast, 1), *_weight_casts(shape, f"weights cast{word}")]
        return [*(casts if lower else []), _product(shape, f"linear{word}", width, width, layers)]

    return [
        *forward(""),
        _pass(shape, "gelu", 1, 2 * low, layers, lower),
        *([_pass(shape, "result and its gradient cast", 0, cast, 2)] if lower and not compiled else []),
        *(forward(" again") if checkpoint else []),
        _pass(shape, "gelu backward", 2, 3 * low, layers, lower),
        _product(shape, "linear backward", width, width, 2 * layers - 1),
        _pass(shape, "bias backward", 1, 0 if compiled else low, layers, lower),
        *_weight_casts(shape, "gradients cast"),
    ]


def _transformer_operations(shape: Shape, checkpoint: bool, compiled: bool) -> list[Operation]:
    """Compiled, a norm writes what the product behind it reads, and reads what that one's backward wrote."""
    layers, width, tokens = shape.layers, shape.width, shape.tokens
    item, low, lower = shape.item, shape.low, shape.autocast
    normed = low if compiled else item
    matrices = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}

    def cast(name: str, moved_compiled: int) -> list[Operation]:
        moved = moved_compiled if compiled else item + low
        return [_pass(shape, name, 0, moved, 2 * layers)] if lower else []

    def forward(word: str, but: str | None = None) -> list[Operation]:
        return [
            *_weight_casts(shape, f"weights cast{word}"),
            _pass(shape, f"norm{word}", 5, item + normed, 2 * layers),
            *cast(f"norm cast{word}", 0),
            *(_product(shape, name + word, *ends, layers) for name, ends in matrices.items() if name != but),
            _pass(shape, f"attention{word}", 4 * tokens, 4 * low, layers, lower),
            _pass(shape, f"gelu{word}", 4, 8 * low, layers, lower),
            _pass(shape, f"residual{word}", 1, 0 if compiled else 2 * item + low, layers if but else 2 * layers),
        ]

    return [
        *forward(""),
        *(forward(" again", but="down") if checkpoint else []),
        *cast("residual gradient cast", low),
        *(_product(shape, f"{name} backward", *ends, 2 * layers) for name, ends in matrices.items()),
        _pass(shape, "attention backward", 10 * tokens, 8 * low, layers, lower),
        _pass(shape, "qkv gradients joined", 0, 6 * low, layers),
        _pass(shape, "gelu backward", 8, 12 * low, layers, lower),
        *cast("norm gradient cast", 0),
        _pass(shape, "norm backward", 8, 2 * item + normed, 2 * layers),
        _pass(shape, "residual backward", 1, 0 if compiled else 3 * item, 2 * layers),
        *_weight_casts(shape, "gradients cast"),
    ]


# -- what it holds, computed -------------------------------------------------------------------------------------------


def kept_bytes(shape: Shape, checkpoint: bool) -> int:
    """Bytes that forward leaves for backward, by the eager code above, inputs and weights apart.

    mlp: each layer's sum and its GELU, 2 r w values. transformer: 16 r w values a block (two norms' results, q, k, v,
    the attention's result, the sum behind it, 4 + 4 round GELU, the block's result), mean and deviation of two norms
    and a logarithm for each row and head, of 4 bytes each. With checkpoint the layer's result alone. The loss is one
    number in a storage of r w values: torch's mean keeps that of the squares.

    With autocast all of these are of its dtype but for the sums and results of blocks, the last result of the mlp (cast
    for the loss) and the loss; and kept are the mlp's cast input and the cast weights through which gradients pass,
    those of the mlp's first layer not among them.
    """
    row, low = shape.rows * shape.width * shape.item, shape.rows * shape.width * shape.low
    layers, cast = shape.layers, shape.autocast is not None
    if shape.model == "mlp":
        if checkpoint:
            return low * (layers - 1) + 2 * row
        weights = shape.width**2 * (layers - 1) * shape.low
        return low * (2 * layers - 1) + 2 * row + (low + weights if cast else 0)
    if checkpoint:
        return row * (layers + 1)
    weights = shape.cast_weights * shape.low
    return low * 14 * layers + row * (2 * layers + 1) + weights + 4 * shape.rows * (4 + shape.heads) * layers


# -- the workload ------------------------------------------------------------------------------------------------------


class TrainStep(Workload):
    """zero_grad, forward with its loss, backward and the optimizer, each a phase; `size` examples of `tokens` tokens.

    torch.compile is applied to forward and loss, and with them to backward; the optimizer stays as torch has it.
    """

    name = "train_step"
    floor_size = 1
    rotates = False
    params: ClassVar[Mapping[str, Allowed]] = {
        "model": ("mlp", "transformer"),
        "layers": range(1, 257),
        "width": range(2, 65537),
        "tokens": range(1, 1048577),
        "optimizer": ("sgd", "momentum", "adam", "adamw", "adam8bit"),
        "impl": ("default", "loop", "foreach", "fused"),
        "capturable": (False, True),
        "checkpoint": (False, True),
        "autocast": (None, "bf16", "fp16"),
        "scaler": (False, True),
        "set_to_none": (True, False),
    }
    defaults: ClassVar[Mapping[str, Any]] = {
        "model": "mlp", "layers": 4, "width": 1024, "tokens": 1, "optimizer": "adamw", "impl": "default",
        "capturable": False, "checkpoint": False, "autocast": None, "scaler": False, "set_to_none": True,
    }  # fmt: skip
    uses: ClassVar[tuple[Any, ...]] = (
        Shape, model_of, _initialised, optimizer_of, adam8bit, _loss_function, _step,
    )  # fmt: skip

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """The step, and (model, optimizer, scaler or None, x, target): x and target (examples, tokens, width).

        Raises ValueError with capturable=true on another device than CUDA, and ImportError without torchao.
        """
        import torch

        own, shape, dtype = dict(point.params), Shape.of(point), torch_dtype(point.dtype)
        if own["capturable"] and device.type != "cuda":
            raise ValueError(_ONLY_CUDA)
        model = _initialised(model_of(shape, own["checkpoint"], device, dtype), generator)
        optimizer = optimizer_of(own["optimizer"], own["impl"], own["capturable"], list(model.parameters()))
        scaler = None
        if own["scaler"]:
            scaler = torch.amp.GradScaler(device.type, init_scale=LOSS_SCALE, growth_interval=NEVER)
        size = (shape.examples, shape.tokens, shape.width)
        data = [torch.randn(size, device=device, dtype=dtype, generator=generator) for _ in range(2)]
        loss_of = _loss_function(device.type, own["autocast"])
        return Built(
            _step(compile(loss_of), own["set_to_none"]), (model, optimizer, scaler, *data),
            _step(loss_of, own["set_to_none"]),
        )  # fmt: skip

    def reference(self, point: Point, built: Built) -> Step:
        """The eager step, with adam8bit written out: torchao computes in fp32 whatever it is given, so that its own
        step gives no truth. The states are what the step begins with; how they are rounded behind it is not asked."""
        return _with_plain_update(built.eager) if dict(point.params)["optimizer"] == "adam8bit" else built.eager

    def at_floor(self, point: Point) -> Point | None:
        """One example of one token two numbers wide: as many layers and weights, hence as many calls.

        None for adam8bit, which does something else with small weights.
        """
        own = dict(point.params)
        if own["optimizer"] == "adam8bit":
            return None
        small = tuple(sorted({**own, "width": 2, "tokens": 1}.items()))
        return replace(point, size=self.floor_size, params=small)

    def cost(self, point: Point) -> Cost | None:
        """Forward, backward and update, each operation in the dtype that autocast gives it."""
        own, shape = dict(point.params), Shape.of(point)
        weights, compiled = sum(shape.weights), point.compile is not False
        layers = _mlp_operations if shape.model == "mlp" else _transformer_operations
        item = shape.item
        operations = [
            *([] if own["set_to_none"] else zeroing_operations(weights, shape.item)),
            *layers(shape, own["checkpoint"], compiled),
            _pass(shape, "loss", 3, 2 * item, 1),
            _pass(shape, "loss backward", 2, item if compiled else 3 * item, 1),
            *(unscaling_operations(weights, item, own["impl"] == "fused") if own["scaler"] else []),
            *update_operations(own["optimizer"], own["impl"], weights, shape.item),
        ]
        data = 2 * shape.rows * shape.width * shape.item
        states = state_bytes(own["optimizer"], shape.weights, shape.item)
        kept = kept_bytes(shape, own["checkpoint"])
        once = data + 2 * weights * shape.item + 2 * states
        return Cost(tuple(operations), once, data + 2 * weights * shape.item + states + kept)

    def predicted(self, point: Point) -> dict[str, Any]:
        """What the step holds by arithmetic, and would hold with a cure (facts.train); bytes, none of them measured."""
        own, shape = dict(point.params), Shape.of(point)
        plain = own["optimizer"] if own["optimizer"] != "adam8bit" else "adam"
        states = state_bytes(plain, shape.weights, shape.item)
        eight_bit = state_bytes("adam8bit", shape.weights, shape.item) if STATES[plain] == 2 else None
        return {
            "weights": sum(shape.weights),
            "optimizer_state_bytes_predicted": states,
            "optimizer_state_bytes_8bit_predicted": eight_bit,
            "optimizer_state_bytes_sharded_predicted": {str(each): -(-states // each) for each in RANKS},
            "activation_bytes_predicted": kept_bytes(shape, False),
            "activation_bytes_checkpointed_predicted": kept_bytes(shape, True),
        }

    def refusal(self, point: Point) -> str | None:
        """Why the settings do not go together, with the cure."""
        return next((sentence for applies, sentence in _refusals(point, dict(point.params)) if applies), None)


def _refusals(point: Point, own: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """What does not go together: whether it is asked for, and the sentence that says so."""
    optimizer, autocast, width = own["optimizer"], own["autocast"], own["width"]
    yield (
        point.batch is not None,
        f"batch={point.batch}: allowed is null, since size is train_step's batch; write size={point.batch}.",
    )
    yield (
        own["model"] == "transformer" and width % HEAD_WIDTH != 0,
        f"workload.width={width}: allowed is a multiple of {HEAD_WIDTH} with workload.model=transformer, whose heads "
        f"are so wide; for example workload.width={-(-width // HEAD_WIDTH) * HEAD_WIDTH}.",
    )
    yield (
        optimizer == "adam8bit" and own["impl"] != "default",
        f"workload.impl={own['impl']}: allowed is default with adam8bit; write workload.impl=default.",
    )
    yield (
        own["capturable"] and optimizer not in ADAMS,
        f"workload.capturable=true: allowed is false with {optimizer}, which has no such setting; write "
        "workload.optimizer=adam or leave it out.",
    )
    yield own["capturable"] and point.device == "cpu", _ONLY_CUDA
    yield (
        autocast is not None and point.dtype not in ("fp32", "tf32"),
        f"dtype={point.dtype}: allowed is fp32 or tf32 with workload.autocast={autocast}, since dtype is that of the "
        "weights; write dtype=fp32.",
    )
    yield (
        own["scaler"] and autocast != "fp16",
        "workload.scaler=true: allowed is false without workload.autocast=fp16, since nothing else needs its gradients "
        "scaled; write workload.autocast=fp16.",
    )


_ONLY_CUDA = "workload.capturable=true: allowed is false on the CPU, which records no graph; leave it out."
