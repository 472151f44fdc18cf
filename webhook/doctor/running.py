"""Checks of what runs behind the configurations, and of a legacy pod's way through them."""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook import __version__
from webhook.certs import faults
from webhook.certs.authority import Identity
from webhook.certs.own_certificates import OwnCertificates
from webhook.cluster.made_pods import DENIED
from webhook.core.legacy_names import TOLERATIONS_ANNOTATION
from webhook.core.modes import Mode, is_opted_out, modes_for
from webhook.core.repaired_annotation import REPAIRED, codes_of
from webhook.doctor import certificates as of_secret
from webhook.doctor.lines import ASK, FAILED, OK, WARNING, Line, few
from webhook.doctor.mounted_files import file_of
from webhook.doctor.other_admission import foreign
from webhook.doctor.registration import REPAIR, again
from webhook.issuing import lease
from webhook.issuing.objects import CONFIGURATIONS, bundles_of, configuration_of
from webhook.kube.pod import annotations_of, as_items, as_map
from webhook.kube.selectors import selects
from webhook.rules import legacy_resource, missing_toleration, tolerations_annotation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Rule
    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_OLDEST = 30  # the minor version with matchConditions
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_CALL_FAILED = re.compile(r'failed calling webhook "[a-z-]+\.gpu-webhook\.dev": (.*)', re.DOTALL)
_DENIED = re.compile(r'admission webhook "[a-z-]+\.gpu-webhook\.dev" denied')
_ANOTHER = "name another namespace with --pod-namespace, or create a pod of yours as a dry run"
_OWN = "create a pod of yours as a dry run"
_ALLOW = (
    "allow pods of the ReplicaSet gpu-webhook-doctor there; --pod-namespace helps only if another "
    "namespace has no such policy"
)
_INJECTED = "cert-manager.io/inject-ca-from"  # an annotation: NAMESPACE/NAME of a Certificate
_SLOW = 0.9  # of the time limit of a call


def dry_run(facts: Facts) -> Iterator[Line]:
    """What became of the legacy pod: the API server itself called the webhook, or did not."""
    trial = facts.trial
    where = f"namespace {trial.namespace['metadata']['name']}"
    took = f"{1000 * trial.seconds:.0f} ms"
    if called := _CALL_FAILED.search(trial.refusal):
        yield Line(FAILED, f"the call of the webhook failed: {called[1]}", _look(facts))
    elif _DENIED.search(trial.refusal):
        yield Line(OK, f"the webhook answered within {took}: it denied a pod in {where}")
    elif trial.refusal:
        text = f"a legacy pod could not be tried in {where}: {trial.refusal}"
        yield Line(WARNING, text, _ALLOW if DENIED.search(trial.refusal) else _ANOTHER)
    elif _is_repaired(facts):
        yield Line(OK, f"a legacy pod in {where} is repaired within {took}")
    elif refusal := facts.refusal("deployment", "settings_map", "namespace"):
        yield _unexplained(refusal)
    elif facts.deployment:
        yield from _unrepaired(facts, f"within {took}: it warned in {where}")


def _unrepaired(facts: Facts, so: str) -> Iterator[Line]:
    """Why a legacy pod came back as it was sent."""
    warned = any(f'"{_rule(facts).CODE}:' in each for each in facts.trial.warnings)
    annotations = as_map(facts.trial.pod["metadata"].get("annotations"))
    if (quiet := _why_unrepaired(facts)) and warned:
        yield Line(OK, f"the webhook answered {so}")
    elif quiet:
        fix = _OWN if "objectSelector" in quiet else _ANOTHER
        yield Line(WARNING, f"it cannot be seen whether the webhook answers: {quiet}", fix)
    elif warned or REPAIRED in annotations:
        text = "the webhook repaired a legacy pod, and something that runs after it undid that"
        others = few(foreign(facts))
        fix = f"look at the webhooks that change pods ({others}) and at MutatingAdmissionPolicies"
        yield Line(FAILED, text, fix)
    elif refusal := facts.refusal("configurations"):
        yield _unexplained(refusal)
    elif any(facts.entries(REPAIR)):
        yield _not_called(facts)


