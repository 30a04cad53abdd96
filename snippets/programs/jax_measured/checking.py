"""Checks the exercises in one file of a reader, in a process of its own.

Called as `python -m jax_measured.checking LESSON FILE ANSWER NAMES RIGHT`, the last two with commas.
For each exercise of NAMES it adds a line to the file ANSWER when it begins, {"name"}, and another
with what came out: {"name", "problem", "given"}. The problem is null where there is none. Those in
`given` are exercises that the answer calls and that are wrong by themselves: it was judged with
their solutions instead. RIGHT are those that are known to be right. Where the file cannot be
imported, the only line says why, without a name: {"problem"}.
"""

import ast
import importlib
import importlib.util
import json
import pathlib
import sys

from .practice import problem_of
from .practising import used_in


def answers_of(path, given=()):
    """Import a file of a reader; return it, and in words what kept it from being imported.

    `given` are solutions that take the place of what the file defines, {name: their module}.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        tree = ast.parse(path.read_bytes(), str(path))
        for place, node in enumerate(tree.body):
            if (name := getattr(node, "name", None)) in given:
                alias = ast.alias(name)
                solution = ast.ImportFrom(given[name], [alias], 0)
                ast.copy_location(alias, node)
                tree.body[place] = ast.copy_location(solution, node)
        exec(compile(tree, str(path), "exec"), vars(module))
    except SyntaxError as error:
        return module, f"line {error.lineno} is no Python: {error.msg}"
    except ModuleNotFoundError as error:
        return module, f"{error.name} is not installed"
    except Exception as error:  # It is somebody's program.
        return module, f"the file raises {type(error).__name__}: {error}"
    return module, None


class Judge:
    """What is not right about the exercises in a file, each judged once."""

    def __init__(self, lesson, path, right=()):
        """Import a lesson and the file of a reader, in which some exercises are known as right."""
        self.path = path
        self.solutions = f"{__package__}.solutions.{lesson}"
        self.module, self.problem = answers_of(path)
        checks = importlib.import_module(f"{__package__}.checks.{lesson}")
        # A warning of a check adds a name to its module.
        self.checks = {
            name.removeprefix("check_"): check
            for name, check in list(vars(checks).items())
            if name.startswith("check_")
        }
        self.used = {} if self.problem else used_in(path.read_text("utf8"))
        self.known = dict.fromkeys(right, (None, []))

    def verdict(self, name):
        """Return what is not right about an exercise, and which others were given."""
        if name not in self.known:
            self.known[name] = self.judged(name)
        return self.known[name]

    def judged(self, name):
        """Judge an exercise, where it is wrong with solutions for those that it calls."""
        problem = self.problem_in(self.module, name)
        if problem is None:
            return problem, []
        others = [
            other
            for other in self.checks
            if other in self.used.get(name, ())
            and other != name
            # What uses each other has no order.
            and name not in self.used[other]
        ]
        wrong = [
            other for other in others if self.verdict(other)[0] is not None
        ]
        if not wrong:
            return problem, []
        module, failed = answers_of(
            self.path, dict.fromkeys(wrong, self.solutions)
        )
        if failed:
            return problem, []
        return self.problem_in(module, name), wrong

    def problem_in(self, module, name):
        """Return what is not right about an exercise of a module."""
        if not hasattr(module, name):
            return f"the file defines no `{name}`"
        return problem_of(self.checks[name], getattr(module, name))


def main(lesson, path, answer, names, right):
    """Write what is not right about exercises of a lesson, one after the other."""
    judge = Judge(lesson, pathlib.Path(path), right.split(","))
    with pathlib.Path(answer).open("a", encoding="utf8") as lines:
        if judge.problem:
            print(json.dumps({"problem": judge.problem}), file=lines)
            return
        for name in names.split(","):
            print(json.dumps({"name": name}), file=lines, flush=True)
            problem, given = judge.verdict(name)
            said = {"name": name, "problem": problem, "given": given}
            print(json.dumps(said), file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
