"""`gpu-webhook serve`: reads settings, inventory and certificates, and starts the server."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import itertools
import resource
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.cli.starting import ended_by_signals
from webhook.core.errors import InputError
from webhook.serving import BACKLOG

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from webhook.certs.clients import Clients
    from webhook.cli.reload import Live
    from webhook.serving.asgi import AdmissionApp
    from webhook.serving.server import Server
    from webhook.telemetry.logs import Log
    from webhook.telemetry.metrics import Metrics
    from webhook.telemetry.page import Page

PORT = 8443
HIGHEST_PORT = 65535
_LOOK_SECONDS = 0.2  # between two looks at files that do not exist yet


class Address(NamedTuple):
    """The address to listen on; without a host, all addresses."""

    host: str
    port: int

    def __str__(self) -> str:
        """As in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host or '*'}:{self.port}"


def run(args: SimpleNamespace) -> int:
    """Serve until a signal arrives. InputError for faulty flags or files."""
    with ended_by_signals():
        return _run(args)


def _run(args: SimpleNamespace) -> int:
    from webhook.certs.clients import Clients
    from webhook.cli.reload import Live, SingleWriter, Sources
    from webhook.inventory.publish import Snapshot
    from webhook.telemetry.logs import Log

    if args.workers < 1:
        raise InputError(f"--workers {args.workers}: write 1 or more")
    if args.snapshot and args.inventory:
        raise InputError(
            "--inventory and --snapshot (or their variables GPU_WEBHOOK_SERVE_INVENTORY and "
            "GPU_WEBHOOK_SERVE_SNAPSHOT): nodes come from a file or from a watcher; leave one out"
        )
    if args.client_name and not args.client_ca:
        raise InputError(
            "--client-name: it needs --client-ca, the CA of these certificates; add it"
        )
    snapshot = Snapshot(args.snapshot) if args.snapshot else None
    sources = Sources(args.config or "", args.inventory or "", snapshot)
    settings, inventory = sources.read()
    address = read_address(args.bind, dev=args.dev)
    cert, key = _certificates(args, address)
    log = Log()
    if args.tls_wait:
        _await(cert, key, log)
    listener = listen(address)
    page, metrics = _metrics(args, log)
    live = Live(sources, settings, inventory, log, SingleWriter(), metrics)
    clients = Clients(Path(args.client_ca) if args.client_ca else None, args.client_name)
    keep = page.keep if page is not None else lambda: None
    server = _server(live, listener, args.workers, (cert, key), clients, keep)
    port = listener.getsockname()[1]
    log.write("info", "listening", address=str(Address(address.host, port)), workers=args.workers)
    if args.dev:
        _invite(address.host, port, cert.with_name("ca.crt"))
    log.close()
    _raise_file_limit()
    listener.detach()  # gunicorn closes it
    gc.collect()
    gc.freeze()  # the processes keep sharing memory pages that no collection touches
    try:
        server.run()
    except SystemExit as done:  # gunicorn ends so
        return done.code if isinstance(done.code, int) else 1
    finally:
        if page is not None:
            page.stop()
    return 0


def _metrics(args: SimpleNamespace, log: Log) -> tuple[Page | None, Metrics]:
    """The metrics page, and the metrics that are counted for it."""
    from webhook.telemetry.metrics import NONE, counting

    if not args.metrics_bind:
        return None, NONE
    from webhook.admission.decide import PATHS
    from webhook.admission.outcome import OUTCOMES
    from webhook.certs.failed_handshakes import REASONS
    from webhook.rules import ALL, RULES
    from webhook.telemetry.shared_folder import SharedFolder

    flag = "--metrics-bind"
    listener = listen(read_address(args.metrics_bind, dev=args.dev, flag=flag), flag)
    scratch = SharedFolder()
    # First of all: prometheus_client gets its folder here, before any other import of it.
    expected = itertools.chain(
        (("rule_failures", rule.CODE) for rule in ALL),
        itertools.product(["reviews"], PATHS, OUTCOMES),
        (("tls_failures", reason) for reason in REASONS),
    )
    metrics = counting(scratch.path, expected, [rule.CODE for rule in RULES])
    from webhook.inventory.watcher_metrics import WatcherMetrics
    from webhook.telemetry.page import Page

    more = [WatcherMetrics(args.snapshot)] if args.snapshot else []
    return Page(listener, scratch, log, *more), metrics