def _unexplained(refusal: str) -> Line:
    text = f"a legacy pod is not repaired, and the reason cannot be seen: {refusal}"
    return Line(WARNING, text, ASK)


def _unselected(facts: Facts) -> str:
    """Which selector keeps the pod from all entries; empty if one of them selects it."""
    found = [entry for _, entry in facts.entries(REPAIR)]
    tried = {"namespaceSelector": facts.trial.namespace, "objectSelector": facts.trial.pod}
    for member, obj in tried.items():
        labels = as_map(obj["metadata"].get("labels"))
        selected = [each for each in found if selects(as_map(each.get(member)), labels)]
        if found and not selected:
            return f"the {member} of {REPAIR} does not select these labels: {_shown(labels)}"
        found = selected
    return ""


def _shown(labels: Raw) -> str:
    """As `kubectl get --show-labels` does."""
    return few(f"{key}={value}" for key, value in labels.items())


def pods(facts: Facts) -> Iterator[Line]:
    """Whether replicas of the present template are ready: what `kubectl rollout status` waits for.

    `readyReplicas` counts pods of older templates, too.
    """
    spec, status = as_map(facts.deployment.get("spec")), as_map(facts.deployment.get("status"))
    wanted, seen = spec.get("replicas", 1), status.get("observedGeneration", 0)
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    made, updated, ready, available = (status.get(name, 0) for name in names)
    is_seen = seen >= facts.deployment["metadata"].get("generation", 0)
    if is_seen and made <= updated and min(updated, ready, available) >= wanted > 0:
        yield Line(OK, f"{ready} of {wanted} replicas are ready and up to date")
        return
    texts = [f"{min(ready, wanted)} of {wanted} replicas are ready"]
    if not is_seen:
        texts.append("the Deployment controller has not seen the last change")
    elif made > updated or updated < wanted:
        texts.append(f"the roll-out has not ended: {updated} of {made} have the present template")
    elif available < ready:
        texts.append(f"{available} for as long as minReadySeconds says")
    reasons = {f"{pod['metadata']['name']}: {why}" for pod in facts.pods if (why := _waits(pod))}
    texts += [few(sorted(reasons))] * bool(reasons)
    fix = f"kubectl -n {facts.namespace} describe pods" if wanted else "scale the Deployment up"
    yield Line(WARNING if ready and wanted else FAILED, "; ".join(texts), fix)


def quota(facts: Facts) -> Iterator[Line]:
    """Whether the API server accepts the pods: their account, their priority class, and quotas."""
    name, account = facts.pod_spec.get("priorityClassName"), facts.account_name
    if not facts.account:
        text = f"there is no ServiceAccount {account}: no pod can be made"
        yield Line(FAILED, text, again(facts, "the ServiceAccount"))
    if name and not facts.priority_class:
        text = f"there is no PriorityClass {name}: no pod can be made"
        yield Line(FAILED, text, "set priorityClassName to one of `kubectl get pc`")
    refused = [
        str(each.get("message"))
        for _, each in as_items(as_map(facts.deployment.get("status")).get("conditions"))
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True"
    ]
    for message in refused:
        fix = f"raise the quota; on GKE there must be one: {again(facts, 'a ResourceQuota')}"
        yield Line(FAILED, f"pods are refused: {message}", fix)
    if not refused and facts.account and (facts.priority_class or not name):
        yield Line(OK, f"priority class {name or 'not set'}, no pod is refused")


def versions(facts: Facts) -> Iterator[Line]:
    """Whether API server, Deployment, pods and this program go together."""
    minor, shown = _digits(facts.version.get("minor")), facts.version.get("gitVersion")
    if minor < _OLDEST:
        text = f"the API server is {shown}; matchConditions need 1.{_OLDEST}"
        yield Line(FAILED, text, "upgrade the cluster")
    images = {str(each.get("image")) for _, each in as_items(facts.pod_spec.get("containers"))}
    tags = {image.partition("@")[0].rpartition(":")[2].removeprefix("v") for image in images}
    if other := sorted(tag for tag in tags if _VERSION.fullmatch(tag) and tag != __version__):
        text = f"the image is {few(other)}, this program is {__version__}: checks may differ"
        yield Line(WARNING, text, "use the doctor of the same version")
    elif minor >= _OLDEST:
        yield Line(OK, f"API server {shown}, image {few(sorted(images))}")


