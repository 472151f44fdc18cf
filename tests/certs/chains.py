"""Chains of certificates, and whether an API server accepts them (Go, x509.Verify).

tests/cluster/test_chains.py asks a real one.
"""

from __future__ import annotations

from tests.certs.chained import KINDS, Signer, chain

ROOT, ABOVE, BELOW, SERVER = chain(KINDS["P-256"], between=("above", "below"))
STRANGER = chain(KINDS["P-256"], between=("above", "below"))  # the same names, other keys
# What tls.crt has, what the caBundle has, and whether the API server calls.
CHAINS: dict[str, tuple[list[Signer], list[Signer], bool]] = {
    "the whole chain below the root": ([SERVER, BELOW, ABOVE], [ROOT], True),
    "the CAs in the other order": ([SERVER, ABOVE, BELOW], [ROOT], True),
    "the root in tls.crt, too": ([SERVER, BELOW, ABOVE, ROOT], [ROOT], True),
    "the root after another one": ([SERVER, BELOW, ABOVE], [STRANGER[0], ROOT], True),
    "an intermediate CA is trusted": ([SERVER, BELOW], [ABOVE], True),
    "the CA that signed the server is trusted": ([SERVER], [BELOW], True),
    "the server's certificate is trusted": ([SERVER], [SERVER], True),
    "tls.crt lacks all CAs": ([SERVER], [ROOT], False),
    "tls.crt lacks the CA that signed the server": ([SERVER, ABOVE], [ROOT], False),
    "tls.crt lacks the CA below the root": ([SERVER, BELOW], [ROOT], False),
    "a root of the same name": ([SERVER, BELOW, ABOVE], [STRANGER[0]], False),
    "only tls.crt has the root": ([SERVER, BELOW, ABOVE, ROOT], [STRANGER[0]], False),
}
