"""Requests to the API server: raw pages of lists, raw lines of watches.

The `kubernetes` client provides the address and the credentials (in-cluster, kubeconfig, exec
plugins, tokens that are read again); its typed objects take ten times the memory.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import threading
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies

import orjson
import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, list_kube_config_contexts, load_incluster_config
from kubernetes.config.kube_config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    KubeConfigLoader,
    KubeConfigMerger,
)
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    NewConnectionError,
)
from yaml import YAMLError

from webhook.cluster.trust import accept_every_ca
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 30.0  # the API server may compute a list for a while, but sends it at once
PAGE_SECONDS = 45.0  # for one page in all, however slowly it arrives
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
# Bytes of one object. The API server accepts bodies of 3 MiB, and its JSON may have six characters
# for one (`<` as \u003c).
MOST_OF_ONE = 32 << 20
_CHUNK = 1 << 16
_QUOTED = 200  # characters of an answer that go into a message
_JSON = "application/json"
_JSON_PATCH = "application/json-patch+json"
_OK, _CREATED = 200, 201
_UNAUTHORIZED = 401


class Fault(Exception):  # noqa: N818 - what happened
    """No answer, or an unusable one. `away`: no server was reached."""

    def __init__(self, message: str, *, away: bool = False) -> None:
        super().__init__(message)
        self.away = away


class TooLarge(Fault):
    """More bytes than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer has more than {most} bytes")


