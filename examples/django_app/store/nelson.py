"""/nelson/: the test page of a paper on garbage collection and copy-on-write.

Andrew Nelson, "Optimizing Pypy's Garbage Collector for Copy On Write Performance given
a forky Web-Server Workload", CSC 550, 23 March 2018, section 5.1: a Django site that
stands for a production load, with nginx and preforking uWSGI, 4 workers, in a
container of 8 GB and 3 cores. Written anew here after the description and figures.

What the paper's site holds:

- a large object is 1,600 lists of 0, 1, 2, ... 1,599 references to one word, and for
  each list 40 times a text of 24 letters, 64,000 in all;
- five of them are made at start, in the master;
- each request makes one more and keeps the last three.

What the paper measured with it: bursts of 100 requests, 5,000 in all, the private
memory of each worker read after every burst from its smaps file; 1,000 to 1,200 MB a
worker with PyPy's own collector, about 800 MB with the marks kept outside the objects,
a fifth less.

On CPython an object takes 10.3 MB, nearly all of it references: the compiler folds the
text into one string. Five are 51 MB of inherited heap, and a worker's own three are
31 MB (41 MB for a moment, because the fourth is made before the first is dropped).
These are not the paper's megabytes, so compare modes here and not with the paper.

Takes nothing, gives a page of plain text. Must not be served by threads: the rotation
is one for the process, as it was in the paper.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

AT_START = 5
KEPT = 3
LISTS = 1_600
TEXTS_A_LIST = 40


class LargeObject:
    """10.3 MB of lists: 1,279,200 references to a word and 64,000 to a text."""

    __slots__ = ("lists", "texts")

    def __init__(self) -> None:
        self.lists = [["text"] * length for length in range(LISTS)]
        self.texts = ["str" * 8 for _ in range(LISTS * TEXTS_A_LIST)]


_at_start: list[LargeObject] = []
_latest: list[LargeObject] = []


def start() -> None:
    """Make the large objects that the workers inherit, once, if the page is on."""
    if settings.SHOP_NELSON and not _at_start:
        _at_start.extend(LargeObject() for _ in range(AT_START))


def page(request: HttpRequest) -> HttpResponse:
    """Make a large object, keep it with the two before it, and count them."""
    _latest.insert(0, LargeObject())
    del _latest[KEPT:]
    return HttpResponse(
        f"at start: {len(_at_start)}\nlatest: {len(_latest)}\n",
        content_type="text/plain",
    )
