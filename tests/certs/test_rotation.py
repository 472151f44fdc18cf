"""A new pair of any kind of key: each new connection gets it, with its chain and no other."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import ssl
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.certs.chained import HOST, KINDS, chained
from tests.cluster.certificates import Authority
from tests.cluster.client import until
from tests.hostile.wire import get, gpu_pod, post, review, serving
from webhook.certs.clients import Clients
from webhook.certs.context import ServingContext

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hostile.wire import Server
    from webhook.certs.development import Files

pytestmark = pytest.mark.programs

REQUEST = post(review(gpu_pod()))
FLAGS = ("--tls-cert-file=live/tls.crt", "--tls-private-key-file=live/tls.key")
WORKERS = 2
# Each kind follows another one, and one of its own.
WALK = ("P-256", "RSA", "Ed25519", "P-256", "P-384", "RSA", "RSA", "P-256", "P-256")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Files]]:
    """Two pairs of each kind of key, with CAs of their own."""
    folder = tmp_path_factory.mktemp("pairs")
    return {
        kind: [chained(folder / f"{kind}-{number}", make) for number in range(2)]
        for kind, make in KINDS.items()
    }


def put(pair: Files, live: Path) -> None:
    """Replace both files, each in one step."""
    live.mkdir(exist_ok=True)
    for file in (pair.key, pair.cert):
        shutil.copy(file, live / "new")
        (live / "new").replace(live / file.name)


def trusting(pair: Files, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """A client that trusts the root of this pair alone."""
    client = ssl.create_default_context(cafile=str(pair.ca))
    client.minimum_version = client.maximum_version = version
    return client


def shown(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes:
    """The certificate that this client is shown, and verifies."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=HOST)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for side in (ours, theirs) * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        done.add(side)
    assert done == {ours, theirs}
    return ours.getpeercert(binary_form=True) or b""


def certificate_of(pair: Files) -> bytes:
    first, end, _ = pair.cert.read_text().partition("-----END CERTIFICATE-----\n")
    return ssl.PEM_cert_to_DER_cert(first + end)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("old", "new"), list(itertools.product(KINDS, KINDS)))
def test_a_pair_replaces_one_of_any_kind_of_key(
    pairs: dict[str, list[Files]], tmp_path: Path, old: str, new: str, version: ssl.TLSVersion
) -> None:
    before, after = pairs[old][0], pairs[new][1]
    put(before, tmp_path / "live")
    said: list[tuple[str, str]] = []
    files = (tmp_path / "live/tls.crt", tmp_path / "live/tls.key")
    it = ServingContext(*files, lambda *each: said.append(each))
    assert shown(it.context, trusting(before, version)) == certificate_of(before)
    put(after, tmp_path / "live")
    it.refresh()
    assert shown(it.context, trusting(after, version)) == certificate_of(after)
    with pytest.raises(ssl.SSLCertVerificationError):
        shown(it.context, trusting(before, version))
    assert [level for level, _ in said] == ["info"]


def test_a_new_pair_comes_with_the_client_cas_that_are_in_force(
    pairs: dict[str, list[Files]], tmp_path: Path
) -> None:
    ours, before, after = Authority(tmp_path / "ours"), pairs["P-256"][0], pairs["RSA"][0]
    shutil.copy(ours.bundle, ca_file := tmp_path / "clients.crt")
    put(before, tmp_path / "live")
    files = (tmp_path / "live/tls.crt", tmp_path / "live/tls.key")
    it = ServingContext(*files, lambda *_: None, clients=Clients(ca_file))
    ca_file.write_text("nonsense")  # said once, and the CAs before stay in force
    it.refresh()
    put(after, tmp_path / "live")
    it.refresh()
    for authority, is_trusted in ((ours, True), (Authority(tmp_path / "theirs"), False)):
        client, identity = trusting(after), authority.client("kube-apiserver")
        client.load_cert_chain(identity.certificate, identity.key)
        with nullcontext() if is_trusted else pytest.raises(ssl.SSLError, match="notified"):
            assert shown(it.context, client) == certificate_of(after)


def ask(server: Server, client: ssl.SSLContext, session: ssl.SSLSession | None = None) -> Answer:
    """Send a review on a new connection, and say whom it reached."""
    with (
        server.connect_plainly() as plain,
        client.wrap_socket(plain, server_hostname=HOST, session=session) as connection,
    ):
        connection.sendall(REQUEST)
        assert server.read(connection)[0].patch()
        shown = connection.getpeercert(binary_form=True) or b""
        return Answer(shown, bool(connection.session_reused), connection.session)


class Answer:
    """What a connection was shown, and what it may go on with next time."""

    def __init__(self, shown: bytes, is_resumed: bool, session: ssl.SSLSession | None) -> None:  # noqa: FBT001
        self.shown, self.is_resumed, self.session = shown, is_resumed, session


@contextmanager
def alone(server: Server, worker: int) -> Iterator[None]:
    """All other workers stand still, so that this one takes what comes."""
    others = [each for each in server.workers() if each != worker]
    for each in others:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in others:
            os.kill(each, signal.SIGCONT)


def is_shown(server: Server, pair: Files) -> bool:
    try:
        return ask(server, trusting(pair)).shown == certificate_of(pair)
    except ssl.SSLCertVerificationError:
        return False


def test_every_worker_shows_the_new_pair_and_old_connections_go_on(
    pairs: dict[str, list[Files]], tmp_path: Path
) -> None:
    first, *others = WALK
    before = pairs[first][0]
    put(before, tmp_path / "live")
    with serving(tmp_path, *FLAGS, f"--workers={WORKERS}", trust=before.ca) as server:
        until(lambda: server.is_complete(WORKERS), "all workers")
        plain = server.connect_plainly()
        with trusting(before).wrap_socket(plain, server_hostname=HOST) as connection:
            for turn, kind in enumerate(others, 1):
                after = pairs[kind][turn % 2]
                put(after, tmp_path / "live")
                for worker in server.workers():
                    with alone(server, worker):
                        until(partial(is_shown, server, after), f"{kind} to be shown")
                        assert not is_shown(server, before)
                before = after
            connection.sendall(get("/healthz"))
            assert server.read(connection)[0].status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_of_the_old_pair_is_not_resumed(
    pairs: dict[str, list[Files]], tmp_path: Path, version: ssl.TLSVersion
) -> None:
    before, after = pairs["P-256"]
    put(before, tmp_path / "live")
    with serving(tmp_path, *FLAGS, "--workers=1", trust=before.ca) as server:
        client = trusting(before, version)
        client.load_verify_locations(after.ca)
        first = ask(server, client)
        assert ask(server, client, first.session).is_resumed, "else this test shows nothing"
        put(after, tmp_path / "live")
        until(lambda: is_shown(server, after), "the new pair to be shown")
        again = ask(server, client, first.session)
    assert not again.is_resumed
    assert again.shown == certificate_of(after)
