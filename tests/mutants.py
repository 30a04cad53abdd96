"""Put mistakes that readers make into the code of pages, and say which a page notices.

`nox -s mutants`, with the names of pages or without. A page that says that two things are equal
must not say so of a wrong one. Each row of mutants.toml replaces a text in a module of snippets/.
The cells of its page are executed with it. The mistake is noticed where a cell raises, or prints
something else. What two right runs print differently does not count.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[1]
MUTANTS = HERE.with_name("mutants.toml")
RUN = "import sys; from tests.mutants import run; run(*sys.argv[1:])"


def run(docname, snippets, work):
    """Execute the cells of a page, and print what each printed or raised as JSON."""
    from IPython.core.interactiveshell import InteractiveShell

    from executed.hooks import features
    from executed.options import Options
    from executed.source.pages import read_page
    from executed.source.snippets import Library

    options = dataclasses.replace(Options.from_file(), snippets=snippets, preview=True)
    names = {name for feature in features(options) for name in feature.cell_options}
    path = options.page_files[docname].resolve()
    page = read_page(docname, path, Library.of(options), cell_options=names)
    for name, text in page.files.items():
        pathlib.Path(work, f"{name}.py").write_text(text, "utf8")
    for each in page.beside:
        pathlib.Path(work, each.name).symlink_to(each.resolve())
    sources = [options.before, *(cell.source for cell in page.cells)]
    os.chdir(work)
    sys.path.insert(0, work)
    shell = InteractiveShell.instance()
    shell.showtraceback = lambda *args, **settings: None
    found = []
    for source in sources:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            result = shell.run_cell(source)
        error = result.error_before_exec or result.error_in_exec
        found.append([said.getvalue(), type(error).__name__ if error else ""])
    print(json.dumps(found))


def outputs(docname, change=None):
    """Return what the cells of a page print and raise, with a mistake or without."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        snippets, work = pathlib.Path(place, "snippets"), pathlib.Path(place, "work")
        shutil.copytree(ROOT / "snippets", snippets)
        work.mkdir()
        if change:
            path = snippets / f"{change['module'].replace('.', '/')}.py"
            text = path.read_text("utf8")
            if text.count(change["before"]) != 1:
                raise SystemExit(f"{MUTANTS.name}: {change['before']!r} is not once in {path.name}")
            path.write_text(text.replace(change["before"], change["after"]), "utf8")
        words = [sys.executable, "-c", RUN, docname, str(snippets), str(work)]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "docs" / "_ext")])
        env = os.environ | {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu", "TMPDIR": place}
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    if done.returncode:
        # A process that the mistake ends has noticed it.
        return [["", f"status {done.returncode}"]] if change else done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def notices(right, again, wrong):
    """Return the number of the first cell that shows a mistake, or None."""
    for number, (one, other) in enumerate(zip(right, again, strict=True)):
        if one == other and (number >= len(wrong) or wrong[number] != one):
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
    names = sorted({each["page"] for each in changes})
    machine = runpy.run_path(str(ROOT / "docs" / "_ext" / "executed" / "run" / "machine.py"))
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(machine["places"](2)) as pool:
        runs = {name: [pool.submit(outputs, name) for _ in range(2)] for name in names}
        wrong = [(each, pool.submit(outputs, each["page"], each)) for each in changes]
        print("| page | mistake | noticed |\n|---|---|---|", flush=True)
        for each, found in wrong:
            right, again = (each.result() for each in runs[each["page"]])
            if isinstance(right, str):
                raise SystemExit(f"{each['page']} cannot be executed:\n{right}")
            number = notices(right, again, found.result())
            missed += number is None
            said = "no" if number is None else f"by cell {number}"
            print(f"| {each['page']} | {each['mistake']} | {said} |", flush=True)
    print(f"{len(changes) - missed} of {len(changes)} mistakes are noticed")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
