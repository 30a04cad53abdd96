"""Measure the build of the book: against plain scripts, stock MyST-NB, and its own growth.

Everything is measured in one run, in copies below a temporary folder, and
printed with the ratio to reach. Run it with `nox -s build_benchmark`, with
nothing else running. It builds every fourth page that does not measure, and
took 25 minutes with `--quick`, which leaves out the growth to 300 pages.
`--every 1` builds all pages.
"""

import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import timeit

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

ROOT = pathlib.Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]

from executed.frameworks import first_imports  # noqa: E402
from executed.options import Options  # noqa: E402
from executed.source.code import imported_modules  # noqa: E402
from executed.source.pages import read_page  # noqa: E402
from executed.source.snippets import Library  # noqa: E402

EXECUTED = re.compile(r"\[\d+/\d+\] executed (\S+) in ([\d.]+) s")
# The book's theme and extensions, with MyST-NB executing in the engine's place and an index, as
# Sphinx writes it by default.
STOCK_CONF = """
# The names of the engine's extensions have no underscore.
extensions = [each for each in extensions if "_" in each]
html_use_index = True
# The switch of devices is the engine's.
html_theme_options["article_header_end"] = ["article-header-buttons.html"]
exclude_patterns = ["_ext", "_templates"]
nb_execution_mode = "cache"
nb_execution_timeout = 120
html_static_path = []
html_css_files = []
# What the engine lays beside each page.
os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).with_name("modules"))
"""
# What leads to the pages that are left out leads nowhere; pages with warnings are read again.
# Options that name such pages are refused.
LEAVING_OUT = """
book_skill = ()
book_versions |= {"without": []}
suppress_warnings = ["myst", "toc", "ref", "book"]
redirects = {}
"""
SHELL = """
from IPython.core.interactiveshell import InteractiveShell
get_ipython = InteractiveShell.instance
"""
# As many processes as `nox -s docs` gives to Sphinx, of which the first only hands pages out.
JOBS = str(min(os.cpu_count() or 1, 4) + 1)
results = []


def note(what, value, target, reached):
    """Print one figure with its target, and keep it for the summary."""
    results.append((what, value, target, reached))
    print(
        f"  {'reached' if reached else 'MISSED '}  {what}: {value} (to reach: {target})", flush=True
    )


def environment():
    """Return the environment in which everything is run."""
    # As by default, Python keeps what it has compiled.
    own = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Sphinx's -j forks, and the fork warns of threads that jupyter-cache has started.
    return own | {
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONWARNINGS": "ignore",
    }


