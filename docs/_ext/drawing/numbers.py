"""Numbers as pages write them, without a range."""

from decimal import Decimal

# What is larger, or smaller than its inverse, is written with a power of ten.
LONGEST = 1e7
UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))


def digits(value: float, count: int) -> str:
    """Write a number with so many digits."""
    text = f"{value:.{count}g}"
    return f"{Decimal(text):f}" if 1 / LONGEST < value < LONGEST else text


def unit_of(seconds: float) -> tuple[str, float]:
    """Return the unit in which seconds are written, and how many of it are a second."""
    # What three digits round up to 1 is 1 of this unit, not 1000 of the next.
    return next((unit for unit in UNITS if seconds * unit[1] >= 0.9995), UNITS[-1])


def seconds_text(seconds: float) -> str:
    """Write seconds with three digits and a unit."""
    unit, scale = unit_of(seconds)
    return f"{digits(seconds * scale, 3)} {unit}"


def rate_text(rate: float) -> str:
    """Write floating-point operations per second as GFLOP/s."""
    return f"{digits(rate / 1e9, 3)} GFLOP/s"


def ratio_text(ratio: float) -> str:
    """Write a ratio with two digits, three from 100 up, or up to four where fewer would say 1."""
    if ratio >= 100:
        return f"{digits(ratio, 3)}×"
    texts = [digits(ratio, count) for count in (2, 3, 4)]
    return f"{next((text for text in texts if float(text) != 1), '1')}×"
