"""Executes pages and writes what each gave as its recording."""

import contextlib
from collections.abc import Callable, Iterable

from .. import files
from ..options import Options
from ..source.pages import Page
from ..store.output_format import PageOutputs
from ..store.recordings import Recordings
from ..store.sanitising import Refused
from . import key, machine
from .outcome import Result
from .page_run import used_versions
from .results import run_or_load


class Recorder:
    """Executes pages and records each that goes well; `problems` are those that were met."""

    def __init__(self, options: Options, recordings: Recordings) -> None:
        """Take where recordings are kept."""
        self.options, self.recordings = options, recordings
        self.problems: list[str] = []

    def record(self, pages: Iterable[Page], again: bool = False) -> None:
        """Execute pages, those `again` that the cache holds, and write their recordings."""
        self.execute(pages, self.write, again)

    def execute(
        self, pages: Iterable[Page], done: Callable[[Page, PageOutputs], object], again: bool
    ) -> None:
        """Execute pages, and hand over what each gives that goes well."""

        def take(result: Result) -> None:
            if result.failures:
                file = self.options.page_files[result.page.docname]
                self.problems += [f"{file}:{f.line}: {f.message}" for f in result.failures]
            else:
                done(result.page, result.outputs)

        run_or_load(
            pages,
            self.options,
            take,
            say,
            lambda page, message: say(f"      {page.docname}: {message}"),
            again,
        )

    def write(self, page: Page, outputs: PageOutputs) -> bool:
        """Write the recording of a page; say whether it could be."""
        file = self.options.page_files[page.docname]
        try:
            path = self.recordings.write(
                outputs, page.record_command or self.options.record_command
            )
        except (files.Unusable, Refused) as error:
            self.problems.append(f"{file}: its outputs cannot be recorded: {error}")
            return False
        except OSError as error:
            self.problems.append(
                f"{file}: its recording cannot be written: {error.strerror or error}"
            )
            return False
        left = sorted({cell.missing for cell in outputs.cells if cell.missing})
        missing = f", but for cells that need {' or '.join(left)}" if left else ""
        if path is None:
            say(f"      {page.docname}: the same as recorded")
        else:
            say(f"      recorded {path}{missing}")
        return True

    def differences(self, page: Page, outputs: PageOutputs) -> list[str]:
        """Say what is another here than where a page was recorded: versions, the processor."""
        used = {"python", *key.packages(page, self.options)}
        there, here = outputs.facts.versions, used_versions(self.options)
        differing = [
            f"{name} {here.get(name, 'missing')}, not {there.get(name, 'missing')}"
            for name in sorted(used & (there.keys() | here.keys()))
            if there.get(name) != here.get(name)
        ]
        if outputs.facts.processor != (processor := machine.processor()):
            differing.append(f"{processor}, not {outputs.facts.processor}")
        return differing

    def from_elsewhere(self, pages: Iterable[Page]) -> str:
        """Say what is another here, of the first of these pages recorded elsewhere."""
        for page in pages:
            with contextlib.suppress(files.Unusable):
                outputs = self.recordings.read(self.options.device, page.docname)
                if outputs and (differing := self.differences(page, outputs)):
                    return ", ".join(differing)
        return ""


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)
