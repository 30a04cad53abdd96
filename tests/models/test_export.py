"""The model as a file: open lengths, a fresh process, and the cache on disk."""

import json
import pathlib

import jax
import numpy as np
import pytest
import torch
from jax import export as jax_export
from jax.experimental.compilation_cache import compilation_cache

from snippets.models import export, real_model
from snippets.programs.launcher import Finished

EXPIRED = "jax_export_deserialize_expired_versions"


@pytest.fixture(scope="module")
def tensors():
    return export.named_tensors(real_model.model_folder() / "model.safetensors")


@pytest.fixture(scope="module")
def exported(tensors):
    return export.export_open(tensors)


@pytest.fixture(scope="module")
def batch():
    tokenizer = real_model.read_tokenizer(real_model.model_folder())
    return real_model.tokenize(tokenizer, real_model.LIBRARY)


def test_the_arrays_of_the_file_are_enough(tensors, batch):
    folder = real_model.model_folder()
    params = real_model.load_params(folder / "model.safetensors", real_model.Config())
    expected = real_model.embed(params, *batch, real_model.Config())
    np.testing.assert_allclose(export.embed_from_file(tensors, *batch), expected, atol=2e-5)
    assert len(tensors) == 101


def test_shapes_stand_for_arrays():
    assert export.like({"a": np.ones((2, 3), np.float32)}) == {
        "a": jax.ShapeDtypeStruct((2, 3), np.float32)
    }


def test_the_program_takes_any_number_of_sentences_of_any_length(tensors, exported, batch):
    again = jax_export.deserialize(bytearray(exported.serialize()))
    assert again.platforms == ("cpu", "cuda", "tpu")
    ids, mask = batch
    for rows, length in ((8, 15), (2, 12)):
        part = ids[:rows, :length], mask[:rows, :length]
        expected = export.embed_from_file(tensors, *part)
        np.testing.assert_allclose(again.call(tensors, *part), expected, atol=2e-5)
    assert len(exported.serialize()) < 200_000


def test_a_file_from_a_version_of_long_ago_is_refused_unless_allowed():
    # JAX 0.7.2 wrote it: jnp.sin of float32[3].
    saved = bytearray((pathlib.Path(__file__).parent / "exported_by_jax_0_7_2.bin").read_bytes())
    ones = np.ones(3, np.float32)
    if not hasattr(jax.config, EXPIRED):
        np.testing.assert_allclose(
            jax_export.deserialize(saved).call(ones), np.sin(ones), rtol=1e-6
        )
        return
    with pytest.raises(ValueError, match="older than the 6-month backward-compatibility window"):
        jax_export.deserialize(saved)
    jax.config.update(EXPIRED, True)
    try:
        with pytest.warns(DeprecationWarning, match="6-month"):
            again = jax_export.deserialize(saved)
    finally:
        jax.config.update(EXPIRED, False)
    np.testing.assert_allclose(again.call(ones), np.sin(ones), rtol=1e-6)


def test_a_longer_sentence_than_said_is_refused(tensors, exported):
    ids = np.ones((1, 513), np.int32)
    with pytest.raises(ValueError, match="length"):
        exported.call(tensors, ids, ids > 0)


def test_call_with_float_raises(raises_declared, tensors, exported, batch):
    raises_declared(export.call_with_float, exported, tensors, *batch)


def test_pytorch_exports_the_same(tensors, batch):
    ids, mask = batch
    model = real_model.torch_model(real_model.model_folder())
    program = export.export_torch(model, ids, mask).module()
    assert mask[:2, :12].all() and not mask[1:].all()
    for some in (slice(2), slice(12)), (slice(1, None), slice(None)):
        own = ids[some], mask[some]
        theirs = program(torch.from_numpy(own[0]).long(), torch.from_numpy(own[1]))
        expected = export.embed_from_file(tensors, *own)
        np.testing.assert_allclose(theirs.detach().numpy(), expected, atol=2e-5)


@pytest.fixture
def without_the_cache():
    """Compile anew: what JAX's cache returns can't be loaded from a file."""
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    jax.clear_caches()
    yield
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


def test_a_program_of_the_cache_cannot_be_loaded_from_a_file(tensors, exported, batch, tmp_path):
    ids, mask = batch
    folder = jax.config.jax_compilation_cache_dir
    (tmp_path / "cache").mkdir()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
    try:
        for _ in range(2):
            compilation_cache.reset_cache()
            jax.clear_caches()
            compiled = export.compile_ahead(tensors, ids, mask)
    finally:
        jax.config.update("jax_compilation_cache_dir", folder)
        compilation_cache.reset_cache()
    export.write_files(tmp_path, tensors, exported, compiled)
    np.save(tmp_path / "ids.npy", ids)
    with pytest.raises(RuntimeError, match=r"NOT_FOUND: Function .* not found"):
        export.run_server(tmp_path, AHEAD="1")


@pytest.mark.usefixtures("without_the_cache")
def test_fresh_processes_answer_the_same(tensors, exported, batch, tmp_path):
    ids, mask = batch
    export.write_files(tmp_path, tensors, exported, export.compile_ahead(tensors, ids, mask))
    np.save(tmp_path / "ids.npy", ids)
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    expected = export.embed_from_file(tensors, ids, mask)
    for variables in (cache, cache, {"AHEAD": "1"}):
        stages, vectors = export.run_server(tmp_path, **variables)
        assert [name for name, _ in stages] == ["start", "import", "weights", "program", "answer"]
        assert all(seconds >= 0 for _, seconds in stages)
        np.testing.assert_allclose(vectors, expected, atol=2e-5)
        assert export.files_in(tmp_path / "cache") == 1


def test_stages_are_what_lies_between_moments(monkeypatch):
    times = {"start": 2.0, "import": 5.0}
    text = "a warning\n" + json.dumps([times, [[1.0]]])
    monkeypatch.setattr(export.time, "time", lambda: 1.5)
    monkeypatch.setattr(export, "launch", lambda *_, **__: [Finished(0, 0, text)])
    stages, vectors = export.run_server("folder")
    assert stages == [("start", 0.5), ("import", 3.0)]
    assert vectors.tolist() == [[1.0]] and vectors.dtype == np.float32


@pytest.mark.parametrize(("shortest", "programs"), [(3600.0, 0), (0.0, 1)])
def test_the_cache_keeps_what_compiled_long_enough(shortest, programs):
    assert export.kept(shortest) == programs
