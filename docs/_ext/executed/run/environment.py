"""The environment variables that kernels see: harmless ones, the book's own, the frameworks'."""

import fnmatch
import os
from collections.abc import Mapping, Sequence

from ..options import Options

# They say who and where somebody is, not what a page prints.
HARMLESS = "PATH HOME USER LOGNAME SHELL VIRTUAL_ENV XDG_*_HOME XDG_RUNTIME_DIR".split()
# Sets of texts have another order in each process of Python, and so have messages that list them.
SAME_ORDER = {"PYTHONHASHSEED": "0"}
# They say how dates, numbers and messages are written.
LOCAL = "LANG LANGUAGE LC_* TZ".split()


def passed(options: Options, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that the book's pages may read: those its option `variables` names."""
    return _matching(options.variables, variables)


def local(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that say how a page prints dates, numbers and messages."""
    return _matching(LOCAL, variables)


def kernel_environment(
    options: Options, device: str, variables: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of kernels that execute for `device`."""
    platform = device.partition("-")[0]
    environment = SAME_ORDER | _matching(HARMLESS, variables) | local(variables)
    environment |= passed(options, variables)
    for framework in options.registry:
        environment |= framework.variables(platform)
    return environment | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def parent_environment(options: Options) -> dict[str, str]:
    """Return the environment of the processes that kernels are forked from."""
    environment = kernel_environment(options, "cpu")
    for framework in options.registry:
        environment |= framework.in_parallel
    return environment


def _matching(patterns: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(variables.items())
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }
