"""Checks the exercises in one file of a reader, in a process of its own.

Called as `python -m jax_measured.checking LESSON FILE ANSWER`. It writes what is not right yet into
the file ANSWER, {exercise: words, or null}.
"""

import importlib
import importlib.util
import json
import pathlib
import sys

from .practice import problem_of


def answers_of(path):
    """Import a file of a reader; return it, and in words what kept it from being imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        return module, f"line {error.lineno} is no Python: {error.msg}"
    except ModuleNotFoundError as error:
        return module, f"{error.name} is not installed"
    except Exception as error:  # It is somebody's program.
        return module, f"the file raises {type(error).__name__}: {error}"
    return module, None


def main(lesson, path, answer):
    """Write what is not right about the exercises of a lesson."""
    given, problem = answers_of(pathlib.Path(path))
    checks = importlib.import_module(f"{__package__}.checks.{lesson}")
    problems = {}
    # A warning of a check adds a name to its module.
    for name, check in list(vars(checks).items()):
        if name.startswith("check_"):
            exercise = name.removeprefix("check_")
            if problem is None and not hasattr(given, exercise):
                problems[exercise] = f"the file defines no `{exercise}`"
            else:
                problems[exercise] = problem or problem_of(
                    check, getattr(given, exercise)
                )
    pathlib.Path(answer).write_text(json.dumps(problems), "utf8")


if __name__ == "__main__":
    main(*sys.argv[1:])
