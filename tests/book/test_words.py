"""The book says what it says in the words of the field.

`PYTHONPATH=docs python -m tests.book.test_words [CHAPTER …]` lists what is left of other words.
"""

import ast
import collections
import dataclasses
import pathlib
import re
import sys

import pytest

from tests.book.test_rules import MODULES, PAGES, ROOT
from tests.book.test_terms import CODE

# Each line: what not to write | what to write | on which pages, where it is not on all.
# A space stands for any white space, <a> for what shows that a noun follows, <x> for any words.
WORDS = r"""
<a> turns?                                  | iteration
(of|its|with|for|in|by|the|saves) turns     | iterations; or: alternately, take turns
slopes?                                     | gradient, derivative, partial derivative
ways? (back|there|forward)                  | backward pass, forward pass
ways? out                                   | fix, workaround, alternative
in parts                                    | sharded; in chunks
parts                                       | shards                 | devices training processes
(<a>|which|own|their|different|equal) part  | shard                  | devices training processes
(that|who|and) parts?                       | shard                  | devices training processes
cop(y|ies|ied) (to|along|on|over) <all>     | replicated             | devices training compiled
cop(y|ies|ied) ((of|all|the) )+<state>      | replicated; a replica  | devices training compiled
(with|for|are|in|of) (copies|copied)        | replicated             | devices training compiled
(is|are|lies?|makes?|made) <x>whole         | replicated; gathered   | devices training processes
trainings                                   | training runs
<a> training<end>                           | training run
steps? of (the )?training                   | training step
digits?                                     | mantissa bits; or: decimal digits
exchanges?                                  | communication, collective
products?                                   | matmul
(longest|shortest|longer|shorter) gradients?        | gradient with the largest norm
lengths? of <a> (gradients?|vectors?)               | norm
(gradients?|limit),? (you )?(need )?(its|the) length     | norm
(all|median of) lengths                             | norms          | vectorizing
scaled to length                                    | scaled to norm
fill(s|ed|ing)? up                          | pad
relatives                                   | similar functions
carr(y|ies|ied|ying) <x>along               | threads a carry; carry
hand(s|ed|ing)? <x>over                     | dispatches; passes
hand(s|ed|ing)? <x>to the device            | dispatches
shorten(s|ed|ing)?                          | rounds, lowers the precision
(shorter|short) (dtypes?|formats?|copies)   | of lower precision
(shorter|short) (numbers|floats|matmuls)    | of lower precision
t(akes?|aken|ook|aking) <x>apart            | flattens into leaves
(network's|model's|ten) (answers?|scores)                   | logits
(answers?|scores) (of|for) <a> (model|network|image|token)  | logits
<many> numbers                              | elements
(row|layer|tiles) of <x>numbers             | values, elements, units
numbers of <a> array                        | elements, values
makers?                                     | developers; vendors
cuts? off                                   | truncates, drops
cuts? <x>into                               | splits, reshapes
(number of|each|every|next|per) pass(es)?   | iteration
time stamps?                                | timestamps
whole numbers                               | integers
nests? of                                   | nested
anew                                        | again; re-
goes on before it is done                   | returns without waiting
that nobody passed                          | written after the call
what must outlive                           | what you need after
have traded                                 | swapped
writes down every                           | unrolls
loses its share                             | drops its contribution
answer soon after                           | start fast
changes fastest                             | varies fastest
have come that far                          | reach
shared out                                  | distributed
as the post does                            | (which post?)
in all four ways                            | four ways
"""
# Plain English, in the prose of pages.
PLAIN = r"""
mend(s|ed|ing)?                             | fix, repair
(in|out)side of                             | inside, outside
in place of                                 | instead of
folded (below|above)                        | (the label of the fold says it)
heeds?                                      | respects
dearer                                      | more expensive
whoever                                     | you, people who
(is|are) (those|that) of             | (repeat the noun)
"""
STANDS_FOR = {
    "<a>": r"(?:an?|the|each|every|no|per|one|two|three|four|five|six|eight|ten|twelve|hundred"
    r"|thousand|several|few|some|all|more|most|this|next|last|first|second|its|single|your|whose)",
    "<all>": r"(?:all|each|every|it|them|a)\b",
    "<state>": r"(?:state|parameters?|weights|layers|model)",
    "<many>": r"(?:\d[\d,]*|thousand|million|hundred|four|five|six|eight|ten|how many|few)",
    "<end>": r"(?= *[^\w\s▪[-]| *$| (?:and|is|are|was|goes|too|waits|from|that|with|as|can|to)\b)",
    "<x>": r"(?:[\w▪]+ ){0,3}",
}
# The same words where they mean something else.
ALLOWED = r"""
slope of a leaky ReLU | slope between
in turn | t(akes?|aking|aken|ook) turns | turns? (on|off|out|into) | its turn comes
(dot|cross|inner|outer|Kronecker|elementwise|Hessian-vector) products?
(Jacobian-vector|vector-Jacobian) products? | products? (with|of) (a vector|the mesh|sizes|nothing)
(decimal|significant|hexadecimal|handwritten|last) digits? | digit for digit
digits are | reads digits | digits data ?set
halo exchanges? | queue( does not| of calls can| can)? fills? up
shorten(s|ed)? (the )?(first call|start|second array)
t(akes?|aking|aken|ook) part | (large|small|no) part | part of the (type|program|message|cache|key)
(forward|backward|second|single|one) pass(es)? | pass(es)? (of|over)
"""
# The same in names of code, split at '_'.
NAMES = r"""
turns?                | iterations
slopes?               | gradient
digits?               | bits          | benchmarks models
exchanges?            | collectives
relatives             | similar
shorten(s|ed|er)?     | rounded
apart                 | flattened
trainings             | runs
makers?               | developers
copied                | replicated    | devices training
copies                | replicas      | devices training
split$                | sharded       | devices training
parts?                | shards        | devices training processes
whole                 | replicated    | devices training processes
"""
NAMED_SO = {
    # A line through two points has one.
    ("snippets/programs/timer.py", "slope"),
    # A drawing has parts, and digits are a data set.
    ("snippets/training/data_parallel.py", "parts"),
    ("snippets/models/steps.py", "digits"),
    # What is timed takes turns.
    ("snippets/programs/timer.py", "turns"),
    # Another name would have the years of JAX recorded again.
    ("snippets/appendix/years.py", "slopes"),
    ("docs/appendix/years.md", "apart"),
}
# What is no prose of ours: code, what programs print, addresses, the texts of others.
OTHERS = r"|^:::\{error-entry\}[^\n]*|^>[^\n]*| ~ \"[^\n]*|(?<=\])\([^)\n]*\)|<?https?://\S+"
BLANK = re.compile(CODE + OTHERS, re.M | re.S)
CAPTION = re.compile(r":caption: (.*)")
CELL = re.compile(r"^```\{code-cell\} python\n((?::[^\n]*\n)*)(.*?)^```", re.M | re.S)
HIDDEN = "▪"


