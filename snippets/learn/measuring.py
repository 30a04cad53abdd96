"""Where the time of a profiled program goes."""

from snippets.models.profile import instructions, seconds_by


def print_times(events, label):
    """Print milliseconds and shares of a profile's operations, longest first.

    Operations with the same `label(event)` are added up.
    """
    sums = seconds_by(events, label)
    total = sum(seconds for _, seconds in sums)
    for name, seconds in sums:
        print(f"{1e3 * seconds:7.2f} ms {seconds / total:5.0%}  {name}")


def scopes_of(compiled):
    """Return a function of an event of a profile: the scope of its operation.

    That is "?" for what the compiler has added itself.
    """
    known = instructions(compiled)
    return lambda event: known.get(event.name, ("?",))[0]
