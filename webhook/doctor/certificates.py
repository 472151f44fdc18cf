"""The lines about certificates: what the Secret and the caBundles hold in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.certs.authority import blocks_in, common_name, is_signed_by
from webhook.certs.renewal import distrusting
from webhook.doctor.lines import FAILED, OK, WARNING, Line
from webhook.issuing.objects import SECRET
from webhook.kube.times import DAY, date

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.certs.authority import Identity
    from webhook.certs.own_certificates import OwnCertificates
    from webhook.certs.renewal import Bundles

_LATE = 0.8  # of its life: it should have been renewed
_LOG = "the log of `watch` has the reason"
_APPLY = "apply again what you installed the webhook from"
_WATCHERS = "the watchers fill it within 10 s; if not, their log has the reason"


def no_secret() -> Iterator[Line]:
    """Where the Secret of own certificates is not there."""
    text = f"{SECRET} is not there: no watcher keeps certificates (manifests/secret, cert-manager "
    yield Line(WARNING, f"{text}and openshift need none)", what="Secret")


def immutable(namespace: str) -> Line:
    """Where the Secret of own certificates cannot be changed."""
    secret = f"kubectl -n {namespace} get secret {SECRET} -o yaml"
    fix = f"{secret} | sed '/^immutable:/d' | kubectl replace --force -f -"
    return Line(FAILED, f"{SECRET} is immutable: no watcher can renew them", fix, "Secret")


def pairs(kept: OwnCertificates, now: float) -> Iterator[Line]:
    """The CAs and the server certificate of the Secret of own certificates."""
    yield of_pair("CA", kept.ca, now)
    if kept.next is not None:
        until = _until(kept.next.end, now)
        yield Line(WARNING, "waits for all caBundles", _LOG, "next CA", until)
    for old in kept.old:
        text = f"{common_name(old)}: trusted until its leaves end, or `certs rotate --distrust`"
        yield Line(OK, text, "", "old CA", _until(kept.until, now))
    leaf = of_pair("server", kept.leaf, now)
    signers = [pair.certificate for pair in (kept.ca,) if pair is not None]
    if kept.leaf is not None and not any(
        is_signed_by(kept.leaf.certificate, ca) for ca in (*signers, *kept.old)
    ):
        leaf = leaf._replace(state=FAILED, text="no CA of the Secret signed it", fix=_LOG)
    yield leaf


def of_pair(what: str, pair: Identity | None, now: float, renewed_by: str = _LOG) -> Line:
    """A certificate with its key; `renewed_by` says where to look if it is late."""
    if pair is None:
        return Line(FAILED, "missing, expired or damaged", renewed_by, what)
    names = ", ".join(pair.hosts()) or common_name(pair.certificate)
    until = _until(pair.end, now)
    if now - pair.made > _LATE * (pair.end - pair.made):
        return Line(WARNING, f"{names}: not renewed", renewed_by, what, until)
    return Line(OK, names, "", what, until)


def trust(kept: OwnCertificates, bundles: Bundles, filled_by: str = _WATCHERS) -> Iterator[Line]:
    """Whether each configuration trusts the server; `filled_by` says who fills the caBundle."""
    if not bundles:
        text = "none is there: no API server calls the webhook"
        yield Line(FAILED, text, _APPLY, "configurations")
    against = distrusting(kept.leaf, bundles) if kept.leaf is not None else []
    authorities = {blocks_in(pair.text)[0] for pair in (kept.ca, kept.next) if pair is not None}
    for name, texts in bundles.items():
        held = [{*blocks_in(text)} for text in texts]
        if name in against:
            yield Line(FAILED, "its caBundle does not trust the server", filled_by, name)
        elif not all(held):
            text = "its caBundle is empty: the API server cannot call"
            yield Line(FAILED, text, filled_by, name)
        elif kept.leaf is None:
            yield Line(WARNING, "not compared: there is no server certificate", what=name)
        elif not all(authorities <= each for each in held):
            yield Line(WARNING, "its caBundle lacks a CA of the Secret", filled_by, name)
        else:
            yield Line(OK, "trusts the server", what=name)


def _until(end: float, now: float) -> str:
    return f"{date(end)} ({(end - now) / DAY:.0f} d)"