def _certificates(args: SimpleNamespace, address: Address) -> tuple[Path, Path]:
    if not args.dev:
        return Path(args.tls_cert_file), Path(args.tls_private_key_file)
    from webhook.certs import development

    files = development.ensure(Path("certs"), [address.host] if address.host else [])
    return files.cert, files.key


def _await(cert: Path, key: Path, log: Log) -> None:
    """Wait for the first pair of a watcher. Probes fail meanwhile, as nothing listens."""
    if not (cert.exists() and key.exists()):
        log.write("info", "waiting for the certificate: see the log of `watch`", file=str(cert))
    while not (cert.exists() and key.exists()):
        time.sleep(_LOOK_SECONDS)


def _server(
    live: Live,
    listener: socket.socket,
    workers: int,
    pair: tuple[Path, Path],
    clients: Clients,
    keep: Callable[[], None],
) -> Server:
    from webhook.admission.app import create_app
    from webhook.admission.endpoint import Endpoint
    from webhook.certs.context import ServingContext
    from webhook.certs.failed_handshakes import Failures
    from webhook.serving.asgi import AdmissionApp
    from webhook.serving.server import Server
    from webhook.serving.waiting import Waiting

    def report(level: str, message: str) -> None:
        if live.speaker.is_me():
            live.log.write(level, message)

    failures = Failures(live.log.write, live.metrics.tls_failed)
    serving = ServingContext(*pair, report, clients=clients, failed=failures.add)

    def make_app(server: Server) -> AdmissionApp:
        def not_ready() -> str:
            return "draining" if server.draining else live.not_ready()

        def refresh() -> None:
            serving.refresh()
            valid = serving.validity
            live.metrics.certificate(valid.start, valid.end, is_newest=serving.is_good)
            if live.refresh():
                endpoint.use(live.decider())
            failures.log_counts()
            live.metrics.flush()

        def catch_up() -> float:
            if live.read_snapshot():
                endpoint.use(live.decider())
            return live.known_until()

        live.refresh()
        endpoint = Endpoint(live.decider(), not_ready, lambda: [*serving.notes(), *live.notes()])
        server.refresh = refresh
        return AdmissionApp(endpoint, create_app(endpoint), waiting=Waiting(catch_up))

    return Server(
        make_app,
        listener=listener.fileno(),
        workers=workers,
        context=serving.context,
        ended=live.metrics.ended,
        why_not=clients.why_not,
        refused=failures.add,
        keep=keep,
    )


def read_address(text: str | None, *, dev: bool, flag: str = "--bind") -> Address:
    """Parse ADDRESS:PORT, [IPV6]:PORT or :PORT."""
    if text is None:
        return Address("127.0.0.1" if dev else "", PORT)
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    fine = colon and port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT
    if not fine or (":" in host and not bracketed):
        raise InputError(
            f"{flag} {text}: not ADDRESS:PORT. Write 127.0.0.1:{PORT}, [::1]:{PORT}, or :{PORT} "
            "for all addresses"
        )
    return Address(host[1:-1] if bracketed else host, int(port))


def listen(address: Address, flag: str = "--bind") -> socket.socket:
    """A listening socket, or InputError. All addresses include IPv6 if the machine has it."""
    try:
        if not address.host:
            return _listen_on_all(address.port)
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, *_, where = found[0]
        return socket.create_server(
            (str(where[0]), address.port), family=family, backlog=BACKLOG, reuse_port=False
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"{flag} {address}: cannot listen there ({reason}). "
            "Stop what uses that port, or choose another address or port"
        ) from error


def _listen_on_all(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
            )
    return socket.create_server(("0.0.0.0", port), backlog=BACKLOG)


def _raise_file_limit() -> None:
    """As many sockets as the machine allows: the usual 1024 is what API servers open at once."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _invite(host: str, port: int, ca: Path) -> None:
    """Print how to call the server that was just started."""
    with contextlib.suppress(ValueError):
        if not host or ipaddress.ip_address(host).is_unspecified:
            host = "localhost"
    url = f"https://{Address(host, port)}/healthz"
    line = f"curl --cacert {shlex.quote(str(ca.absolute()))} {url}"
    print(f"The CA is {ca.absolute()}. Try:\n  {line}", file=sys.stderr)  # noqa: T201
