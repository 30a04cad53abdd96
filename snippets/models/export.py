"""The real model exported to a file, and servers that start fast."""

import itertools
import json
import pathlib
import pickle
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import export
from jax.experimental.serialize_executable import serialize
from safetensors.numpy import load_file, save_file

from snippets.models.real_model import (
    Config,
    embed,
    names,
    torch_embed,
    transpose_linear,
)
from snippets.programs.launcher import launch, scratch_folder
from snippets.tracing.first_step import programs_kept_in

EXPECTED_ERRORS = {
    "call_with_float": (ValueError, "Dtype mismatch"),
}


@jax.jit
def embed_from_file(tensors, ids, mask):
    """Return a vector for each sentence, from the file's own arrays."""
    params = jax.tree.map(
        lambda name: transpose_linear(name, tensors[name]), names()
    )
    return embed(params, ids, mask, Config())


def named_tensors(path):
    """Return those arrays of the file that the model uses, {name: float32}."""
    tensors = load_file(path)
    return {name: tensors[name] for name in jax.tree.leaves(names())}


def like(tree):
    """Return shapes and dtypes instead of arrays."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


def export_open(tensors):
    """Return the model exported for any number of sentences of any length."""
    shape = export.symbolic_shape(
        "batch, length", constraints=["length <= 512"]
    )
    ids = jax.ShapeDtypeStruct(shape, jnp.int32)
    mask = jax.ShapeDtypeStruct(shape, jnp.bool)
    exporting = export.export(
        embed_from_file, platforms=("cpu", "cuda", "tpu")
    )
    return exporting(like(tensors), ids, mask)


def call_with_float(exported, tensors, ids, mask):
    """Call an exported program with a mask of floats; raises ValueError."""
    return exported.call(tensors, ids, mask.astype(np.float32))


def write_files(folder, tensors, exported, compiled):
    """Write what a server needs: weights, program, compiled program."""
    save_file(tensors, folder / "weights.safetensors")
    (folder / "program.bin").write_bytes(exported.serialize())
    (folder / "compiled.bin").write_bytes(pickle.dumps(serialize(compiled)))


def compile_ahead(tensors, ids, mask):
    """Compile for these shapes; nothing is computed."""
    return embed_from_file.lower(*like((tensors, ids, mask))).compile()


def load_program(folder, *args):
    """Return the program for arguments like these, compiled before or now."""
    import os
    import pickle

    import jax
    from jax import export
    from jax.experimental.serialize_executable import deserialize_and_load

    if "AHEAD" in os.environ:
        saved = pickle.loads((folder / "compiled.bin").read_bytes())
        return deserialize_and_load(*saved)
    saved = bytearray((folder / "program.bin").read_bytes())
    return jax.jit(export.deserialize(saved).call).lower(*args).compile()


def answer_once():
    """Start as a server does, answer once, and print when each stage ended."""
    import json
    import os
    import pathlib
    import time

    stages = {"start": time.time()}
    import jax
    import numpy as np
    from safetensors.numpy import load_file

    stages["import"] = time.time()
    folder = pathlib.Path(os.environ["FOLDER"])
    tensors = jax.device_put(load_file(folder / "weights.safetensors"))
    ids = np.load(folder / "ids.npy")
    stages["weights"] = time.time()
    program = load_program(folder, tensors, ids, ids > 0)
    stages["program"] = time.time()
    vectors = np.asarray(program(tensors, ids, ids > 0))
    stages["answer"] = time.time()
    print(json.dumps([stages, vectors.tolist()]))


def run_server(folder, **variables):
    """Run `answer_once` in a process; return [(stage, seconds)], vectors."""
    variables["FOLDER"] = str(folder)
    started = time.time()
    [ended] = launch(
        answer_once, 1, 1, uses=[load_program], variables=lambda *_: variables
    )
    times, vectors = json.loads(ended.text.splitlines()[-1])
    moments = [started, *times.values()]
    seconds = [after - before for before, after in itertools.pairwise(moments)]
    return list(zip(times, seconds, strict=True)), np.array(
        vectors, np.float32
    )


def small(x):
    """Compute something that compiles fast."""
    return jnp.sin(x) + 1


def kept(shortest):
    """Compile `small` and return how many programs the cache then holds.

    `shortest` is the compile time in seconds from which on a program is kept.
    """
    with scratch_folder() as folder:
        with programs_kept_in(folder, shortest):
            jax.clear_caches()
            jax.jit(small)(np.ones(3, np.float32))
        return files_in(folder)


def files_in(folder):
    """Return how many compiled programs a folder of the cache holds."""
    return len(list(pathlib.Path(folder).glob("*-cache")))


class Sentences(torch.nn.Module):
    """A BertModel that returns one vector for each sentence."""

    def __init__(self, model):
        """Keep the model."""
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        """Return vectors (rows, width) of ids and mask (rows, length)."""
        return torch_embed(self.model, ids, mask)


def export_torch(model, ids, mask):
    """Return the model exported by PyTorch for any batch and length."""
    batch, length = (
        torch.export.Dim("batch"),
        torch.export.Dim("length", max=512),
    )
    return torch.export.export(
        Sentences(model),
        (torch.from_numpy(ids).long(), torch.from_numpy(mask)),
        dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}),
    )
