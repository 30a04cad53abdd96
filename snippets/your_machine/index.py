"""An example of the command's table, of times that nobody measured."""

from snippets.programs.jax_measured.table import table


def part(name, kind):
    """Return what is known of a function of JAX in a file, but its times."""
    versions = {"jax": "1.2.3"}
    known = {
        "name": name,
        "framework": "jax",
        "versions": versions,
        "shape": [],
    }
    return known | {"device_kind": kind, "processor": f"some {kind}"}


def print_example(yours, book):
    """Print the table for times {name: seconds of processes}, yours on a CPU.

    `book` are those of its devices, {what it is called: (its kind, times)}.
    """
    comparison = {"name": "example", "alternatives": []}
    for name, seconds in yours.items():
        processes = [{"latency": [each]} for each in seconds]
        record = part(f"example/{name}", "cpu") | {"processes": processes}
        comparison["alternatives"].append(record)
    numbers = {
        label: {
            f"example/{name}@jax": part(f"example/{name}", kind)
            | {"latency": seconds, "date": "2026-01-31"}
            for name, seconds in times.items()
        }
        for label, (kind, times) in book.items()
    }
    content = {
        "machine": "some cpu",
        "date": "2026-02-01",
        "records": [comparison],
    }
    found = {"devices": {label: label for label in book}, "numbers": numbers}
    print("\n".join(table(content, found)))
