import importlib
import subprocess
import sys
from importlib import metadata

import jax
import jax.extend.core
import pytest

from snippets.pitfalls import installing


def test_the_parts_of_jax_have_their_versions():
    found = installing.installed()
    assert found["jax"] == jax.__version__
    assert found["jaxlib"] == metadata.version("jaxlib")
    assert all(name.startswith(("jax", "libtpu")) for name in found)
    assert "jaxtyping" not in found


def test_a_gpu_that_is_not_there(raises_declared):
    if "gpu" in {device.platform for device in jax.devices()}:
        pytest.skip("this machine has a GPU")
    raises_declared(installing.first_gpu)


def test_names_that_are_gone(raises_declared):
    raises_declared(installing.primitive_as_before, "double")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'jax\.config'"):
        importlib.import_module("jax.config")
    assert jax.config.update and jax.extend.core.Primitive
    raises_declared(installing.clip_as_before, [1.0, 3.0], 2.0)
    assert jax.numpy.clip(jax.numpy.array([1.0, 3.0]), max=2.0).tolist() == [1, 2]


def test_the_report_for_an_issue_names_both_packages():
    report = jax.print_environment_info(return_string=True)
    assert f"jax:    {jax.__version__}" in report
    assert f"jaxlib: {metadata.version('jaxlib')}" in report


def test_a_file_named_jax_hides_the_package(tmp_path):
    (tmp_path / "jax.py").write_text("")
    code = "import jax.numpy"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'jax.numpy'; 'jax' is not a package" in run.stderr
