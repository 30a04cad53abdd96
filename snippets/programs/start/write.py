"""Writes text with what was trained."""

import argparse
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from flax import nnx

from snippets.models.steps import split_nnx
from snippets.programs.start.gpt import CONFIG, network
from snippets.programs.start.state import (
    checkpoints_in,
    mesh_over,
    state_on,
)
from snippets.project.gpt import draw, make_optimizer


def trained(folder):
    """Return the parameters and statistics with the smallest test loss.

    SystemExit where the folder has no checkpoint.
    """
    mesh = mesh_over(jax.devices()[:1])
    like = state_on(mesh, make_optimizer(1), "data")
    with checkpoints_in(folder, read_only=True) as manager:
        if (step := manager.best_step()) is None:
            raise SystemExit(f"nothing is saved in {folder}: train it")
        state = manager.restore(step, args=ocp.args.StandardRestore(like))
    return jax.device_get((state["params"], state["stats"]))


@jax.jit(static_argnames=("apply", "length", "count"))
def write(apply, state, prompt, key, temperature, length, count):
    """Return the `count` tokens that follow a prompt, int32 (count,).

    `state` has parameters and statistics. The prompt is int32 (n,), with at
    least one token. The model reads the last `length` tokens. At temperature
    0 it takes the likeliest.
    """
    prompt, end = prompt[-length:], length - 1
    window = jnp.pad(prompt, (0, length - len(prompt)))

    def step(carry, position):
        window, last = carry
        logits, _ = apply(*state, window[None], train=False)
        token = draw(key, position, logits[:, last], temperature)[0]
        window = jnp.where(last < end, window, jnp.roll(window, -1))
        last = jnp.minimum(last + 1, end)
        token = token.astype(window.dtype)
        return (window.at[last].set(token), last), token

    first = window, jnp.int32(len(prompt) - 1)
    return jax.lax.scan(step, first, jnp.arange(count))[1]


def at_least(kind, least):
    """Return a type for argparse: a number that is not below `least`."""

    def number(text):
        if not (value := kind(text)) >= least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return value

    return number


def main(words=None):
    """Write as a command line says."""
    parser = argparse.ArgumentParser(description="Write text.")
    folder = pathlib.Path(sys.argv[0]).with_name("run")
    parser.add_argument("prompt", help="the text to go on with, in ASCII")
    valued = {
        "--count": (at_least(int, 1), 400, "characters to write"),
        "--temperature": (at_least(float, 0), 0.8, "0: always the likeliest"),
        "--seed": (int, 0, "another one, another text"),
        "--folder": (pathlib.Path, folder, "of the checkpoints"),
    }
    for name, (kind, default, about) in valued.items():
        text = f"{about} ({default})"
        parser.add_argument(name, type=kind, default=default, help=text)
    options = parser.parse_args(words)
    if not (options.prompt and options.prompt.isascii()):
        parser.error("the prompt needs a character, and ASCII alone")
    prompt = np.frombuffer(options.prompt.encode("ascii"), np.uint8)
    apply, *_ = split_nnx(nnx.eval_shape(lambda: network(nnx.Rngs(0))))
    text = write(
        apply,
        trained(options.folder),
        prompt.astype(np.int32),
        jax.random.key(options.seed),
        options.temperature,
        CONFIG.length,
        options.count,
    )
    print(options.prompt + bytes(np.asarray(text, np.uint8)).decode("ascii"))
