"""What roles ask for, and on how many machines it comes out alike.

The machines are the book's, and those that readers added.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sphinx.environment import BuildEnvironment

from executed.book import Book, book_of

from .book_measurements import known
from .expressions import Expression, ReferenceProblem
from .feature import NAME, Measured, PageMeasurements
from .machines import Machine
from .ranges import Range
from .references import Answered, Measurements, Quantity
from .schema import Measurement

# By which factor ratios of two machines may differ and still be told as one.
ALIKE = 1.5
DEPENDS = "depends on the machine"
# Under which the metadata of a page hold what its roles ask for.
ASKED = "measured_roles"


def ask(env: BuildEnvironment, asked: Expression) -> None:
    """Note of the page that is read what one of its roles asks for."""
    env.metadata[env.docname].setdefault(ASKED, []).append(asked)


def everywhere(book: Book, asked: Expression, own: Answered) -> "Across":
    """Return what a role asks for, on all machines that measured it as the book did."""
    assert own.quantity is not None
    others = dict[str, Answered]()
    if own.quantity.devices == (book.home,) and not asked.on_device:
        for name, measurements in book.once(elsewhere).items():
            try:
                others[name] = Answered.of(asked, measurements)
            except ReferenceProblem:
                continue
    quantities = {name: each.quantity for name, each in others.items() if each.quantity}
    verdicts = {name: each.verdict for name, each in others.items()}
    return Across(own.quantity, quantities, own.verdict, verdicts)


def answers(env: BuildEnvironment, docname: str) -> Iterator[tuple[Answered, "Across | None"]]:
    """Yield what the roles of a page come to, with how it comes out everywhere, if measured.

    What is wrong, or not recorded, the page itself says.
    """
    book = book_of(env)
    for asked in env.metadata[docname].get(ASKED, ()):
        try:
            own = Answered.of(asked, book.once(known))
        except ReferenceProblem:
            continue
        yield own, everywhere(book, asked, own) if own.quantity else None


def machines(book: Book) -> tuple[Machine, ...]:
    """Return the machines of a book."""
    return measured(book).machines


def measured(book: Book) -> Measured:
    """Return the feature of a book that knows its machines and releases."""
    return next(feature for feature in book.features if isinstance(feature, Measured))


def elsewhere(book: Book) -> dict[str, Measurements]:
    """Return for each machine what is comparable with the book's, as what pages may name."""
    at_home = {key: each.get(book.home) for key, each in book.once(known).by_name.items()}
    concluded: Mapping[str, PageMeasurements] = book.concluded(NAME)
    code = {each: digest for page in concluded.values() for each, digest in page.code.items()}
    found = {}
    for machine in machines(book):
        by_name = {}
        for each in machine.measurements:
            own, record = at_home.get((each.name, each.framework)), each.comparison or each.name
            same = code.get(each.reference) == machine.code.get(record)
            if own and same and same_work(own, each):
                by_name[each.name, each.framework] = {machine.name: each}
        found[machine.name] = dataclasses.replace(
            book.once(known),
            by_name=by_name,
            home=machine.name,
            devices=(machine.name,),
            partial=True,
        )
    return found


def same_work(one: Measurement, other: Measurement) -> bool:
    """Say whether two machines measured the same: on a device of one kind, with equal arrays."""
    same = ("accelerated", "shape", "dtype", "precision")
    return all(getattr(one, name) == getattr(other, name) for name in same)


@dataclasses.dataclass(frozen=True)
class Across:
    """How a quantity of the book comes out on other machines, {what they are called: quantity}.

    `verdicts` are what follows from it there, where `own_verdict` follows from the book's.
    """

    own: Quantity
    others: Mapping[str, Quantity]
    own_verdict: str = ""
    verdicts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_ratio(self) -> bool:
        """Whether it compares two measurements of several processes."""
        return len(self.own.sources) > 1 and not self.own.is_alone

    @property
    def verdict(self) -> str:
        """What follows on all machines; empty where no verdict was asked for."""
        same = all(each == self.own_verdict for each in self.verdicts.values())
        return self.own_verdict if same else DEPENDS

    @functools.cached_property
    def different(self) -> dict[str, Quantity]:
        """The machines on which a ratio says something else than the book's."""
        return {
            name: other
            for name, other in self.others.items()
            if direction(other) != direction(self.own)
        }

    @property
    def spread(self) -> float:
        """By which factor the ratios of all machines differ."""
        return spread(each.value for each in (self.own, *self.others.values()))

    @property
    def alike(self) -> bool:
        """Whether all machines say the same, and by a similar factor."""
        return not self.different and (self.spread <= ALIKE or direction(self.own) in ("=", "?"))

    @property
    def text(self) -> str:
        """The quantity with what other machines say, in the brackets of its range."""
        own, others = self.own, self.others.values()
        if not self.others or not self.is_ratio:
            return own.text
        if self.different:
            words = " and ".join(f"{plainly(of)} on {name}" for name, of in self.different.items())
            return remarked(own, f"but {words}", "; ")
        if self.alike:
            return own.text if direction(own) == "?" else remarked(own, self.machines)
        ordered = sorted((own, *others), key=lambda each: abs(math.log(each.value)))
        least = plainly(ordered[0])
        number, sign, _ = least.partition("×" if "×" in least else " call")
        return f"{number} to {plainly(ordered[-1])} ({self.machines})" if sign else own.text

    @property
    def brief(self) -> str:
        """The quantity for a table that says once what is so of all its numbers."""
        return self.own.brief

    @property
    def machines(self) -> str:
        """On how many machines it was measured, in words."""
        return f"on {len(self.others) + 1} machines"

    @property
    def remarks(self) -> list[str]:
        """What each of the other machines measured, in sentences."""
        words = {name: f"{told}, " if told else "" for name, told in self.verdicts.items()}
        return [f"On {name}: {words.get(name, '')}{of.text}." for name, of in self.others.items()]


def spread(ratios: Iterable[float]) -> float:
    """Return by which factor ratios differ."""
    values = list(ratios)
    return max(values) / min(values)


def direction(quantity: Quantity) -> str:
    """Say on which side of 1 a ratio lies: '<', '>', '=', or '?' where that cannot be told."""
    return direction_of(quantity.range) if quantity.range else "?"


def direction_of(ratio: Range) -> str:
    """Say the same of the range of a ratio."""
    if not (ratio.differs or ratio.is_equal):
        return "?"
    return "=" if ratio.is_equal else ">" if ratio.value > 1 else "<"


def plainly(quantity: Quantity) -> str:
    """Return the text of a quantity without what stands in brackets."""
    return quantity.text.partition(" (")[0]


def remarked(quantity: Quantity, words: str, joint: str = ", ") -> str:
    """Return the text of a quantity with further words in its brackets."""
    text = quantity.text
    return f"{text[:-1]}{joint}{words})" if text.endswith(")") else f"{text} ({words})"


def summary(found: Sequence[Across]) -> str:
    """Say of ratios that stand together how they come out on other machines."""
    names = dict.fromkeys(itertools.chain.from_iterable(each.others for each in found))
    counts = {name: sum(name in each.others for each in found) for name in names}
    places = (
        name if count == len(found) else f"{name} ({count} of {len(found)})"
        for name, count in counts.items()
    )
    other = sum(bool(each.different) for each in found)
    told = f"{other or 'none'} {'have' if other > 1 else 'has'} another verdict there"
    return f"Measured on {' and '.join(places)} as well: {told}."