def run(command, folder):
    """Run a command; return (seconds, errors and output). Ends the benchmark where it fails."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} in {folder} failed:\n{done.stdout}\n{done.stderr}")
    return seconds, done.stderr + done.stdout


def build(folder, *options):
    """Build a site as `nox -s docs` does; return (seconds, {executed page: seconds})."""
    options = ["-j", JOBS, *options]
    command = [sys.executable, "-m", "sphinx", "-c", ".", *options, "docs", "build/html"]
    seconds, output = run(command, folder)
    return seconds, {page: float(took) for page, took in EXECUTED.findall(output)}


def take_out(contents, entry):
    """Take an entry out of the contents of a page.

    Sphinx reads a page again and again whose contents name a page that is not there.
    """
    lines = contents.read_text("utf8").splitlines()
    kept = [line for line in lines if line.strip() != entry and not line.endswith(f"<{entry}>")]
    contents.write_text("\n".join(kept) + "\n", "utf8")


def copy_of_book(folder, pages):
    """Copy what the site is built from, without other pages that have code, and without claims."""
    kept = {page.docname for page in pages}
    ordinary, benchmarks = read_all_pages()
    exclude = {page.docname for page in [*ordinary, *benchmarks]} - kept
    left_out = shutil.ignore_patterns(".*", "build", "node_modules")
    shutil.copytree(ROOT, folder, ignore=left_out, dirs_exist_ok=True)
    for docname in exclude:
        (folder / "docs" / f"{docname}.md").unlink()
        for recording in (folder / "docs").glob(f"_*/*/{docname}.ipynb"):
            recording.unlink()
        chapter, _, name = docname.rpartition("/")
        if (contents := folder / "docs" / chapter / "index.md").exists():
            take_out(contents, name)
        take_out(folder / "docs" / "index.md", docname)
    shutil.rmtree(folder / "docs" / "claims")
    take_out(folder / "docs" / "index.md", "claims/index")
    conf = (ROOT / "conf.py").read_text("utf8") + LEAVING_OUT
    (folder / "conf.py").write_text(conf, "utf8")


@functools.cache
def read_all_pages():
    """Return all pages of the book that have code, split into (ordinary, benchmarks)."""
    library = Library.of(Options.from_file(ROOT / "conf.py"))
    docs = ROOT / "docs"
    paths = [p for p in sorted(docs.rglob("*.md")) if "_ext" not in p.relative_to(docs).parts]
    names = [path.relative_to(docs).with_suffix("").as_posix() for path in paths]
    pages = [read_page(name, path, library) for name, path in zip(names, paths, strict=True)]
    pages = [page for page in pages if page]
    return [p for p in pages if not p.benchmark], [p for p in pages if p.benchmark]


def imported_first(page):
    """Return the lines that import what must come before the modules that a page imports."""
    used = [name for cell in page.cells for name in imported_modules(cell.source, anywhere=True)]
    return first_imports(Options.from_file(ROOT / "conf.py").registry, used)


def write_script(page, path):
    """Write the code of a page as a plain script; cells that must raise are caught.

    The modules that the page brings lie beside it, and the files that it names. Where it uses
    magics of IPython, its script does.
    """
    for name, text in page.files.items():
        path.with_name(f"{name}.py").write_text(text, "utf8")
    for each in page.named_files:
        path.with_name(each.name).symlink_to(each.resolve())
    parts = [imported_first(page)]
    for cell in page.cells:
        code = TransformerManager().transform_cell(cell.source)
        if code.strip() != cell.source.strip() and parts[:1] != [SHELL]:
            parts.insert(0, SHELL)
        if cell.expected:
            body = textwrap.indent(code, "    ")
            parts.append(f"try:\n{body}\nexcept Exception as error:\n    print(error)")
        else:
            parts.append(code)
    path.write_text("\n\n".join(parts) + "\n", "utf8")


def time_scripts(pages, folder):
    """Run the pages' code as scripts, two at a time, in the order that the build uses."""
    scripts = []
    for page in pages:
        place = folder / page.docname.replace("/", "-")
        place.mkdir(parents=True)
        write_script(page, place / "page.py")
        scripts.append(place)
    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda place: run([sys.executable, "page.py"], place), scripts))
    return time.perf_counter() - started


def stock_site(pages, folder):
    """Write the same book for stock MyST-NB, each page with code as the notebook it becomes."""
    copy_of_book(folder, pages)
    for engine in ("_ext", "_recorded"):
        shutil.rmtree(folder / "docs" / engine)
    conf = (ROOT / "conf.py").read_text("utf8") + LEAVING_OUT + STOCK_CONF
    (folder / "conf.py").write_text(conf, "utf8")
    (folder / "modules").mkdir()
    for page in pages:
        path = folder / "docs" / f"{page.docname}.ipynb"
        path.with_suffix(".md").unlink()
        notebook = nbformat.from_dict(page.notebook)
        notebook.metadata.pop("source_map", None)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        first.source = f"{imported_first(page)}\n{first.source}"
        nbformat.write(notebook, path)
        for name, text in page.files.items():
            (folder / "modules" / f"{name}.py").write_text(text, "utf8")
    # jupyter-cache cannot be opened for the first time by several processes at once.
    cache = "get_cache('build/.jupyter_cache').list_cache_records()"
    (folder / "build").mkdir()
    run([sys.executable, "-c", f"from jupyter_cache import get_cache; {cache}"], folder)


