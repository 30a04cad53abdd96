"""What errors add to the core: what those that cells declare came to, here and elsewhere."""

import pathlib
from collections.abc import Sequence

from executed import files
from executed.hooks import Conclusion, Feature, PageResults
from executed.options import Options
from executed.panels import Panel
from executed.run.outcome import Failure
from executed.source.pages import Page
from executed.store.states import Standing

from .by_version import with_versions
from .outcomes import declared_errors
from .version_files import OPTION, Versions, recorded_pages

NAME = "errors"


class Errors(Feature):
    """Errors that cells declare, and what other versions of a package say."""

    name = NAME
    cell_options = (OPTION,)

    def __init__(self, options: Options) -> None:
        """Find what was recorded of other versions."""
        super().__init__(options)
        self.versions = Versions(options)

    def files(self) -> dict[str, pathlib.Path]:
        """Return the files of the versions."""
        # A new recording of a version is rare, and has all pages read again.
        return {name: self.versions.path(name) for name in self.versions.names}

    def conclude(self, taken: PageResults) -> Conclusion:
        """Gather the errors that the page declares, with what they came to."""
        texts = self.versions.texts(taken.page)
        errors = declared_errors(taken.page, taken.results[0].outputs, texts)
        return Conclusion(errors) if errors else Conclusion()

    def show(
        self, taken: PageResults, panels: Sequence[list[Panel]]
    ) -> tuple[Sequence[list[Panel]], tuple[Failure, ...]]:
        """Add what other versions printed to the cells that ask for it."""
        texts = self.versions.texts(taken.page)
        return with_versions(taken.page, panels, taken.results[0].outputs, texts, self.options), ()

    def listed(self, pages: Sequence[Page]) -> dict[str, str]:
        """Say of each version how many texts of pages must be recorded again."""
        standings = {}
        for name in self.versions.names:
            try:
                missing = {
                    page.docname: self.versions.count_missing(name, page)
                    for page in recorded_pages(pages, self.options)
                }
            except files.Unusable as error:
                standings[name] = f"unreadable: {error}"
                continue
            count = sum(missing.values())
            where = ", ".join(docname for docname, number in missing.items() if number)
            left_out = f"{count} texts left out, of {where}"
            standings[name] = left_out if count else str(Standing.CURRENT)
        return standings


FEATURE = Errors
