"""The outputs of pages: from the cache, or by executing what it does not hold."""

from collections.abc import Callable, Iterable

from ..files import Unusable
from ..options import Options
from ..source.pages import Page
from ..store.cache import Cache
from ..store.recordings import Recordings
from . import schedule
from .key import key
from .outcome import Result


def run_or_load(
    pages: Iterable[Page],
    options: Options,
    done: Callable[[Result], None],
    say: Callable[[str], None],
    trouble: Callable[[Page, str], None],
    again: bool = False,
) -> None:
    """Call `done` with the Result of each page, as soon as there is one.

    `say` receives lines about the progress and about what was repaired, `trouble` what keeps
    outputs from being cached: they are good all the same, but are made again next time. `again`
    executes what the cache holds, too.
    """
    device = options.device
    cache = Cache(options.folder("cache") / device)
    # What pages took when they were recorded says which are the long ones.
    recordings = Recordings(options.folder("recordings"))
    waiting, efforts, lent = [], {}, set()
    keys: dict[str, str] = {}
    for page in pages:
        measures = options.preview and page.benchmark
        if measures and recordings.has_code_of(page.device or device, page):
            lent.add(page.docname)
        page_key = keys[page.docname] = key(page, options, device, page.docname in lent)
        try:
            outputs = cache.load(page, page_key, page.device or device)
        except Unusable as error:
            say(
                f"warning: the cached outputs of {page.docname} cannot be used: {error}; "
                "the page is executed again"
            )
            outputs = None
        if outputs is None or again:
            waiting.append(page)
            efforts[page.docname] = recordings.effort(device, page.docname)
        else:
            done(Result(page, outputs))

    def executed(result: Result) -> None:
        page = result.page
        if not result.failures:
            try:
                cache.save(page, keys[page.docname], result.outputs)
            except OSError as error:
                trouble(
                    page,
                    f"its outputs cannot be kept in {options.cache}: {error.strerror or error}. "
                    "They are shown, but the next build executes the page again; free space or "
                    "make the folder writable",
                )
        done(result)

    if waiting:
        schedule.execute_all(waiting, options, device, executed, efforts, say, lent)
