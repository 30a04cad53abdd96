"""The table of results: yours, the book's on each device, and what that says."""

import itertools
import re
import statistics

from snippets.programs.timer import (
    PACKAGES,
    Ratio,
    as_factor,
    in_unit,
    middle,
)

# Of fewer all lie on one side by chance in more than one of sixteen cases.
FEWEST = 5
# Of six and more processes a range misses the true median in one of twenty cases or fewer.
ENOUGH = 6
# What of a record's settings is a variable of the environment; two are the book's own.
VARIABLE = re.compile(
    r"(?!GOMP_SPINCOUNT|OPENBLAS_THREAD_TIMEOUT)[A-Z_\d]{5,}"
)


def parts(record):
    """Return the records of single measurements: of a comparison, its alternatives."""
    return record.get("alternatives", [record])


def reference(part):
    """Return what pages call a measurement, such as 'selu/jit@jax'."""
    return f"{part['name']}@{part['framework']}"


def median(process):
    """Return the median latency of a process, in seconds."""
    return statistics.median(process["latency"])


def summed(seconds):
    """Return the median of the processes' times, and its range."""
    return statistics.median(seconds), *middle(seconds)


def ranged(seconds):
    """Write the median of the processes' times, with its range where there is one."""
    value, low, high = summed(seconds)
    text = in_unit(value)
    scale = value / float(text.split()[0])
    if low == high:
        return text
    return f"{text} ({float(f'{low / scale:.3g}'):g}–{float(f'{high / scale:.3g}'):g})"


def medians(part):
    """Return the median latency of each process of a record."""
    return [median(process) for process in part["processes"]]


def switched(part):
    """Return what was switched on in the environment, as 'NAME=value'."""
    settings = part.get("settings", {}).items()
    return [f"{k}={of}" for k, of in settings if VARIABLE.fullmatch(k)]


def disturbed(part):
    """Say whether other programs ran during a process of a measurement."""
    return any(each.get("disturbed") for each in part["processes"])


def marks(part):
    """Return what stands behind a time: † for switches, ‡ for other programs."""
    both = ("†" if switched(part) else ""), ("‡" if disturbed(part) else "")
    return "".join(f" {mark}" for mark in both if mark)


def footnotes(records):
    """Yield what the marks in a table mean."""
    every = [part for record in records for part in parts(record)]
    for on in dict.fromkeys(", ".join(switched(part)) for part in every):
        if on:
            yield f"† measured with {on}, which the book's are not"
    if any(map(disturbed, every)):
        yield "‡ other programs kept a core busy: measure again with nothing else running"


def counterpart(part, numbers):
    """Return the device of the book to compare with: of the same kind, or None."""
    called, own = reference(part), part["device_kind"]
    there = {
        key: of[called]["device_kind"]
        for key, of in numbers.items()
        if called in of
    }
    same = [key for key, kind in there.items() if kind == own]
    others = [key for key, kind in there.items() if "cpu" not in (kind, own)]
    return next(iter(same + others), None)


def against(mine, theirs):
    """Return how much longer one takes than the other, of different processes."""
    (own, low, high), (other, least, most) = summed(mine), summed(theirs)
    return Ratio(own / other, low / most, high / least)


def cells_of(part, devices, numbers):
    """Return a row: the name, yours, the book's on each device, and the verdict."""
    called, own = reference(part), medians(part)
    row = [ranged(own) + marks(part)]
    chosen = counterpart(part, numbers)
    for device in devices:
        of = numbers[device].get(called)
        alike = of and of["shape"] == part["shape"]
        row.append(
            ranged(of["latency"]) if alike else "other size" if of else "–"
        )
    of = numbers[chosen][called] if chosen else None
    if of is None or of["shape"] != part["shape"]:
        return [*row, "–"]
    ratio = against(own, of["latency"])
    if 1 in (len(own), len(of["latency"])):
        return [*row, f"{as_factor(ratio.value)}× the time (one process)"]
    return [*row, str(ratio)]


def together(one, other):
    """Return the ratio of two that took turns, over processes; None if unsure."""
    if len(one) != len(other) or len(one) < FEWEST:
        return None
    ratios = [above / below for above, below in zip(one, other, strict=True)]
    ratio = Ratio(*summed(ratios))
    return ratio if ratio.different else None


def other_orders(record, found):
    """Yield a line for each two of a comparison that the book has in another order."""
    numbers, labels = found["numbers"], found["devices"]
    for one, other in itertools.combinations(parts(record), 2):
        device = counterpart(one, numbers)
        names = [reference(each) for each in (one, other)]
        if device is None or names[1] not in numbers[device]:
            continue
        theirs = [numbers[device][name] for name in names]
        shapes = [each["shape"] for each in theirs]
        mine = together(medians(one), medians(other))
        book = together(*(each["latency"] for each in theirs))
        alike = shapes == [one["shape"], other["shape"]]
        if alike and mine and book and (mine.value > 1) != (book.value > 1):
            yield (
                f"other order: {names[0]} against {names[1]} is {mine} here, "
                f"and {book} on the book's {labels[device]}"
            )


def origin(versions):
    """Write the versions of frameworks."""
    return ", ".join(
        f"{name} {versions[name]}" for name in PACKAGES if name in versions
    )


def table(content, found):
    """Return the lines of the table of a file, beside what a book found.

    That are its `devices`, {key: label}, and of each the `numbers`, by their names.
    """
    lines, rows = [], []
    for head, *others in comparisons(content, found):
        rows += [head, *([f"  {called}", *cells] for called, *cells in others)]
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    for row in rows:
        lines += [] if row[0].startswith(" ") else [""]
        texts = (
            text.ljust(width) for text, width in zip(row, widths, strict=True)
        )
        lines.append("".join(texts).rstrip())
    orders = [f"  {text}" for text in orders_of(content, found)]
    lines += ["", *orders, *([""] if orders else [])]
    return [*lines[1:], *notes(content, found)]


def comparisons(content, found):
    """Yield the rows of each comparison: its name above yours and the book's, and the functions."""
    devices, labels = list(found["numbers"]), found["devices"]
    named = [labels[device] for device in devices]
    for record in content["records"]:
        rows = [[record["name"], "yours", *named, "yours against the book's"]]
        for part in parts(record):
            called = reference(part).removeprefix(record["name"]).lstrip("/@")
            rows.append([called, *cells_of(part, devices, found["numbers"])])
        yield rows


def orders_of(content, found):
    """Return in lines what the book has in another order."""
    records = content["records"]
    said = (text for each in records for text in other_orders(each, found))
    return list(dict.fromkeys(said))


def notes(content, found):
    """Return what has to be known of the numbers, in lines."""
    devices, labels = list(found["numbers"]), found["devices"]
    first = parts(content["records"][0])[0]
    lines = [*footnotes(content["records"])]
    lines.append(
        "The last column compares with the book's device of the same kind."
    )
    where = content["machine"], origin(first["versions"]), content["date"][:10]
    lines.append(f"yours: {'; '.join(where)}")
    fewest = min(
        len(part["processes"])
        for record in content["records"]
        for part in parts(record)
    )
    if 1 < fewest < ENOUGH:
        lines.append(
            f"A range of {fewest} processes misses the true median in one of "
            f"{2 ** (fewest - 1)} cases; --processes 10 makes that one of fifty."
        )
    for device in devices:
        last = max(
            found["numbers"][device].values(), key=lambda each: each["date"]
        )
        where = last["processor"], origin(last["versions"]), last["date"]
        lines.append(f"{labels[device]}: {'; '.join(where)}")
    return lines
