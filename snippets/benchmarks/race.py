"""What benchmarks share: equal terms, errors, and when something pays off."""

import contextlib
import functools
import os
import shutil
import sys
import tempfile
import warnings
from unittest import mock

import numpy as np
import torch


def torch_tensor(array):
    """Return a NumPy array as a tensor on the accelerator, if there is one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.tensor(array, device=found or "cpu")


def on_host(array):
    """Return any framework's array in NumPy, copied from an accelerator."""
    return np.asarray(
        array.cpu() if isinstance(array, torch.Tensor) else array
    )


def bound(functions, *arrays):
    """Return what to compare: functions of copies of the same NumPy arrays.

    `functions` maps keys to pairs of a function and how its framework takes a
    NumPy array.
    """
    return {
        key: functools.partial(function, *map(convert, arrays))
        for key, (function, convert) in functions.items()
    }


def has_cpp_compiler():
    """Say whether there is a C++ compiler for torch.compile on a CPU."""
    return any(
        shutil.which(name)
        for name in (os.environ.get("CXX", ""), "g++", "clang++")
    )


def headers_folder():
    """Return where PyTorch keeps its translated C++ headers."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    unset = mock.patch.dict(
        os.environ, dict.fromkeys(("TMPDIR", "TEMP", "TMP"), "")
    )
    with unset, mock.patch.object(tempfile, "tempdir", None):
        return os.path.join(default_cache_dir(), "precompiled_headers")


@contextlib.contextmanager
def after_a_first_program():
    """Spare what runs inside torch.compile's first program.

    That finds out about the processor, translates headers and imports.
    Without a C++ compiler on the machine it fails, and nothing is spared.
    """
    import torch
    from torch._inductor import codecache, config, exc

    device = torch.accelerator.current_accelerator(check_available=True)
    headers = mock.patch.object(codecache, "_HEADER_DIR", headers_folder())
    with headers, config.patch({"cpp.vec_isa_ok": True}):
        with contextlib.suppress(exc.InductorError):
            torch.compile(torch.sin)(torch.ones(3, device=device))
        yield


@contextlib.contextmanager
def empty_torch_cache():
    """Let torch.compile start from an empty cache.

    It is spared what a first program pays. Its warning that TF32 is not
    used is suppressed, as races forbid TF32.
    """
    with contextlib.ExitStack() as given:
        given.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "TensorFloat32")
        given.enter_context(mock.patch.dict(os.environ))
        if "torch" in sys.modules:
            given.enter_context(after_a_first_program())
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = given.enter_context(folder)
        yield


def largest_difference(result, exact):
    """Return the largest absolute difference of an array from `exact`."""
    return float(np.max(np.abs(on_host(result).astype(np.float64) - exact)))


def relative_error(product, exact):
    """Return the Frobenius norm of `product - exact`, by that of `exact`."""
    difference = on_host(product).astype(np.float64) - exact
    return float(np.linalg.norm(difference) / np.linalg.norm(exact))


def pays_from(races, other, ours):
    """Return the size from which on `ours` is measurably faster.

    `races` maps sizes to comparisons that have both keys. None where
    `ours` is not faster at the largest size.
    """
    found = None
    for size in sorted(races, reverse=True):
        ratio = races[size].ratio(other, ours)
        if not ratio.different or ratio.value < 1:
            break
        found = size
    return found