class Refused(Fault):
    """The API server answered with an error: an HTTP status, or an ERROR event of a watch."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after = retry_after  # seconds that it asks to wait

    @property
    def is_of_nobody(self) -> bool:
        """Whether the credentials are missing or have expired: no right would help."""
        return self.status == _UNAUTHORIZED or 'User "system:anonymous"' in str(self)


def address(*segments: str) -> str:
    """The path of these segments; Fault if one is not a valid segment.

    As in Kubernetes (apimachinery `path.IsValidPathSegmentName`); an HTTP client would follow two
    dots upwards.
    """
    for each in segments:
        if each in ("", ".", "..") or "/" in each or "%" in each:
            raise Fault(f"{each[:_QUOTED]!r} is no part of an address of the API server")
    return "".join(f"/{quote(each, safe='')}" for each in segments)


def as_json(value: object, option: int | None = None) -> bytes:
    """The text of this value. Fault if it has more levels than can be written: a tenant may."""
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError as error:
        raise Fault(f"it cannot be written as JSON: {error}") from error


def no_answer(fault: Fault) -> InputError:
    """The error of a command that needs the API server."""
    return InputError(
        f"no answer from the API server: {fault}. Is it up, and the context right? "
        "(--kubeconfig FILE, --context NAME)"
    )


def configuration(kubeconfig: str | None = None, context: str | None = None) -> Configuration:
    """The address and the credentials; InputError if there are none."""
    found = Configuration()
    found.proxy = found.no_proxy = None
    try:
        if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(found)  # type: ignore[no-untyped-call]
        else:
            _read_kubeconfig(found, kubeconfig, context)
    except (ConfigException, YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        what = kubeconfig or "in-cluster configuration or kubeconfig"
        raise InputError(f"{what}: {error}; name a file with --kubeconfig") from error
    if not found.proxy:  # the kubeconfig has no `proxy-url`, for which NO_PROXY is not read
        _proxy_of_variables(found)
    return found


def _read_kubeconfig(found: Configuration, kubeconfig: str | None, context: str | None) -> None:
    """Set what `load_kube_config` sets, and for whom the user acts, in one reading of the files."""
    read: Any = KubeConfigMerger  # these two have no types
    load: Any = KubeConfigLoader
    config = read(kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION).config
    if config is None:
        raise ConfigException("Invalid kube-config file. No configuration found.")
    load(config, active_context=context, config_base_path=None).load_and_set(found)
    found.impersonated = _impersonated(config.value, context)


def _impersonated(config: Any, context: str | None) -> list[tuple[str, str]]:
    """The headers for whom the user of a kubeconfig acts, which the client does not read."""
    contexts = {each["name"]: each.value["context"] for each in config["contexts"]}
    users = {each["name"]: each.value.get("user") for each in config["users"]}
    user = users.get(contexts[context or config["current-context"]].get("user")) or {}
    found = [("User", user.get("as")), ("Uid", user.get("as-uid"))]
    found += [("Group", each) for each in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        found += [(f"Extra-{quote(key, safe='')}", each) for each in values]
    return [(f"Impersonate-{name}", str(value)) for name, value in found if value]


def _proxy_of_variables(found: Configuration) -> None:
    """Set the proxy that kubectl would use; the client compares hosts with NO_PROXY.

    Go never asks one for this machine, reads no ALL_PROXY, and knows `*.` (net/http/httpproxy).
    """
    server, variables = urlsplit(found.host), getproxies()
    proxy = variables.get(server.scheme)
    if proxy and not _is_this_machine(server.hostname or ""):
        found.proxy = proxy if "://" in proxy else f"http://{proxy}"
        found.no_proxy = variables.get("no", "").replace("*.", ".")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def namespace(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace of the context, as in kubectl; InputError if there is no such context."""
    in_pod = kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    try:
        if in_pod:
            return _OWN_NAMESPACE.read_text().strip()
        ask: Any = list_kube_config_contexts  # it has no types
        contexts, current = ask(kubeconfig)
    except (ConfigException, YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        what = kubeconfig or "in-cluster configuration or kubeconfig"
        raise InputError(f"{what}: {error}; name a namespace with --namespace") from error
    named = [each for each in contexts if each.get("name") == context] or [current]
    return str((named[0].get("context") or {}).get("namespace") or "default")


class _Body(NamedTuple):
    """What a request sends."""

    method: str = "GET"
    text: bytes | None = None
    media_type: str = ""


_NOTHING = _Body()


class Client:
    """Sends requests to one API server, from any number of threads."""

    def __init__(self, configure: Callable[[], Configuration]) -> None:
        """`configure` is called again when the API server rejects the credentials (401)."""
        self._configure = configure
        self._lock = threading.Lock()
        self._ahead = 0.0
        self._connect()

    def _connect(self) -> None:
        self._configuration = self._configure()
        self._host = str(self._configuration.host).rstrip("/")
        self._pool: urllib3.PoolManager = RESTClientObject(self._configuration).pool_manager
        accept_every_ca(self._pool)
        if not self._configuration.verify_ssl:  # as the kubeconfig asks; kubectl does not warn
            urllib3.disable_warnings(InsecureRequestWarning)

    def now(self) -> float:
        """The time of the API server, in seconds of the epoch: it checks the dates of certificates.

        Before the first answer it is our own.
        """
        return time.time() + self._ahead

    def get(
        self,
        path: str,
        query: Mapping[str, str],
        most: int | None = None,
        *,
        media_type: str = _JSON,
    ) -> bytes:
        """The whole answer; TooLarge as soon as it has more bytes than `most`."""
        started = time.monotonic()
        response = self._send(path, query, SILENCE_SECONDS, accepted=media_type)
        most = MOST_OF_ONE if most is None else most
        text, size = [], 0
        for chunk in _chunks(response, started + PAGE_SECONDS):
            text.append(chunk)
            size += len(chunk)
            if size > most:
                response.close()
                raise TooLarge(most)
        return b"".join(text)

    def create(self, path: str, obj: Mapping[str, Any]) -> bytes:
        """Create an object; the answer has it as it was stored."""
        return self._write("POST", path, obj, _JSON)

    def dry_run(self, path: str, obj: Mapping[str, Any]) -> tuple[bytes, list[str]]:
        """What creating an object would store (a dry run), and the warnings for its author.

        Refused (400) if the object has an unknown field, or one twice, as kubectl has it.
        """
        started = time.monotonic()
        sent = _Body("POST", as_json(obj), _JSON)
        asked = {"dryRun": "All", "fieldValidation": "Strict"}
        response = self._send(path, asked, SILENCE_SECONDS, sent)
        warnings = response.headers.getlist("Warning")
        return b"".join(_chunks(response, started + PAGE_SECONDS)), warnings

    def replace(self, path: str, obj: Mapping[str, Any]) -> bytes:
        """Replace an object; Refused (409) if its resourceVersion is no longer the stored one."""
        return self._write("PUT", path, obj, _JSON)

    def patch(self, path: str, operations: list[dict[str, Any]]) -> bytes:
        """Apply a JSON Patch: all operations or none."""
        return self._write("PATCH", path, operations, _JSON_PATCH)

    def _write(self, method: str, path: str, body: object, media_type: str) -> bytes:
        started = time.monotonic()
        sent = _Body(method, as_json(body), media_type)
        response = self._send(path, {}, SILENCE_SECONDS, sent)
        return b"".join(_chunks(response, started + PAGE_SECONDS))

    def lines(
        self, path: str, query: Mapping[str, str], seconds: float
    ) -> Generator[bytes, None, None]:
        """Each line of the answer as it arrives, once it begins. Ends with it, or with a Fault.

        It may last so many seconds in all, and be silent as long.
        """
        started = time.monotonic()
        return _lines(self._send(path, query, seconds), started + seconds)

    def _send(
        self,
        path: str,
        query: Mapping[str, str],
        silence: float,
        sent: _Body = _NOTHING,
        accepted: str = _JSON,
    ) -> urllib3.BaseHTTPResponse:
        # No Accept-Encoding: compression takes both sides longer than a local network.
        headers = urllib3.HTTPHeaderDict({"Accept": accepted, "User-Agent": "gpu-webhook"})
        if sent.text:
            headers["Content-Type"] = sent.media_type
        try:
            with self._lock:  # a token may be read again, or a plugin be run for it
                headers.extend(self._who_we_are())
            response = self._pool.request(
                sent.method,
                f"{self._host}{path}?{urlencode(query)}",
                body=sent.text,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=silence),
                preload_content=False,
                retries=False,
                redirect=False,
            )
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise Fault(_first_line(error), away=True) from error
        except (HTTPError, ConfigException, OSError, ValueError) as error:
            raise Fault(_first_line(error)) from error
        with contextlib.suppress(TypeError, ValueError):
            sent_at = parsedate_to_datetime(response.headers["Date"]).timestamp()
            self._ahead = sent_at - time.time()
        if response.status not in (_OK, _CREATED):
            raise self._refusal(response)
        media_type = response.headers.get("Content-Type", "")
        if not media_type.startswith(accepted):
            response.close()
            wanted = "JSON" if accepted == _JSON else accepted
            raise Fault(f"the answer is not {wanted} but {media_type[:_QUOTED] or 'unnamed'}")
        return response

    def _who_we_are(self) -> list[tuple[str, str]]:
        settings: Mapping[str, Any] = self._configuration.auth_settings()
        own = [(each["key"], each["value"]) for each in settings.values() if each["value"]]
        return [*own, *getattr(self._configuration, "impersonated", ())]

    def _refusal(self, response: urllib3.BaseHTTPResponse) -> Refused:
        try:
            text = response.read(_CHUNK)
        except (HTTPError, OSError):
            text = b""
        response.close()
        if response.status == _UNAUTHORIZED:
            with self._lock:  # a client certificate of a plugin has expired, or a file was replaced
                self._connect()
        after = response.headers.get("Retry-After", "")
        seconds = float(after) if after.isascii() and after.isdigit() else 0.0
        return Refused(response.status, _message(text), seconds)


