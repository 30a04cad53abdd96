"""What pages of a miniature book measure: chosen times, as the timer of a book would display them.

It is also the text of the snippet `a.notes`.
"""

from IPython.display import display

KIND = "application/vnd.jax-measured.record+json"


def one_process(*latency, **more):
    """Return what one process measured, as the timer would; `more` changes it."""
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "first_call": 3 * latency[0],
        "calls": 1,
        "latency": [*latency],
        "cores": 1.0,
        "disturbed": False,
    } | more


def measured(name, latency, framework="python", process=None, **fields):
    """Return the record of one process, as the timer would; `process` changes what it measured."""
    return {
        "version": 3,
        "method": 2,
        "name": name,
        "framework": framework,
        "device_kind": "cpu",
        "processor": "A processor",
        "shape": [],
        "dtype": "float32",
        "precision": "highest",
        "work": None,
        "error": None,
        "versions": {framework: "1.2.3"},
        "settings": {},
        "processes": [one_process(*latency, **(process or {}))],
    } | fields


def leave(record):
    """Display a record with a text."""
    display({"text/plain": f"{record['name']} was measured", KIND: record}, raw=True)


def note(name, seconds, framework="python", process=None, **fields):
    """Leave the record of a measurement with the time that the page wants."""
    leave(measured(name, [seconds] * 5, framework, process, **fields))


def contest(name, *ratios, apart=False):
    """Leave the record of a comparison of `slow` and `fast`: a ratio for each of its rounds.

    Each round may be of a process of its own, `apart` from the others.
    """
    slow = measured(f"{name}/slow", [0.25 * ratio for ratio in ratios])
    fast = measured(f"{name}/fast", [0.25] * len(ratios))
    for each in (slow, fast) if apart else ():
        (alone,) = each["processes"]
        each["processes"] = [alone | {"latency": [seconds]} for seconds in alone["latency"]]
    leave({"version": 3, "method": 2, "name": name, "alternatives": [slow, fast]})