def settings(facts: Facts) -> Iterator[Line]:
    """Whether the servers can use the settings in the ConfigMap."""
    if facts.mistakes:
        first = facts.mistakes.splitlines()[0]
        text = f"they have mistakes, so the servers keep those before: {first}"
        yield Line(FAILED, text, "gpu-webhook config check FILE shows each place")
    elif facts.unseen and facts.settings_file and facts.settings_file.kind == "configMap":
        yield Line(FAILED, f"{facts.unseen}: a new pod cannot start", again(facts, "the ConfigMap"))
    elif facts.unseen:
        fix = "gpu-webhook config check FILE finds mistakes"
        yield Line(WARNING, f"they cannot be seen: {facts.unseen}", fix)
    else:
        yield Line(OK, "no mistakes")


def certificates(facts: Facts) -> Iterator[Line]:
    """The certificate of the servers, and who trusts it."""
    names = (name for name in CONFIGURATIONS if any(facts.entries(name)))
    bundles = bundles_of({name: configuration_of(facts.configurations[name]) for name in names})
    if facts.keeps_certificates:
        kept = OwnCertificates.read(facts.data(), facts.now)
        if facts.secret.get("immutable") is True:
            yield of_secret.immutable(facts.namespace)
        yield from of_secret.pairs(kept, facts.now)
        yield from of_secret.trust(kept, bundles)
    else:
        texts = facts.pair()
        found = Identity.read(*texts)
        kept = OwnCertificates(leaf=found).at(facts.now)
        made_by, filled_by = _makers(facts)
        line = of_secret.of_pair("server", kept.leaf, facts.now, made_by)
        if found is None:
            line = line._replace(text=_fault(facts, *texts) or line.text)
        yield line
        yield from of_secret.trust(kept, bundles, filled_by)
    hosts = kept.leaf.hosts() if kept.leaf is not None else []
    for host in sorted({*_hosts(facts)} - {*hosts}):
        if hosts and f"*.{host.partition('.')[2]}" not in hosts:
            text = f"API servers call {host}, and the certificate has no such name"
            yield Line(FAILED, text, "make one for this name", "server")


def _makers(facts: Facts) -> tuple[str, str]:
    """Where to look if a certificate that others make is missing, and if a caBundle is."""
    for name in CONFIGURATIONS:
        metadata = as_map(facts.configurations.get(name, {}).get("metadata"))
        source = str(as_map(metadata.get("annotations")).get(_INJECTED) or "")
        space, _, certificate = source.partition("/")
        if certificate:
            look = f"kubectl -n {space} describe certificate {certificate}"
            return f"{look}: cert-manager makes it", f"{look}: cert-manager fills it"
    page = "docs/install.md#certificates says who makes it and who fills in caBundle"
    return page, f"{page}; #change-the-certificates, how"


def _fault(facts: Facts, cert: bytes, key: bytes) -> str:
    """What is wrong with a pair that others make; empty if no fault is found."""
    file = file_of(facts.pod_spec, "--tls-cert-file")
    if file and file.kind == "secret" and not facts.secret:
        return f"there is no Secret {file.name}: a new pod cannot start"
    return faults.of_pair(Path("tls.crt"), cert, Path("tls.key"), key)


def watcher(facts: Facts) -> Iterator[Line]:
    """Whether a watcher keeps the certificates, and can trust the API server."""
    root = str(as_map(facts.root_ca.get("data")).get("ca.crt") or "").encode()
    if fault := faults.of_certificates(root):
        text = f"pods cannot trust the API server: the ConfigMap kube-root-ca.crt {fault}"
        fix = "kube-controller-manager writes it: look at its --root-ca-file"
        yield Line(FAILED, text, fix)
    elif not facts.keeps_certificates:
        yield Line(OK, "trusts the API server; certificates come from elsewhere")
    elif (idle := facts.now - _renewed(facts.lease)) > lease.SECONDS:
        last = f"for {idle:.0f} s" if isfinite(idle) else "yet"
        text = f"no watcher has kept the certificates {last}: nobody renews them"
        fix = f"kubectl -n {facts.namespace} logs deployment/gpu-webhook -c watch"
        yield Line(WARNING, text, fix)
    else:
        yield Line(OK, f"{facts.lease['spec'].get('holderIdentity')} keeps certificates")


