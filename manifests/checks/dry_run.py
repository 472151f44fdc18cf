"""Creates a legacy pod as a dry run; ends with 0 if the webhook repairs it. `helm test` runs it.

It uses the token of its ServiceAccount, and the standard library only.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

LEGACY, CURRENT = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
SECONDS = float(os.environ.get("SECONDS_TO_WAIT", "60"))
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
MAIN = {
    "name": "main",
    "image": "never-pulled",
    "resources": {"limits": {LEGACY: 1}},
    "securityContext": RESTRICTED,
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "gpu-webhook-test"},
    "spec": {"containers": [MAIN]},
}


def unrepaired() -> str:
    """What the API server made of the pod; empty if the webhook repaired it."""
    server = (
        f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    )
    request = urllib.request.Request(
        f"{server}/api/v1/namespaces/{os.environ['TEST_NAMESPACE']}/pods?dryRun=All",
        json.dumps(POD).encode(),
        {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as EKS's CA, which has no key identifiers
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            limits = json.load(answer)["spec"]["containers"][0]["resources"]["limits"]
    except urllib.error.HTTPError as error:
        message = json.loads(error.read())["message"]
        # GPU301, where it is enforced and no node has GPUs: the webhook answers.
        return "" if ".gpu-webhook.dev" in message else message
    except OSError as error:
        return f"no answer from the API server: {error}"
    if CURRENT in limits:
        return ""
    return (
        f"the pod was not repaired ({limits}): no answer of the webhook, or its settings forbid it"
    )


def unready(url: str) -> str:
    """Why the webhook is not ready; empty if it is. Any certificate will do."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=10, context=context):
            return ""
    except OSError as error:
        return f"{url}: {error}"


def main() -> int:
    """Ask until all is well, or the time is over."""
    end = time.monotonic() + SECONDS
    url = os.environ.get("AUDIT_ONLY_AT", "")  # of the webhook: nothing is repaired there
    while (said := unready(url) if url else unrepaired()) and time.monotonic() < end:
        time.sleep(1)
    print(said or ("the webhook is ready" if url else "a legacy pod is repaired"), flush=True)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
