"""Which routes are never requested unasked: one table of words, with the reasons.

Takes a route; gives a reason or "". Goes by words of its path, its name and its view's
name; a page that is left out for nothing costs its warm-up, one that is requested for
nothing may cost data.
"""

from __future__ import annotations

import re

from cowpreload.routes.route import Route

_ENDS_A_SESSION = "ends a session"
_REMOVES = "removes something"
_CHANGES = "changes something"
_ACTS = "makes something happen"
_RULES = "rules a process"
_SENDS = "sends something"
_STREAMS = "streams"
_IS_LARGE = "is large"
_IS_A_FILE = "serves files"
_IS_A_STEP = "is a step of a login"

# No words that are as often a noun of a harmless page: store, tasks, events, archive.
_WORDS = {
    _ENDS_A_SESSION: "logout logoff signout signoff disconnect revoke expire",
    _REMOVES: (
        "delete deletion destroy remove removal erase purge drop wipe clear truncate "
        "flush reset cleanup clean trash discard prune evict invalidate unlink"
    ),
    _CHANGES: (
        "update upsert insert save unset toggle switch move rename merge swap "
        "increment decrement vote upvote downvote unlike follow unfollow subscribe "
        "unsubscribe optin optout activate deactivate reactivate enable disable "
        "confirm verify approve reject accept decline cancel dismiss ban unban "
        "unblock mute unlock unarchive publish unpublish restore rollback revert "
        "undo buy purchase pay charge refund checkout redeem impersonate hijack"
    ),
    _ACTS: (
        "cron cronjob run execute exec eval trigger fire worker process consume "
        "dispatch enqueue sync synchronize refresh rebuild recalculate recompute "
        "reindex regenerate generate seed populate import migrate upgrade install "
        "uninstall deploy release crawl scrape webhook webhooks callback pingback"
    ),
    _RULES: (
        "shutdown stop start restart reboot reload kill quit exit halt terminate abort "
        "suspend resume drain crash panic"
    ),
    _SENDS: "send resend notify invite remind",
    _STREAMS: (
        "stream streaming sse eventstream ws wss websocket websockets polling longpoll"
    ),
    _IS_LARGE: "export download dump backup zip csv xlsx pdf heapdump",
    _IS_A_FILE: "static media staticfiles assets uploads",
    _IS_A_STEP: "oauth oauth2 authorize authorise saml sso oidc connect captcha",
}
_REASONS = {word: why for why, words in _WORDS.items() for word in words.split()}
# Two words that are one where they stand side by side: `log-out`, `signOut`.
_PAIRS = {
    pair: _REASONS["".join(pair)]
    for pair in (
        *(("log", "out"), ("log", "off"), ("sign", "out"), ("sign", "off")),
        *(("clean", "up"), ("opt", "in"), ("opt", "out"), ("shut", "down")),
        *(("check", "out"), ("roll", "back"), ("un", "subscribe"), ("web", "hook")),
        *(("web", "socket"), ("long", "poll"), ("event", "stream")),
    )
}
# What it is called where it is a page of its own. Superset's /dashboard/new/ makes an
# empty dashboard at each look; elsewhere, an empty form stays cold.
_PAGES = {"new": "makes something"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def _words(text: str) -> list[str]:
    """`user_logOut` is user, log, out."""
    return [each.lower() for each in _WORD.findall(text)]


def _why(text: str) -> str:
    words = _words(text)
    # Debian 12's PyPy has no itertools.pairwise.
    for pair in zip(words, words[1:]):  # noqa: B905, RUF007
        if pair in _PAIRS:
            return f"`{'-'.join(pair)}` {_PAIRS[pair]}"
    for word in words:
        if word in _REASONS:
            return f"`{word}` {_REASONS[word]}"
    return ""


def why_left_out(route: Route) -> str:
    """Why this route is not requested unasked, or ""."""
    if route.why_not:
        return route.why_not
    for text in (*route.path.split("/"), *route.names):
        if text in _PAGES:
            return f"`{text}` {_PAGES[text]}"
        reason = _why(text)
        if reason:
            return reason
    return ""