def rights(facts: Facts) -> Iterator[Line]:
    """What the ServiceAccount may not do."""
    if facts.missing_rights:
        lacks = ", ".join(map(str, facts.missing_rights))
        found = again(facts, "the roles of the watcher and their bindings")
        fix = f"{found}; SECURITY.md says what is missing without each of them"
        yield Line(WARNING, f"the watcher may not: {lacks}", fix)
    else:
        yield Line(OK, "the watcher has all that it uses")


def _rule(facts: Facts) -> Rule:
    """The rule that repairs the pod."""
    return legacy_resource if facts.settings.legacy_resources else tolerations_annotation


def _is_repaired(facts: Facts) -> bool:
    """Whether the pod has what it needs at the end, after all that changed it."""
    spec, name = as_map(facts.trial.pod.get("spec")), facts.settings.gpu_resource
    keys = [each.get("key") for _, each in as_items(spec.get("tolerations"))]
    if missing_toleration.CODE in codes_of(facts.trial.pod) and name not in keys:
        return False
    if TOLERATIONS_ANNOTATION in annotations_of(facts.trial.pod):
        return False
    return any(
        name in limits
        # A LimitRange may add a 0, also after the repair: it asks for nothing.
        and all(limits.get(each, "0") == "0" for each in facts.settings.legacy_resources)
        for _, container in as_items(spec.get("containers"))
        for limits in [as_map(as_map(container.get("resources")).get("limits"))]
    )


def _why_unrepaired(facts: Facts) -> str:
    """Why the webhook does not repair pods of the namespace; empty if it does."""
    metadata = facts.trial.namespace["metadata"]
    labels, name = as_map(metadata.get("labels")), metadata["name"]
    if is_opted_out(labels):
        return f"the namespace {name} has opted out"
    mode = modes_for(facts.settings.policy, name, labels).of(_rule(facts))
    if mode is not Mode.ENFORCE:
        return f"{_rule(facts).CODE} is `{mode}` in the namespace {name}"
    return _unselected(facts)


def _not_called(facts: Facts) -> Line:
    limits = [entry.get("timeoutSeconds", 10) for _, entry in facts.entries(REPAIR)]
    if limits and facts.trial.seconds >= _SLOW * min(limits):
        text = (
            f"the webhook did not answer within {facts.trial.seconds:.1f} s: its pods hang, or the "
            "network drops what the API server sends (NetworkPolicy, firewall to port 8443)"
        )
    else:
        text = (
            "a legacy pod came back unrepaired at once: nothing listens behind the Service, the "
            "API server does not trust the certificate, or no entry matches the pod"
        )
    return Line(FAILED, text, _look(facts))


def _look(facts: Facts) -> str:
    return f"kubectl -n {facts.namespace} get pods; the other lines may say more"


def _waits(pod: Raw) -> str:
    """Why a pod is not ready; empty if it is or if that is unknown."""
    status = as_map(pod.get("status"))
    for _, each in as_items(status.get("containerStatuses")):
        waiting = as_map(as_map(each.get("state")).get("waiting"))
        if waiting:
            return f"{each.get('name')} {waiting.get('reason')}"
    for _, each in as_items(status.get("conditions")):
        if each.get("type") in {"PodScheduled", "Ready"} and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "not ready")
    return ""


def _hosts(facts: Facts) -> Iterator[str]:
    """The names under which API servers call."""
    for _, entry in facts.entries(*CONFIGURATIONS):
        service = as_map(as_map(entry.get("clientConfig")).get("service"))
        if service:
            yield f"{service.get('name')}.{service.get('namespace')}.svc"


def _renewed(found: Raw) -> float:
    text = str(as_map(found.get("spec")).get("renewTime") or "")
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return float("-inf")


def _digits(text: object) -> int:
    """The minor version; managed clusters write `30+`."""
    return int(re.sub(r"\D", "", str(text)) or 0)
