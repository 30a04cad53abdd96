"""No number makes a build red: the site is built from recordings whose times lie."""

import json
import random
import re
import shutil

KIND = "application/vnd.jax-measured.record+json"


def lie(seconds, by):
    """Return a time, or each in a list, times a factor between 0.05 and 20."""
    if isinstance(seconds, list):
        return [lie(each, by) for each in seconds]
    return seconds and seconds * 20 ** by.uniform(-1, 1)


def lie_about(recording):
    """Let all times of a recording lie, each by a factor of its own.

    What is displayed and the value of its cell as well lies twice in the same way. Of every second
    page only one process is left, as a build measures.
    """
    alone = random.Random(recording.stem).random() > 0.5
    notebook = json.loads(recording.read_text("utf8"))
    for output in (output for cell in notebook["cells"] for output in cell["outputs"]):
        if record := output.get("data", {}).get(KIND):
            for part in record.get("alternatives", [record]):
                by = random.Random(json.dumps(part))
                if alone:
                    del part["processes"][1:]
                for process in part["processes"]:
                    for clock in {"first_call", "latency", "throughput"} & process.keys():
                        process[clock] = lie(process[clock], by)
    recording.write_text(json.dumps(notebook), "utf8")


def test_the_site_is_built_from_recordings_that_lie(recorded_site, without_frameworks, tmp_path):
    for name in ("doctrees", "html"):
        shutil.copytree(recorded_site.folder / name, tmp_path / name)
    # What is built from other recordings is built again.
    for recording in sorted(recorded_site.recordings.rglob("*.ipynb")):
        if KIND in recording.read_text("utf8"):
            lie_about(recording)
    done = without_frameworks("sphinx", *recorded_site.options(tmp_path))
    assert done.returncode == 0, re.findall(r".*(?:WARNING|ERROR).*", done.stdout)[:20]
    again = [path for path in tmp_path.glob("html/*/*.html") if is_another(path, recorded_site)]
    assert len(again) > 20


def is_another(path, site):
    """Say whether a page is not the one of the site that doesn't lie."""
    return path.read_bytes() != (site.html / path.relative_to(path.parents[1])).read_bytes()