def regular(written):
    """Return a regular expression for words of the tables above."""
    for short, long in STANDS_FOR.items():
        written = written.replace(short, long)
    written = written.replace(" ", r"(?: +|\n *)")
    return rf"(?<![\w'-])(?:{written})(?![\w-])"


@dataclasses.dataclass(frozen=True)
class Word:
    """Words not to be written, what to write, and in which chapters: none are all."""

    pattern: re.Pattern
    better: str
    chapters: tuple[str, ...]


def read(table):
    rows = [re.split(r"\s+\|\s+", line) for line in table.splitlines() if line]
    return [
        Word(re.compile(regular(words), re.I), better, tuple(" ".join(chapters).split()))
        for words, better, *chapters in rows
    ]


TABLE, NAMED, SENTENCES = read(WORDS), read(NAMES), read(WORDS + PLAIN)
FINE = re.compile("|".join(map(regular, re.split(r" \| |\n", ALLOWED.strip()))), re.I)


@dataclasses.dataclass(frozen=True)
class Found:
    """A word where it stands."""

    path: pathlib.Path
    line: int
    words: str
    better: str

    @property
    def chapter(self):
        return self.path.parts[1] if len(self.path.parts) > 2 else self.path.stem

    def __str__(self):
        return f"{self.path}:{self.line}: '{self.words}' ({self.better})"


def hide(found):
    return HIDDEN + "\n" * found[0].count("\n")


def search(text, chapter, table=TABLE):
    """Yield (line, words, what to write) for each of a table's words in a text, lines from 0."""
    text = FINE.sub(hide, text)
    for word in table:
        if not word.chapters or chapter in word.chapters:
            for found in word.pattern.finditer(text):
                yield text.count("\n", 0, found.start()), " ".join(found[0].split()), word.better


def prose(text):
    """Return what a page says, at its lines."""
    said = BLANK.sub(hide, text).split("\n")
    captions = (CAPTION.match(line) for line in text.split("\n"))
    return "\n".join(
        line + (caption[1] if caption else "") for line, caption in zip(said, captions, strict=True)
    )


def names(tree):
    """Yield (line, name) of what code defines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def docstrings(tree):
    """Yield (line, text) of what code says of itself."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            if text := ast.get_docstring(node, clean=False):
                yield node.body[0].lineno, re.sub(r"`[^`]*`", hide, text)


def in_names(path, tree, chapter, above=0):
    for line, name in dict.fromkeys(names(tree)):
        if (path.as_posix(), name) in NAMED_SO:
            continue
        for _, _, better in search(name.replace("_", " ").strip(), chapter, NAMED):
            yield Found(path, line + above, name, better)


