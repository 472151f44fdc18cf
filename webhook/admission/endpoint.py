"""From the bytes of a request to the bytes of the answer, for Flask and ASGI.

The direct way and Flask both call this, so both return the same bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from webhook.admission import response, review
from webhook.admission.decide import Early
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.admission.decide import Decider
    from webhook.admission.review import Review

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
# The largest body of a review: object and oldObject of 3 MiB each, or one of the 1.5 MiB that etcd
# stores, in which Go writes each byte as six, as it does with `<`, `>` and `&`.
LARGEST_BODY = 10 * 1024 * 1024
_UNREADABLE = (
    "it has too many fields and list items to be read, or is nested too deeply; make it smaller"
)


class Answer(NamedTuple):
    """Status, body, and content type."""

    status: int
    body: bytes
    content_type: str = TEXT


class Endpoint:
    """The admission paths and the two probes."""

    def __init__(
        self,
        decider: Decider,
        not_ready: Callable[[], str],
        notes: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`not_ready` returns why no traffic should come here; empty if it may.

        `notes` returns faults although traffic may come.
        """
        self._not_ready = not_ready
        self._notes = notes
        self.use(decider)

    def use(self, decider: Decider) -> None:
        """Use this decider from now on: settings or inventory have changed."""
        self._decider = decider

    def knows(self, namespace: str) -> bool:
        """Whether the inventory in use has this namespace."""
        return not self._decider.is_new(namespace)

    def post(  # noqa: PLR0913  # the request, and when it may be denied
        self,
        path: str,
        content_type: str,
        content_encoding: str,
        body: bytes,
        moment: float = 0.0,
        *,
        may_wait: bool = False,
    ) -> Answer:
        """Answer a review that was sent to one of the admission paths.

        The inventory must be as new as the moment for a denial; if it `may_wait`, Early is raised.
        """
        if content_type != JSON and (fault := _wrong_type(content_type)):
            return fault
        if content_encoding not in {"", "identity"}:
            return refusal(415, "Content-Encoding: not taken here. Send the body as it is")
        try:
            found = review.parse(body)
        except InputError as error:
            return self.late(path, body, _UNREADABLE) or refusal(400, str(error))
        judge = partial(self._decider.answer, path, moment=moment, may_wait=may_wait)
        return self._answer(found, judge)

    def late(self, path: str, head: bytes, why: str) -> Answer | None:
        """Answer a review that cannot be evaluated; `head` is its beginning.

        None if no API server sent it. For an API server any other answer than a review is a failed
        call, and with failurePolicy Ignore it then admits the object.
        """
        found = review.glance(head)
        if found is None:
            return None
        return self._answer(found, partial(self._decider.late, path, why))

    def _answer(self, found: Review, judge: Callable[[Review], bytes]) -> Answer:
        try:
            return Answer(200, judge(found), JSON)
        except Early:
            raise
        except Exception as error:  # noqa: BLE001  # a bug of the webhook must not block a pod
            self._decider.log.write(
                "error", "a review could not be answered", uid=found.uid, error=type(error).__name__
            )
            text = "this object was admitted unchecked: the webhook failed on it; please report it"
            warnings = [response.warning(response.US, text)]
            return Answer(200, response.answer(found, warnings=warnings), JSON)

    def healthz(self) -> Answer:
        """The process works."""
        return Answer(200, b"ok")

    def readyz(self) -> Answer:
        """Traffic may come."""
        reason = self._not_ready()
        if reason:
            return refusal(503, f"not ready: {reason}")
        return Answer(200, "\n".join(["ok", *self._notes()]).encode("utf-8", "replace"))


def refusal(status: int, message: str) -> Answer:
    """An answer with place, reason and advice."""
    return Answer(status, message.encode("utf-8", "replace"))


def _wrong_type(content_type: str) -> Answer | None:
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if media != JSON:
        return refusal(415, f"Content-Type: not {JSON}. Send the review as {JSON}")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8"}:
            return refusal(400, "Content-Type: charset is not utf-8. Send the review in UTF-8")
    return None
