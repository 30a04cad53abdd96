"""Compile the functions that modules of snippets declare, and record the programs.

    PYTHONPATH=docs:docs/_ext python -m _compile [--again] [function ...]

It needs JAX and the compilers of the targets.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence

from compiled import program_files
from compiled.declared import CONSTANTS, Program, ProgramError, declared, declares, find
from compiled.options import CompiledOptions, Target, compile_targets, programs_folder
from compiled.programs import Head
from executed import files, typed_json
from executed.names import nearest
from executed.options import Options
from executed.source.snippets import Library, SnippetError

from . import compiling

MOST_BYTES = 400_000


def find_all(library: Library) -> tuple[dict[str, Program], list[str]]:
    """Return the programs that modules declare, by their files, and a list of problems."""
    programs, problems = {}, []
    for path in sorted(library.root.rglob("*.py")):
        name = ".".join(path.relative_to(library.root).with_suffix("").parts)
        try:
            module = library.module(name)
            assert module is not None
            for kind in (kind for kind in CONSTANTS if declares(module, kind)):
                for function in declared(module, kind):
                    program = find(library, f"{name}.{function}", kind)
                    programs[program.file] = program
        except (SnippetError, ProgramError) as error:
            problems.append(str(error))
    return programs, problems


def chosen(programs: Mapping[str, Program], names: Sequence[str]) -> list[Program]:
    """Return the programs with these names; all without a name."""
    for name in names:
        if not any(f".{program.name}".endswith(f".{name}") for program in programs.values()):
            hint = nearest(name, {program.name for program in programs.values()})
            raise SystemExit(f"no module declares a function '{name}'{hint}")
    ends = tuple(f".{name}" for name in names) or ""
    return [program for program in programs.values() if f".{program.name}".endswith(ends)]


def renew(program: Program, options: Options, targets: Mapping[str, Target], again: bool) -> str:
    """Compile one program where that is needed and print what came of it; return a problem."""
    path = programs_folder(options) / program.file
    state = program_files.state(path.parent, program, targets)[1]
    if state.current and not again:
        print(f"{program.title}: current")
        return ""
    started = time.monotonic()
    try:
        made = compiling.record(program, targets, options.of(CompiledOptions).compile_command)
        word = "written" if keep(path, made) else "unchanged"
    except Exception as error:
        return f"{program.title}: {type(error).__name__}: {error}"
    print(f"{program.title}: {word}, {time.monotonic() - started:.1f} s", flush=True)
    return ""


def written(record: Head) -> str:
    """Return the text of a record as it is kept, the same for the same record."""
    return typed_json.written(typed_json.untyped(record))


def keep(path: pathlib.Path, record: Head) -> bool:
    """Write a record, unless the one that is there differs in nothing but its date.

    Return whether it was written. Raises files.Unusable for one that is too large for a page, or
    that names a folder of this machine.
    """
    text = written(record)
    folders = str(pathlib.Path.cwd()), str(pathlib.Path.home()), sys.prefix
    if named := [folder for folder in folders if len(folder) > 3 and folder in text]:
        raise files.Unusable(f"it would hold {', '.join(named)}")
    if len(text.encode()) > MOST_BYTES:
        raise files.Unusable(f"it would be larger than {MOST_BYTES} bytes")
    with contextlib.suppress(OSError, files.Unusable):
        if dataclasses.replace(program_files.read(path), date=record.date) == record:
            return False
    files.write(path, text)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; return 1 after a problem."""
    options = Options.from_file("conf.py")
    command = options.of(CompiledOptions).compile_command
    parser = argparse.ArgumentParser(prog=f"{command} --", description=__doc__)
    parser.add_argument("function", nargs="*", help="only these, as module.function")
    parser.add_argument("--again", action="store_true", help="compile what is current as well")
    given = parser.parse_args(arguments)
    targets = compile_targets(options)
    programs, problems = find_all(Library.of(options))
    wanted = chosen(programs, given.function)
    compiling.prepare(targets)
    problems += [renew(program, options, targets, given.again) for program in wanted]
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
