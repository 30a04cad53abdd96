"""Programs that run an exported model without JAX."""

import json
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import export
from jax.experimental import jax2tf

from snippets.programs.launcher import launch

HELPERS = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include "xla/pjrt/c/pjrt_c_api.h"

const PJRT_Api* api;

template <class Args>
Args make() {
  Args args{};
  args.struct_size = sizeof(args);
  return args;
}

void check(PJRT_Error* error) {
  if (!error) return;
  auto args = make<PJRT_Error_Message_Args>();
  args.error = error;
  api->PJRT_Error_Message(&args);
  std::fprintf(stderr, "%.*s\n", int(args.message_size), args.message);
  std::exit(1);
}

void await(PJRT_Event* event) {
  auto args = make<PJRT_Event_Await_Args>();
  args.event = event;
  check(api->PJRT_Event_Await(&args));
}

PJRT_Client* load(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (!plugin) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  void* get = dlsym(plugin, "GetPjrtApi");
  if (!get) {
    std::fprintf(stderr, "%s is no plugin of PJRT\n", path);
    std::exit(1);
  }
  api = reinterpret_cast<const PJRT_Api* (*)()>(get)();
  auto initialize = make<PJRT_Plugin_Initialize_Args>();
  check(api->PJRT_Plugin_Initialize(&initialize));
  auto create = make<PJRT_Client_Create_Args>();
  check(api->PJRT_Client_Create(&create));
  return create.client;
}
"""

COMPILE = r"""
PJRT_LoadedExecutable* compile(PJRT_Client* client, const char* path) {
  std::stringstream file;
  file << std::ifstream(path, std::ios::binary).rdbuf();
  std::string code = file.str(), options = "\x1a\x04\x20\x01\x28\x01";
  auto program = make<PJRT_Program>();
  program.code = code.data();
  program.code_size = code.size();
  program.format = "mlir";
  program.format_size = 4;
  auto args = make<PJRT_Client_Compile_Args>();
  args.client = client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  check(api->PJRT_Client_Compile(&args));
  return args.executable;
}
"""

BUFFERS = r"""
PJRT_Buffer* to_device(PJRT_Client* client, const float* data,
                       const int64_t* dims, size_t rank) {
  auto devices = make<PJRT_Client_AddressableDevices_Args>();
  devices.client = client;
  check(api->PJRT_Client_AddressableDevices(&devices));
  auto args = make<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = rank;
  args.device = devices.addressable_devices[0];
  args.host_buffer_semantics =
      PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  check(api->PJRT_Client_BufferFromHostBuffer(&args));
  await(args.done_with_host_buffer);
  return args.buffer;
}

