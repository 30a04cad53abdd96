"""A C function in compiled programs, by JAX's foreign function interface."""

import ctypes
import functools
import pathlib
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal

EXPECTED_ERRORS = {
    "derivative_of_foreign": (ValueError, "cannot be differentiated"),
    "unregistered": (
        jax.errors.JaxRuntimeError,
        "NOT_FOUND: No FFI handler registered for",
    ),
    "decay_of_counts": (
        jax.errors.JaxRuntimeError,
        "Failed to decode all FFI handler operands",
    ),
    "decay_at_last": (
        jax.errors.JaxRuntimeError,
        "decay: x and y need one shape",
    ),
}

DECAY = """
#include "xla/ffi/api/ffi.h"

void decay(const float* x, float* y, int64_t n, float keep) {
  float last = 0;
  for (int64_t t = 0; t < n; ++t) {
    last = keep * last + x[t];
    y[t] = last;
  }
}
"""

HANDLER = """
#include <atomic>
namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
static std::atomic<int> calls{0}, rows{0};

static ffi::Error Run(Floats x, float keep, ffi::Result<Floats> y) {
  auto shape = x.dimensions(), wanted = y->dimensions();
  if (shape.size() == 0 || !std::equal(shape.begin(), shape.end(),
                                       wanted.begin(), wanted.end()))
    return ffi::Error::InvalidArgument("decay: x and y need one shape");
  ++calls;
  for (size_t i = 0; i < x.element_count(); i += shape.back(), ++rows)
    decay(x.typed_data() + i, y->typed_data() + i, shape.back(), keep);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    decay_handler, Run,
    ffi::Ffi::Bind().Arg<Floats>().Attr<float>("keep").Ret<Floats>());

extern "C" int calls_so_far() { return calls; }
extern "C" int rows_so_far() { return rows; }
"""


def shared_library(source):
    """Return what the C++ compiler of this machine makes of a source."""
    with tempfile.TemporaryDirectory() as folder:
        code, library = pathlib.Path(folder, "code.cc"), f"{folder}/code.so"
        code.write_text(source)
        command = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC"]
        command += ["-isystem", jax.ffi.include_dir(), code, "-o", library]
        subprocess.run(command, check=True)
        return ctypes.CDLL(library)


def foreign_decay(x, keep, vmap_method="broadcast_all"):
    """Return y, y[t] = keep * y[t - 1] + x[t] along the last axis of x.

    x is float32 and has an axis at least, or JaxRuntimeError is raised.
    """
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call("decay", result, vmap_method=vmap_method)
    return call(x, keep=np.float32(keep))


def counted(library, function, x):
    """Return (calls, rows) of the C function in one call of `function`."""
    before = library.calls_so_far(), library.rows_so_far()
    jax.block_until_ready(function(x))
    after = library.calls_so_far(), library.rows_so_far()
    return after[0] - before[0], after[1] - before[1]


def derivative_of_foreign(x):
    """Differentiate the C function as it is; raises ValueError."""
    return jax.grad(lambda x: foreign_decay(x, 0.9).sum())(x)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def decay(x, keep):
    """Return what `foreign_decay` does, with a derivative for x."""
    return foreign_decay(x, keep)


def decay_forward(x, keep):
    """Return the decay, and no residuals: it is linear in x."""
    return foreign_decay(x, keep), None


def decay_backward(keep, _, g):
    """Return the gradient of x from that of y: the same, backwards."""
    return (foreign_decay(g[..., ::-1], keep)[..., ::-1],)


def by_shards(function):
    """Let each device call a function with its rows, sharded over `data`."""
    rows = jax.P("data")
    return jax.shard_map(function, in_specs=rows, out_specs=rows)


def decay_on_host(x, keep, seen):
    """Return the decay by SciPy in a callback; it appends to `seen`."""

    def on_host(x):
        seen.append(x.shape)
        y = scipy.signal.lfilter([1.0], [1.0, -keep], x)
        return y.astype(np.float32)

    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(on_host, result, x, vmap_method="expand_dims")


def hundred_times(function, x):
    """Apply a function to its result a hundred times, in a compiled loop."""
    return jax.lax.fori_loop(0, 100, lambda _, x: function(x), x)


def unregistered(x):
    """Call a name that was never registered; raises JaxRuntimeError."""
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.ffi.ffi_call("decoy", result)(x, keep=np.float32(0.9))


def decay_of_counts(x):
    """Pass integers for floats; raises JaxRuntimeError."""
    return foreign_decay(jnp.arange(len(x)), 0.9)


def decay_at_last(x):
    """Ask for one number of the decay; raises JaxRuntimeError."""
    result = jax.ShapeDtypeStruct((), x.dtype)
    return jax.ffi.ffi_call("decay", result)(x, keep=np.float32(0.9))