def median_of_rebuilds(*sites, options=((), ()), times=5):
    """Rebuild unchanged sites in turn; return the median seconds of each."""
    taken = [[] for _ in sites]
    for _ in range(times):
        for number, site in enumerate(sites):
            taken[number].append(build(site, *options[number])[0])
    return [statistics.median(seconds) for seconds in taken]


def against_scripts_and_stock(work, ordinary):
    """Cold, unchanged and edited builds of ordinary pages."""
    ours, stock = work / "ours", work / "stock"
    ours.mkdir()
    copy_of_book(ours, ordinary)
    stock_site(ordinary, stock)
    print(f"{len(ordinary)} pages that do not measure", flush=True)

    cold, executed = build(ours)
    assert set(executed) == {page.docname for page in ordinary}, "a page was not executed"
    scripts = time_scripts(ordinary, work / "scripts")
    print(f"  cold {cold:.1f} s, plain scripts {scripts:.1f} s", flush=True)
    stock_cold, _ = build(stock, "-j", "2")
    print(f"  stock -j2 {stock_cold:.1f} s", flush=True)
    note("cold / plain scripts", f"{cold / scripts:.2f}", "≤ 0.7", cold <= 0.7 * scripts)
    note("cold / stock MyST-NB", f"{cold / stock_cold:.2f}", "≤ 0.5", cold <= 0.5 * stock_cold)

    # The second build brings the status pages to rest in both.
    build(ours), build(stock)
    unchanged, stock_unchanged = median_of_rebuilds(ours, stock)
    print(f"  unchanged {unchanged:.2f} s, stock {stock_unchanged:.2f} s")
    ratio = unchanged / stock_unchanged
    note("unchanged / stock MyST-NB", f"{ratio:.2f}", "≤ 1.0", ratio <= 1.0)
    edited(ours, ordinary, work / "edited")


def shown_in(page, library):
    """Return the functions of snippets that a page holds, with a docstring to edit."""
    cells = "\n".join(cell.source for cell in page.cells)
    return [
        definition
        for module in page.modules
        if library.module(module)
        for definition in library.module(module).definitions.values()
        if definition.source in cells and '"""' in definition.source
    ]


def edit(site, definition):
    """Edit the docstring of a function in the copy of its module."""
    path = site.joinpath("snippets", *definition.module.split(".")).with_suffix(".py")
    text = path.read_text("utf8")
    edited = definition.source.replace('"""', '"""Edited. ', 1)
    path.write_text(text.replace(definition.source, edited), "utf8")


def edited(site, pages, folder):
    """Edit one function of a snippet module, and list what is executed.

    The execution of these pages is that of their code as plain scripts, imports included.
    """
    library = Library.of(Options.from_file(ROOT / "conf.py"))
    found = {page.docname: shown_in(page, library) for page in pages}
    reach = {
        definition: {name for name, functions in found.items() if definition in functions}
        for functions in found.values()
        for definition in functions
    }
    definition = min(reach, key=lambda each: (len(reach[each]), each.module, each.name))
    edit(site, definition)
    seconds, executed = build(site)
    own = time_scripts([page for page in pages if page.docname in executed], folder)
    over = seconds - own
    print(f"  edited {definition.module}.{definition.name}, executed: {', '.join(executed)}")
    note("pages executed after one edit", len(executed), f"the {len(reach[definition])} with it",
         set(executed) == reach[definition])  # fmt: skip
    note("above their own execution", f"{over:.2f} s", "≤ 2 s", over <= 2)


FRAMEWORKS = ("jax", "torch", "tensorflow")
# As `nox -s live` builds: the index for the search can wait.
AS_LIVE = ("-D", "book_search=0")


