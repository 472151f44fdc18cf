"""Which API server certificates are trusted: urllib3's checks, without the strict mode of RFC 5280.

From Python 3.13 on, contexts have VERIFY_X509_STRICT: a chain without key identifiers is rejected.
Many cluster CAs have none (EKS: kubernetes-client/python#2394), and kubectl accepts them. The
chain, the host name and the dates are checked as before.
"""

from __future__ import annotations

import ssl

import urllib3
from urllib3.connection import HTTPSConnection
from urllib3.util import create_urllib3_context
from urllib3.util.ssl_ import resolve_cert_reqs


class _Connection(HTTPSConnection):
    """Makes its own context when it connects: the file of the CA may have changed by then."""

    def connect(self) -> None:
        context = create_urllib3_context(cert_reqs=resolve_cert_reqs(self.cert_reqs))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not (self.ca_certs or self.ca_cert_data):  # urllib3 does so for its own contexts only
            context.load_default_certs()
        self.ssl_context = context
        super().connect()


class _Pool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Connection


def accept_every_ca(pool: urllib3.PoolManager) -> None:
    """Let this pool trust a given CA whatever optional extensions it and its certificates have."""
    pool.pool_classes_by_scheme = {**pool.pool_classes_by_scheme, "https": _Pool}
