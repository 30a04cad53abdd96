"""What benchmarks share: equal terms, errors, and when something pays off."""

import functools
import os
import shutil
import warnings

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


def compile_something_first():
    """Have torch.compile compile a program that does not count.

    The first of a process also imports the compiler, finds out about the
    processor and translates headers. The warning that TF32 is not used is
    suppressed, as races forbid TF32.
    """
    warnings.filterwarnings("ignore", "TensorFloat32")
    if torch.cuda.is_available() or has_cpp_compiler():
        torch.compile(torch.sin)(torch_tensor(np.ones(3, np.float32)))


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