def beside_a_root(site):
    """Build, edit a snippet of a page with three frameworks, and build again."""
    library = Library.of(Options.from_file(site / "conf.py"))
    pages = [
        page
        for page in read_all_pages()[0]
        if (site / "docs" / f"{page.docname}.md").exists()
        and set(FRAMEWORKS)
        <= {name for cell in page.cells for name in imported_modules(cell.source)}
    ]
    # The page that is executed fastest shows best what is added to its execution.
    _, executed = build(site, *AS_LIVE)
    page = min(pages, key=lambda page: executed[page.docname])
    edit(site, shown_in(page, library)[0])
    seconds, again = build(site, *AS_LIVE)
    assert page.docname in again, again
    place = site / "cells"
    place.mkdir()
    write_script(page, place / "page.py")
    code = (place / "page.py").read_text("utf8")
    imported = f"{imported_first(page)}\nimport {', '.join(FRAMEWORKS)}, time"
    timed = f"{imported}\n_begun = time.perf_counter()\n{code}\n"
    (place / "page.py").write_text(timed + "print(time.perf_counter() - _begun)\n", "utf8")
    cells = float(run([sys.executable, "page.py"], place)[1].split()[-1])
    others = sum(took for name, took in again.items() if name != page.docname)
    print(page.docname, seconds - others, cells)


