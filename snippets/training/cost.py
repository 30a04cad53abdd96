"""What a training step costs on several chips: arithmetic, communication."""

import dataclasses

import jax
import jax.numpy as jnp

from snippets.training.data_parallel import count_collectives


@dataclasses.dataclass(frozen=True)
class Chip:
    """What is published of a chip.

    `rate` is its operations a second in bfloat16, `links` the bytes a second
    that it can send to other chips over all its links together.
    """

    rate: float
    links: float


@dataclasses.dataclass(frozen=True)
class Size:
    """A stack of blocks, each with matrices (width, hidden), (hidden, width).

    `tokens` are those of the batch, on all chips together.
    """

    layers: int
    width: int
    hidden: int
    tokens: int

    @property
    def parameters(self):
        """The number of weights."""
        return self.layers * 2 * self.width * self.hidden

    @property
    def flops(self):
        """Operations of a step: 2 for each weight and token, and 4 backward.

        Kaplan et al. 2020, section 2.1.
        """
        return 6 * self.parameters * self.tokens


CHIPS = {
    "H200": Chip(rate=1979e12 / 2, links=900e9 / 2),
    "TPU v5e": Chip(rate=197e12, links=400e9 / 2),
    "TPU v6e": Chip(rate=918e12, links=800e9 / 2),
}
SENT = {
    "all-reduce": lambda chips: 2 * (chips - 1) / chips,
    "all-gather": lambda chips: (chips - 1) / chips,
    "reduce-scatter": lambda chips: chips - 1,
}


def sent(way, size, chips, itemsize=2):
    """Return the bytes that each chip sends in a step that moves these arrays.

    "data": the gradients are all-reduced. "fsdp": the weights are gathered
    forward and backward, and the gradients reduce-scattered. "tensor": each
    block all-reduces its activations forward and backward. A compiled program
    may move other arrays instead, and send less.
    """
    share = (chips - 1) / chips * itemsize
    if way == "tensor":
        return 2 * 2 * share * size.layers * size.tokens * size.width
    return {"data": 2, "fsdp": 3}[way] * share * size.parameters


def seconds(way, size, chips, chip):
    """Return the seconds of arithmetic, and of what `sent` counts."""
    arithmetic = size.flops / chips / chip.rate
    return arithmetic, sent(way, size, chips) / chip.links


def fewest_tokens(way, chip, itemsize=2):
    """Return from how many tokens on each chip arithmetic takes longer.

    For "data" and "fsdp", and many chips.
    """
    return {"data": 2, "fsdp": 3}[way] * itemsize * chip.rate / 6 / chip.links


def most_chips(hidden, chip, itemsize=2):
    """Return up to how many chips arithmetic takes longer, for "tensor"."""
    return 3 * hidden * chip.links / itemsize / chip.rate


def mfu(size, step_seconds, chips, chip):
    """Return the model FLOPs utilization, between 0 and 1.

    The operations that a step needs, against those that the chips could do
    in that time (Chowdhery et al. 2022, section 4.1).
    """
    return size.flops / (step_seconds * chips * chip.rate)


def first_params(size):
    """Return float32 weights of each block, a list of (up, down)."""
    keys = jax.random.split(jax.random.key(0), (size.layers, 2))
    shapes = (size.width, size.hidden), (size.hidden, size.width)
    return [
        tuple(
            jax.random.normal(key, shape) / shape[0] ** 0.5
            for key, shape in zip(pair, shapes, strict=True)
        )
        for pair in keys
    ]


def loss(params, x):
    """Return the mean square of what the blocks make of x (tokens, width)."""
    for up, down in params:
        x = x + jnp.tanh(x @ up) @ down
    return jnp.mean(x**2)


LAYOUTS = {
    "data": (jax.P(), jax.P(), jax.P("chips")),
    "fsdp": (jax.P("chips"), jax.P("chips"), jax.P("chips")),
    "tensor": (jax.P(None, "chips"), jax.P("chips"), jax.P()),
}


def compiled(way, size, mesh):
    """Return the gradient of `loss`, compiled for one of the LAYOUTS."""
    up, down, tokens = (jax.NamedSharding(mesh, spec) for spec in LAYOUTS[way])
    params = [
        (jax.device_put(one, up), jax.device_put(other, down))
        for one, other in first_params(size)
    ]
    x = jax.device_put(jnp.ones((size.tokens, size.width)), tokens)
    gradient = jax.jit(
        jax.grad(loss), out_shardings=[(up, down)] * size.layers
    )
    return gradient.lower(params, x).compile()


def sent_by(program, chips, itemsize=4):
    """Return the bytes that each chip sends for a program's collectives."""
    return sum(
        SENT[kind](chips) * counts["elements"] * itemsize
        for kind, counts in count_collectives(program.as_text()).items()
        if kind in SENT
    )
