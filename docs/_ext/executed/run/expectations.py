"""Judge an executed cell: did it raise what is declared for it, and nothing else?"""

from collections.abc import Iterable

from nbformat import NotebookNode

from ..source.snippets import ExpectedError
from ..store.outputs import error as error_among

NOT_INSTALLED = (
    "\nA package that pages import stands in the requirements that the book is installed from; "
    "where outputs depend on its version, in book_frameworks of conf.py too"
)


def judge(outputs: Iterable[NotebookNode], expected: ExpectedError | None) -> str | None:
    """Return what is wrong with a cell's outcome, or None.

    Three verdicts: the declared error did not come, another came instead, or
    an error came that nothing declares. Types are told apart by their names.
    """
    error = error_among(outputs)
    shown = "\n".join(error.traceback) if error else ""
    if expected is None:
        if error is None:
            return None
        hint = NOT_INSTALLED if error.ename == "ModuleNotFoundError" else ""
        return f"raised {error.ename}, which no snippet declares\n{shown}{hint}"
    if not expected.type:
        return None if error else "did not raise: its tag raises-exception declares an error"
    subject = expected.snippet or "the cell"
    declared = f"{expected.type} with '{expected.fragment}' in its message"
    if error is None:
        return f"did not raise: {subject} declares {declared}"
    name = expected.type.rpartition(".")[2]
    if error.ename == name and expected.fragment in error.evalue:
        return None
    return f"raised another error: {subject} declares {declared}, but this came\n{shown}"