def live(work, ordinary):
    """Edit a snippet of a page with three frameworks while parents are kept warm."""
    site = work / "live"
    site.mkdir()
    copy_of_book(site, ordinary)
    command = [
        "-m",
        "executed.run.forkserver",
        "--",
        sys.executable,
        __file__,
        "--live",
        str(site),
    ]
    done = subprocess.run(
        [sys.executable, *command],
        env=environment() | {"PYTHONPATH": str(ROOT / "docs" / "_ext")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the live builds failed:\n{done.stdout}\n{done.stderr}")
    name, seconds, cells = done.stdout.split()[-3:]
    over = float(seconds) - float(cells)
    print(f"  live: {name} in {float(seconds):.2f} s, its cells alone {float(cells):.2f} s")
    note("live, saved to finished, above the cells", f"{over:.2f} s", "≤ 2.5 s", over <= 2.5)


def either_way(ordinary):
    """Execute the pages that can be forked both ways, and compare what they print."""
    sys.path.insert(0, str(ROOT / "tests" / "book"))
    import test_forked

    warm, registry = test_forked.imports.warm_modules, test_forked.OPTIONS.registry
    names = [
        page.docname
        for page in ordinary
        if warm([cell.source for cell in page.cells], registry) is not None
    ]
    forked = test_forked.executed(names)
    test_forked.imports.warm_modules = lambda *rest: None
    different = test_forked.differences(forked, test_forked.executed(names))
    for place in different:
        print(f"  {place}")
    note("cells that print something else unforked", len(different), "0", not different)


def growth(work, counts):
    """Cold and unchanged builds of generated sites of several sizes."""
    cold, unchanged = {}, {}
    for count in counts:
        site = work / f"pages-{count}"
        (site / "docs").mkdir(parents=True)
        (site / "snippets" / "made").mkdir(parents=True)
        (site / "conf.py").write_text(
            f"import sys\nsys.path.insert(0, {str(ROOT / 'docs' / '_ext')!r})\n"
            "extensions = ['executed', 'measured']\n",
            "utf8",
        )
        for number in range(count):
            (site / "snippets" / "made" / f"m{number}.py").write_text(
                f'def number():\n    """Return {number}."""\n    return {number}\n', "utf8"
            )
            (site / "docs" / f"p{number}.md").write_text(
                "---\nfile_format: mystnb\n---\n"
                f"# Page {number}\n\n```{{code-cell}} python\n:snippet: made.m{number}.number\n"
                "number()\n```\n",
                "utf8",
            )
        names = "\n".join(f"p{number}" for number in range(count))
        (site / "docs" / "index.md").write_text(f"# I\n\n```{{toctree}}\n{names}\n```\n", "utf8")
        cold[count], _ = build(site)
        build(site)
        unchanged[count] = statistics.median(build(site)[0] for _ in range(3))
        print(f"  {count} pages: cold {cold[count]:.1f} s, unchanged {unchanged[count]:.2f} s")
    small, large = counts[0], counts[-1]
    factor = large / small
    per_page = (cold[large] / large) / (cold[small] / small)
    note(f"cold seconds a page, {large} pages / {small} pages", f"{per_page:.2f}",
         "≤ 1.1 (linear)", per_page <= 1.1)  # fmt: skip
    growing = unchanged[large] / unchanged[small]
    note(f"unchanged, {large} pages / {small} pages", f"{growing:.2f}",
         f"< {factor:g} (less than linear)", growing < factor)  # fmt: skip


def benchmark_pages(work):
    """Build the benchmarks' chapter alone, whose pages are executed one after the other."""
    measuring = [page for page in read_all_pages()[1] if page.docname.startswith("benchmarks/")]
    benchmarks = {page.docname for page in measuring}
    site = work / "benchmarks"
    site.mkdir()
    copy_of_book(site, measuring)
    total, executed = build(site)
    assert set(executed) == benchmarks, f"not executed: {sorted(benchmarks - set(executed))}"
    for page, seconds in executed.items():
        print(f"  {page}: {seconds:.1f} s")
    note("all benchmarks, built from nothing", f"{total:.0f} s", "≤ 240 s", total <= 240)


def timer_against_others():
    """Time the same products with the book's timer, timeit and torch.utils.benchmark."""
    import torch
    from torch.utils.benchmark import Timer

    from snippets.programs.timer import measure

    torch.set_num_threads(os.cpu_count() or 1)
    for size in (512, 1024, 2048):
        a = torch.rand(size, size)
        rounds = []
        for _ in range(3):
            ours = measure(f"product/{size}", torch.matmul, a, a).median
            repeat = timeit.Timer(lambda a=a: torch.matmul(a, a))
            calls = max(1, round(0.01 / ours))
            standard = statistics.median(repeat.repeat(20, calls)) / calls
            other = Timer(
                "torch.matmul(a, a)",
                globals={"torch": torch, "a": a},
                num_threads=torch.get_num_threads(),
            ).blocked_autorange(min_run_time=0.5)
            rounds.append((ours / standard, ours / other.median, ours))
        if rounds[0][2] < 1e-3:
            print(f"  product of {size}: below 1 ms here, not compared")
            continue
        # The machine drifts between two measurements; the median round is compared.
        for column, name in enumerate(("timeit", "torch.utils.benchmark")):
            ratio = statistics.median(row[column] for row in rounds)
            note(f"timer / {name}, product of {size}", f"{ratio:.3f}", "0.95 to 1.05",
                 0.95 <= ratio <= 1.05)  # fmt: skip


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="grow to 100 pages only")
    parser.add_argument("--every", type=int, default=4, help="build one page of so many")
    parser.add_argument("--live", type=pathlib.Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.live:
        return beside_a_root(asked.live)
    ordinary = read_all_pages()[0][:: asked.every]
    counts = (10, 100) if asked.quick else (10, 100, 300)
    with tempfile.TemporaryDirectory(prefix="build-benchmark-") as folder:
        work = pathlib.Path(folder)
        print("The book against plain scripts and stock MyST-NB", flush=True)
        against_scripts_and_stock(work, ordinary)
        print("Live", flush=True)
        live(work, ordinary)
        print("Forked and in processes of their own", flush=True)
        either_way(ordinary)
        print("Growth", flush=True)
        growth(work, counts)
        print("The pages that measure", flush=True)
        benchmark_pages(work)
        print("The timer", flush=True)
        timer_against_others()
    missed = [what for what, _, _, reached in results if not reached]
    print(f"\n{len(results) - len(missed)} of {len(results)} reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
