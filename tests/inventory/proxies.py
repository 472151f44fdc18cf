"""Which requests go to a proxy: variables and an address in; what a proxy was asked for out."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


class Case(NamedTuple):
    """PROXY stands for the address of the proxy, PORT for a port where nobody listens."""

    server: str
    variables: dict[str, str]
    is_proxied: bool
    proxy_url: str = ""  # of the kubeconfig


PROXIED = {"HTTPS_PROXY": "http://PROXY"}
FAR = "https://api.example.invalid:6443"
CASES = {
    "a far API server": Case(FAR, PROXIED, True),
    "a variable in small letters": Case(FAR, {"https_proxy": "http://PROXY"}, True),
    "a proxy without http://": Case(FAR, {"HTTPS_PROXY": "PROXY"}, True),
    "the variable for everything, which kubectl does not read": Case(
        FAR, {"ALL_PROXY": "http://PROXY"}, False
    ),
    "the variable for http": Case(FAR, {"HTTP_PROXY": "http://PROXY"}, False),
    "127.0.0.1": Case("https://127.0.0.1:PORT", PROXIED, False),
    "127.0.0.53": Case("https://127.0.0.53:PORT", PROXIED, False),
    "localhost": Case("https://localhost:PORT", PROXIED, False),
    "::1": Case("https://[::1]:PORT", PROXIED, False),
    "0.0.0.0 is not a loopback address": Case("https://0.0.0.0:PORT", PROXIED, True),
    "a name that begins as localhost does": Case(
        "https://localhost.example.invalid:6443", PROXIED, True
    ),
    **{
        f"NO_PROXY={value}": Case(server, {**PROXIED, "NO_PROXY": value}, is_proxied)
        for server, value, is_proxied in (
            (FAR, "*", False),
            (FAR, "api.example.invalid", False),
            (FAR, "API.example.invalid:6443", False),
            (FAR, "api.example.invalid:443", True),
            (FAR, "example.invalid", False),
            (FAR, ".example.invalid", False),
            (FAR, "*.example.invalid", False),
            (FAR, "other.invalid, example.invalid", False),
            (FAR, "ple.invalid", True),
            (FAR, "192.0.2.0/24", True),
            ("https://192.0.2.7:6443", "192.0.2.0/24", False),
            ("https://192.0.2.7:6443", "192.0.2.7", False),
            ("https://192.0.2.7:6443", "192.0.3.0/24", True),
            ("https://[2001:db8::7]:6443", "2001:db8::/32", False),
        )
    },
    "a proxy of the kubeconfig": Case(FAR, {}, True, "http://PROXY"),
    "a proxy of the kubeconfig, and NO_PROXY, which is for the variables": Case(
        FAR, {"NO_PROXY": "*"}, True, "http://PROXY"
    ),
    "a proxy of the kubeconfig, and 127.0.0.1": Case(
        "https://127.0.0.1:PORT", {}, True, "http://PROXY"
    ),
}


class Proxy:
    """Refuses each request, and remembers how many there were."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def tried(case: Case, folder: Path) -> Iterator[tuple[Proxy, Path, dict[str, str]]]:
    """A proxy, a kubeconfig and the variables of a case."""
    proxy = Proxy()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = str(closed.getsockname()[1])
    cluster = {"server": case.server.replace("PORT", port)}
    if case.proxy_url:
        cluster["proxy-url"] = case.proxy_url.replace("PROXY", proxy.address)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    variables = {k: v.replace("PROXY", proxy.address) for k, v in case.variables.items()}
    try:
        yield proxy, path, variables
    finally:
        proxy.close()
