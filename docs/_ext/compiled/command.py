"""Compile the functions that pages name, and record the programs.

    PYTHONPATH=docs/_ext python -m compiled.command [--again] [function ...]

It needs JAX and the compilers of the targets.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from executed.names import nearest
from executed.options import Options, Target

from . import compiling
from . import program_files as store
from .declared import Program, find_all


def chosen(found: Mapping[str, Program], names: Sequence[str]) -> list[Program]:
    """Return the programs of `found` with these names; all without a name."""
    for name in names:
        if not any(f".{program.name}".endswith(f".{name}") for program in found.values()):
            hint = nearest(name, {program.name for program in found.values()})
            raise SystemExit(f"no page names a function '{name}'{hint}")
    ends = tuple(f".{name}" for name in names) or ""
    return [program for program in found.values() if f".{program.name}".endswith(ends)]


def renew(program: Program, options: Options, targets: Mapping[str, Target], again: bool) -> str:
    """Compile one program where that is needed and print what came of it; return a problem."""
    path = options.folder("programs") / program.file
    state = store.state(path.parent, program, targets)[1]
    if state.word == "current" and not again:
        print(f"{program.title}: current")
        return ""
    started = time.monotonic()
    try:
        made = compiling.record(program, targets, options.compile_command)
        word = "written" if store.keep(path, made) else "unchanged"
    except Exception as error:
        return f"{program.title}: {type(error).__name__}: {error}"
    print(f"{program.title}: {word}, {time.monotonic() - started:.1f} s", flush=True)
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; return 1 after a problem."""
    options = Options.from_file("conf.py")
    parser = argparse.ArgumentParser(prog=f"{options.compile_command} --", description=__doc__)
    parser.add_argument("function", nargs="*", help="only these, as module.function")
    parser.add_argument("--again", action="store_true", help="compile what is current as well")
    given = parser.parse_args(arguments)
    targets = options.compile_targets
    found, problems = find_all(options)
    programs = chosen(found, given.function)
    compiling.prepare(targets)
    problems += [renew(program, options, targets, given.again) for program in programs]
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