def connected(kubeconfig: str | None, context: str | None) -> Client:
    """The client of the cluster that the flags name; InputError if there are no credentials."""
    return Client(lambda: configuration(kubeconfig, context))


def _lines(response: urllib3.BaseHTTPResponse, end: float) -> Generator[bytes, None, None]:
    begun, size = [b""], 0
    for chunk in _chunks(response, end):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        for piece in others:
            line = b"".join(begun)
            if line:
                yield line
            begun, size = [piece], len(piece)
        if size > MOST_OF_ONE:
            response.close()
            raise TooLarge(MOST_OF_ONE)
    if size:
        raise Fault("the answer ended in the middle of a line")


def _chunks(response: urllib3.BaseHTTPResponse, end: float) -> Iterator[bytes]:
    """The chunks of the body. The connection is kept only if all of it was read."""
    whole = False
    try:
        while chunk := response.read1(_CHUNK):  # read() would wait for the full size
            yield chunk
            if time.monotonic() > end:
                raise Fault("the answer took too long")
        whole = True
    except (HTTPError, OSError, ValueError) as error:
        raise Fault(_first_line(error)) from error
    finally:
        if whole:
            response.release_conn()
        else:
            response.close()


def _message(text: bytes) -> str:
    """The message of a Status, or the beginning of another answer."""
    try:
        status = orjson.loads(text)
    except ValueError:
        status = None
    said = status.get("message") if isinstance(status, dict) else None
    return (said if isinstance(said, str) else text.decode(errors="replace"))[:_QUOTED]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:_QUOTED]
