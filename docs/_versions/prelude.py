"""Names of today for what older versions of JAX have under others.

With it pages can run there. It is executed before the first cell of a page, and changes
nothing that a version has itself.
"""

import functools
import inspect
import os

import jax


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


if __name__ == "__main__":
    jit_with_options()
    number_of_cpu_devices()
    places()