def in_page(path):
    text, here = path.read_text("utf8"), path.relative_to(ROOT)
    chapter = Found(here, 0, "", "").chapter
    for line, words, better in search(prose(text), chapter, SENTENCES):
        yield Found(here, line + 1, words, better)
    for cell in CELL.finditer(text):
        try:
            tree = ast.parse(cell[2])
        except SyntaxError:
            continue
        yield from in_names(here, tree, chapter, text.count("\n", 0, cell.start(2)))


def in_module(path):
    tree, here = ast.parse(path.read_text("utf8")), path.relative_to(ROOT)
    chapter = Found(here, 0, "", "").chapter
    yield from in_names(here, tree, chapter)
    for first, text in docstrings(tree):
        for line, words, better in search(text, chapter):
            yield Found(here, first + line, words, better)


def in_tests(path):
    tree, here = ast.parse(path.read_text("utf8")), path.relative_to(ROOT)
    chapter = Found(here, 0, "", "").chapter
    for line, name in names(tree):
        if name.startswith("test_"):
            for _, words, better in search(name.replace("_", " "), chapter):
                yield Found(here, line, f"{words} in {name}", better)


def is_of_a_chapter(path):
    return (ROOT / "snippets" / path.relative_to(ROOT / "tests").parts[0]).is_dir()


def everything():
    """Return all that is found, by file and line."""
    found = [each for path in PAGES for each in in_page(path)]
    found += [each for path in MODULES for each in in_module(path)]
    tests = (path for path in (ROOT / "tests").rglob("test_*.py") if is_of_a_chapter(path))
    found += [each for path in tests for each in in_tests(path)]
    return sorted(set(found), key=lambda each: (str(each.path), each.line))


def test_the_words_are_those_of_the_field():
    found = everything()
    assert not found, "write what the field says:\n" + "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Each turn of the loop waits.", ["Each turn"]),
        ("with the number of turns, as before", ["of turns"]),
        ("bfloat16 (7 digits)", ["digits"]),
        ("How do I save a training and resume it?", ["a training"]),
        ("What it takes apart\n  it then hands over.", ["hands over", "takes apart"]),
        ("`tree_flatten` takes its arguments apart.", ["takes its arguments apart"]),
        ("the state is copied to all of them", ["copied to all"]),
        ("JAX shortens the inputs of matrix products", ["products", "shortens"]),
        ("the sum of 1,000 numbers", ["1,000 numbers"]),
        ("How the *way back*\nwaits", ["way back"]),
    ],
)
def test_a_word_that_is_not_of_the_field_is_found(text, words):
    assert sorted(words) == sorted({found for _, found, _ in search(text, "training")})


def test_prose_is_plain_english():
    text = "Inside of `jit` these are those of the page before,\nin place of ours."
    found = [words for _, words, _ in search(text, "training", SENTENCES)]
    assert sorted(found) == ["Inside of", "are those of", "in place of"]


@pytest.mark.parametrize(
    "text",
    [
        "XLA turns this into a program, which turns a check on in turn, where they take turns.",
        "a dot product, the Hessian-vector product, three decimal digits, a training step",
        "The halo exchange, part of the type, takes part. The training data are random numbers.",
        "In training mode, the forward pass is one pass over the array.",
    ],
)
def test_the_same_words_may_mean_something_else(text):
    assert list(search(text, "training")) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("`a turn`, {measured}`a turn`, [it](a.md#a-turn)", f"{HIDDEN}, {HIDDEN}, [it]{HIDDEN}"),
        ('- each turn ~ "a turn"', f"- each turn{HIDDEN}"),
        ("```{code-cell} python\n:tags: [x]\na turn\n```\nz", f"{HIDDEN}\n\n\n\nz"),
        ("```{code-cell} python\n:caption: a turn\nx\n```", f"{HIDDEN}\na turn\n\n"),
    ],
)
def test_what_is_read_of_a_page(text, left):
    assert prose(text) == left


def count(found):
    """Return a table of how much is found in each chapter."""
    kinds = ("docs", "snippets", "tests")
    counts = collections.Counter((each.chapter, each.path.parts[0]) for each in found)
    lines = ["{:16}{:>9}{:>9}{:>9}".format("", *kinds)]
    for chapter in sorted({chapter for chapter, _ in counts}):
        line = "{:16}{:9}{:9}{:9}".format(chapter, *(counts[chapter, kind] for kind in kinds))
        lines.append(line)
    return "\n".join([*lines, f"all {len(found)}"])


if __name__ == "__main__":
    left = everything()
    chapters = sys.argv[1:] or {each.chapter for each in left}
    print(*(each for each in left if each.chapter in chapters), count(left), sep="\n")
