"""Put mistakes that readers make into the code of pages, and say which a page notices.

`nox -s mutants`, with the names of pages or without. A page that says that two things are equal
must not say so of a wrong one. Each row of mutants.toml replaces a text in a module of snippets/.
The cells of its page are executed with it. The mistake is noticed where a cell raises, or prints
something else. What two right runs print differently does not count. A row that names a `test`
is a mistake of which the page shows too little: where the page does not notice it, that test must.
With `prints_code` the page prints the code that it runs, and so anything else than that: there the
test alone counts.
"""

import argparse
import contextlib
import dataclasses
import importlib
import io
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import traceback

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext")]
MUTANTS = HERE.with_name("mutants.toml")
RUN = "import sys; from tests.mutants import run; run(*sys.argv[1:])"
# Seconds for a page: a process that a mistake lets wait forever has noticed it.
LIMIT = 1800
FOUND = "found.json"
BEGUN = "begun"


def run(docname, *folders):
    """Execute a page once with the snippets of each folder, in processes forked after imports.

    Each writes what its cells printed and raised into its folder, as found.json. The first two are
    right; what has another output than they have ends there.
    """
    from executed.hooks import features
    from executed.options import Options
    from executed.run import imports
    from executed.source.pages import read_page
    from executed.source.snippets import Library

    def page_with(folder):
        options = dataclasses.replace(
            Options.from_file(), snippets=str(pathlib.Path(folder, "snippets")), preview=True
        )
        names = {name for feature in features(options) for name in feature.cell_options}
        path = options.page_files[docname].resolve()
        return options, read_page(docname, path, Library.of(options), cell_options=names)

    options, page = page_with(folders[0])
    sources = [cell.source for cell in page.cells]
    modules = imports.warm_modules(sources, options.registry)
    if modules is None:
        modules = imports.first_modules(sources, options.registry)
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    machine = runpy.run_path(str(ROOT / "docs" / "_ext" / "executed" / "run" / "machine.py"))
    most = machine["places"](2)

    def execute_all(folders, known):
        waiting, running = list(folders), 0
        while waiting or running:
            if waiting and running < most:
                folder = waiting.pop(0)
                running += 1
                if not os.fork():
                    status = 1
                    try:
                        execute(*page_with(folder), pathlib.Path(folder), known)
                        status = 0
                    except BaseException:
                        traceback.print_exc()
                    finally:
                        os._exit(status)
            else:
                os.wait()
                running -= 1

    execute_all(folders[:2], ())
    known = [json.loads(pathlib.Path(one, FOUND).read_text("utf8")) for one in folders[:2]]
    execute_all(folders[2:], known)


def execute(options, page, folder, known):
    """Execute the cells of a page in this process, and write what each printed or raised.

    Ends with the first cell that has another outcome than in `known`, of two right runs.
    """
    from IPython.core.interactiveshell import InteractiveShell

    signal.alarm(LIMIT)
    pathlib.Path(folder, BEGUN).touch()
    sources = [options.before, *(cell.source for cell in page.cells)]
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    work = folder / "work"
    work.mkdir()
    for name, text in page.files.items():
        pathlib.Path(work, f"{name}.py").write_text(text, "utf8")
    for each in page.named_files:
        pathlib.Path(work, each.name).symlink_to(each.resolve())
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    os.chdir(work)
    sys.path.insert(0, str(work))
    shell = InteractiveShell.instance()
    shell.showtraceback = lambda *args, **settings: None
    found = []
    for source in sources:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            result = shell.run_cell(source)
        error = result.error_before_exec or result.error_in_exec
        # What is shown as HTML prints nothing that says what is in it.
        html = getattr(result.result, "_repr_html_", None)
        shown = html() if html and not isinstance(result.result, type) else ""
        found.append([f"{said.getvalue()}{shown or ''}", type(error).__name__ if error else ""])
        if known and notices(*known, found) == len(found) - 1:
            break
    pathlib.Path(folder, FOUND).write_text(json.dumps(found), "utf8")