void to_host(PJRT_Buffer* buffer, float* data, size_t bytes) {
  auto args = make<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.dst = data;
  args.dst_size = bytes;
  check(api->PJRT_Buffer_ToHostBuffer(&args));
  await(args.event);
}
"""

MAIN = r"""
int main(int, char** paths) {
  auto client = load(paths[1]);
  float x[] = {0, 1, 2, 3, 4, 5}, y[2];
  int64_t dims[] = {2, 3};
  PJRT_Buffer* inputs[] = {to_device(client, x, dims, 2)};
  PJRT_Buffer *const* lists[] = {inputs}, *outputs[1], **found[] = {outputs};
  auto options = make<PJRT_ExecuteOptions>();
  auto args = make<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = compile(client, paths[2]);
  args.options = &options;
  args.argument_lists = lists;
  args.num_devices = args.num_args = 1;
  args.output_lists = found;
  check(api->PJRT_LoadedExecutable_Execute(&args));
  to_host(outputs[0], y, sizeof(y));
  for (float value : y) std::printf("%.6f\n", value);
}
"""


def score(x):
    """Return a score (n,) for each row of x (n, 3), float32."""
    return jnp.tanh(x @ jnp.arange(3.0))


def cholesky_diagonal(x):
    """Return the diagonal (n,) of a factor of x xT + 1, for x (n, 3)."""
    return jnp.diag(jnp.linalg.cholesky(x @ x.T + jnp.eye(len(x))))


def called_back(x):
    """Return the sines of x, computed by NumPy in a callback."""
    return jax.pure_callback(np.sin, x, x, vmap_method="sequential")


def named(x):
    """Return a named tuple, a pytree that belongs to this program."""
    return jnp.linalg.eigh(x.T @ x)


def outcome(f, *args):
    """Call f; say "works", or what it raises."""
    try:
        f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:75]}"
    return "works"


def through_file(f, x, platforms=("cpu",), vjp_order=0):
    """Export f for x, write and read it; return the exported program."""
    exported = export.export(jax.jit(f), platforms=platforms)(x)
    saved = exported.serialize(vjp_order=vjp_order)
    return export.deserialize(bytearray(saved))


def file_size(f, *args):
    """Return the bytes of a file with f, exported for arguments like these."""
    exported = export.export(jax.jit(f), platforms=("cpu",))(*args)
    return len(exported.serialize())


def input_order(*args):
    """Return the arrays that an exported program takes, in its order.

    Each is (path, shape, dtype), with a path such as args[0]['kernel'].
    """
    leaves, _ = jax.tree.flatten_with_path(args)
    return [
        (f"args{jax.tree_util.keystr(path)}", leaf.shape, str(leaf.dtype))
        for path, leaf in leaves
    ]


def write_program(f, x, path):
    """Write the StableHLO of f for arrays like x, and nothing else."""
    exported = export.export(jax.jit(f), platforms=("cpu",))(x)
    pathlib.Path(path).write_bytes(exported.mlir_module_serialized)


def save_model(f, shape, folder):
    """Write f as a SavedModel; its float32 argument may have open sizes.

    An open size is None in the shape. TensorFlow can't differentiate it.
    """
    names = ", ".join(
        f"size{axis}" if size is None else str(size)
        for axis, size in enumerate(shape)
    )
    converted = jax2tf.convert(
        f, polymorphic_shapes=[names], with_gradient=False
    )
    module = tf.Module()
    signature = [tf.TensorSpec(shape, tf.float32)]
    module.f = tf.function(
        converted, input_signature=signature, autograph=False
    )
    tf.saved_model.save(module, str(folder))


def answer_without_jax():
    """Load a SavedModel and call it; print the result, or what is refused.

    TensorFlow imports JAX if it can, so here it can't.
    """
    import json
    import os
    import re
    import sys

    sys.modules["jax"] = None
    import tensorflow as tf

    x = tf.constant(json.loads(os.environ["INPUT"]))
    model = tf.saved_model.load(os.environ["FOLDER"])
    try:
        found = model.f(x).numpy().tolist()
    except tf.errors.OpError as error:
        named = re.search("unregistered operation '.*?'", str(error))
        found = named[0] if named else type(error).__name__
    print(json.dumps({"found": found}))


def in_tensorflow(f, shape, x, folder):
    """Save f, and call it in a process without JAX.

    Returns the result, or what TensorFlow refused.
    """
    save_model(f, shape, folder)
    variables = {"FOLDER": str(folder), "INPUT": json.dumps(x.tolist())}
    [ended] = launch(answer_without_jax, 1, 1, variables=lambda *_: variables)
    lines = ended.text.splitlines()
    [said] = [line for line in lines if line.startswith('{"found"')]
    return json.loads(said)["found"]


def build(source, folder):
    """Compile C++ with the headers of PJRT that TensorFlow ships."""
    headers = pathlib.Path(tf.__file__).parent / "include/tensorflow/compiler"
    code, program = pathlib.Path(folder, "run.cc"), pathlib.Path(folder, "run")
    code.write_text(source)
    command = ["c++", "-std=c++17", "-isystem", headers, code, "-o", program]
    subprocess.run([*command, "-ldl"], check=True)
    return program
