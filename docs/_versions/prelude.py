"""Names of today for what older versions of JAX have under others.

With it pages can run there. It is executed before the first cell of a page, and changes
nothing that a version has itself.
"""

import functools
import inspect
import math
import os

import jax
import numpy


def jit_with_options():
    """Let `jax.jit` take options alone, as in `@jax.jit(static_argnames="n")`."""
    jit = jax.jit
    if inspect.signature(jit).parameters["fun"].default is not inspect.Parameter.empty:
        return

    @functools.wraps(jit)
    def with_options(fun=None, /, **options):
        if fun is None:
            return functools.partial(jit, **options)
        return jit(fun, **options)

    jax.jit = with_options


def number_of_cpu_devices():
    """Let `jax_num_cpu_devices` be set where only a flag of XLA does so."""
    update = jax.config.update
    if hasattr(jax.config, "jax_num_cpu_devices"):
        return

    def with_devices(name, value):
        if name != "jax_num_cpu_devices":
            return update(name, value)
        flag = f"--xla_force_host_platform_device_count={value}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"

    jax.config.update = with_devices


def places():
    """Give what was experimental the place that it has now."""
    if not hasattr(jax, "enable_x64"):
        from jax.experimental import enable_x64

        jax.enable_x64 = enable_x64
    if not hasattr(jax, "shard_map"):
        from jax.experimental.shard_map import shard_map

        jax.shard_map = shard_map
    from jax.extend import core

    if not hasattr(core, "check_jaxpr"):
        core.check_jaxpr = jax.core.check_jaxpr


def layouts():
    """Give what describes layouts on devices the names that it has now."""
    if not hasattr(jax, "P"):
        jax.P = jax.sharding.PartitionSpec
    if not hasattr(jax, "set_mesh") and hasattr(jax.sharding, "use_mesh"):
        jax.set_mesh = jax.sharding.use_mesh
    if hasattr(jax, "make_mesh"):
        return

    def make_mesh(shape, names, *, devices=None):
        devices = jax.devices() if devices is None else devices
        return jax.sharding.Mesh(numpy.reshape(devices[: math.prod(shape)], shape), names)

    jax.make_mesh = make_mesh


def listeners():
    """Let `jax.monitoring` take a listener out again where only its insides can."""
    if hasattr(jax.monitoring, "unregister_event_duration_listener"):
        return
    from jax._src import monitoring

    jax.monitoring.unregister_event_duration_listener = (
        monitoring._unregister_event_duration_listener_by_callback
    )


if __name__ == "__main__":
    jit_with_options()
    number_of_cpu_devices()
    places()
    layouts()
    listeners()
