import importlib.util
import os
import pathlib
import types

import jax
import jax.extend.core
import pytest

PATH = pathlib.Path(__file__).parents[2] / "docs" / "_versions" / "prelude.py"
SPEC = importlib.util.spec_from_file_location("prelude", PATH)
prelude = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(prelude)


@pytest.fixture
def old(monkeypatch):
    """Return a JAX that has none of what the prelude gives, in its place."""

    def jit(fun, **options):
        return fun, options

    known = {}
    config = types.SimpleNamespace(update=known.__setitem__)
    monkeypatch.setattr(prelude, "jax", types.SimpleNamespace(jit=jit, config=config))
    monkeypatch.setenv("XLA_FLAGS", "--one")
    return prelude.jax, known


def test_the_jax_of_today_stays_as_it_is():
    before = jax.jit, jax.config.update, jax.enable_x64, jax.shard_map
    prelude.jit_with_options()
    prelude.number_of_cpu_devices()
    prelude.places()
    assert (jax.jit, jax.config.update, jax.enable_x64, jax.shard_map) == before


def test_what_checks_a_jaxpr_gets_its_place(monkeypatch):
    check = jax.extend.core.check_jaxpr
    monkeypatch.delattr(jax.extend.core, "check_jaxpr")
    places = types.SimpleNamespace(check_jaxpr=check)
    old = types.SimpleNamespace(core=places, enable_x64=None, shard_map=None)
    monkeypatch.setattr(prelude, "jax", old)
    prelude.places()
    assert jax.extend.core.check_jaxpr is check


def test_jit_takes_options_alone_and_a_function_as_before(old):
    prelude.jit_with_options()
    assert old[0].jit(static_argnames="n")(len) == (len, {"static_argnames": "n"})
    assert old[0].jit(len, static_argnames="n") == (len, {"static_argnames": "n"})
    assert old[0].jit(len) == (len, {})


def test_the_number_of_devices_becomes_a_flag_and_all_else_is_a_setting(old):
    prelude.number_of_cpu_devices()
    old[0].config.update("jax_num_cpu_devices", 2)
    assert os.environ["XLA_FLAGS"] == "--one --xla_force_host_platform_device_count=2"
    assert old[1] == {}
    old[0].config.update("jax_enable_x64", True)
    assert old[1] == {"jax_enable_x64": True}