def outputs(docname, changes):
    """Return what the cells of a page print and raise: right, once more, and with each mistake."""
    from executed.options import Options
    from executed.run import environment

    changes = [None, None, *changes]
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folders = [pathlib.Path(place, str(number)) for number in range(len(changes))]
        for folder, change in zip(folders, changes, strict=True):
            shutil.copytree(ROOT / "snippets", folder / "snippets")
            if change:
                put(change, folder / "snippets")
        words = [sys.executable, "-c", RUN, docname, *map(str, folders)]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "docs" / "_ext")])
        env = environment.parent_environment(Options.from_file()) | {"PYTHONPATH": paths}
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
        found = [folder / FOUND for folder in folders]
        if not all(pathlib.Path(folder, BEGUN).exists() for folder in folders):
            raise SystemExit(f"{docname} cannot be read:\n{done.stderr[-2000:]}")
        # A process that the mistake ends has noticed it.
        return [
            json.loads(path.read_text("utf8"))
            if path.exists()
            else ([["", "ended"]] if change else done.stderr[-2000:])
            for path, change in zip(found, changes, strict=True)
        ]


def put(change, snippets):
    """Put a mistake into a folder of snippets; SystemExit unless its place is there once."""
    path = snippets / f"{change['module'].replace('.', '/')}.py"
    text = path.read_text("utf8")
    if text.count(change["before"]) != 1:
        raise SystemExit(f"{MUTANTS.name}: {change['before']!r} is not once in {path.name}")
    path.write_text(text.replace(change["before"], change["after"]), "utf8")


def fails(test, folder):
    """Return whether a test fails with a folder's snippets; SystemExit where it cannot be run."""
    paths = [str(folder), str(ROOT), *(str(ROOT / each) for each in ("docs", "docs/_ext"))]
    words = [sys.executable, "-m", "pytest", "-x", "-o", f"pythonpath={' '.join(paths)}", test]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{test} cannot be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


def tested(change):
    """Return whether the test of a row passes without its mistake, and fails with it."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        shutil.copytree(ROOT / "snippets", pathlib.Path(place, "snippets"))
        if fails(change["test"], place):
            raise SystemExit(f"{change['test']} fails without a mistake")
        put(change, pathlib.Path(place, "snippets"))
        return fails(change["test"], place)


def notices(right, again, wrong):
    """Return the number of the first cell that shows a mistake, or None; `wrong` may end there."""
    pairs = zip(right, again, wrong, strict=False)
    for number, (one, other, found) in enumerate(pairs):
        if one == other != found:
            return number
    return None


def main():
    """Print the table; leave with 1 where a mistake is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*")
    pages = parser.parse_args().pages
    changes = tomllib.loads(MUTANTS.read_text("utf8"))["mutant"]
    if unknown := {*pages} - {each["page"] for each in changes}:
        parser.error(f"there is no mistake for {', '.join(sorted(unknown))} in {MUTANTS.name}")
    changes = [each for each in changes if not pages or each["page"] in pages]
    missed = 0
    print("| page | mistake | noticed |\n|---|---|---|", flush=True)
    for name in sorted({each["page"] for each in changes}):
        own = [each for each in changes if each["page"] == name]
        right, again, *wrong = outputs(name, own)
        if isinstance(right, str):
            raise SystemExit(f"{name} cannot be executed:\n{right}")
        for each, found in zip(own, wrong, strict=True):
            number = notices(right, again, found)
            said = "no" if number is None else f"by cell {number}"
            if each.get("prints_code") or (number is None and "test" in each):
                said = f"by {each['test']}" if tested(each) else "no"
            missed += said == "no"
            print(f"| {name} | {each['mistake']} | {said} |", flush=True)
    print(f"{len(changes) - missed} of {len(changes)} mistakes are noticed")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
