"""Data: the fields of a container (core/v1 `Container` of 1.36), for kube/go_json.py.

Kubernetes has only ever added fields, so these include the fields of a container of 1.3.
"""

from __future__ import annotations

from typing import Any

from webhook.kube.go_json import INT32, INT64, INT_OR_STRING, QUANTITY

_REFERENCE = {"name": str, "optional": bool}
_KEY = {"key": str, **_REFERENCE}
_ENV: dict[str, Any] = {
    "name": str,
    "value": str,
    "valueFrom": {
        "configMapKeyRef": _KEY,
        "fieldRef": {"apiVersion": str, "fieldPath": str},
        "fileKeyRef": {"key": str, "optional": bool, "path": str, "volumeName": str},
        "resourceFieldRef": {"containerName": str, "divisor": QUANTITY, "resource": str},
        "secretKeyRef": _KEY,
    },
}
_HANDLER: dict[str, Any] = {
    "exec": {"command": [str]},
    "httpGet": {
        "host": str,
        "httpHeaders": [{"name": str, "value": str}],
        "path": str,
        "port": INT_OR_STRING,
        "scheme": str,
    },
    "tcpSocket": {"host": str, "port": INT_OR_STRING},
}
_HOOK = {**_HANDLER, "sleep": {"seconds": INT64}}
_PROBE = {
    **_HANDLER,
    "failureThreshold": INT32,
    "grpc": {"port": INT32, "service": str},
    "initialDelaySeconds": INT32,
    "periodSeconds": INT32,
    "successThreshold": INT32,
    "terminationGracePeriodSeconds": INT64,
    "timeoutSeconds": INT32,
}
_PROFILE = {"localhostProfile": str, "type": str}
_SECURITY_CONTEXT: dict[str, Any] = {
    "allowPrivilegeEscalation": bool,
    "appArmorProfile": _PROFILE,
    "capabilities": {"add": [str], "drop": [str]},
    "privileged": bool,
    "procMount": str,
    "readOnlyRootFilesystem": bool,
    "runAsGroup": INT64,
    "runAsNonRoot": bool,
    "runAsUser": INT64,
    "seLinuxOptions": {"level": str, "role": str, "type": str, "user": str},
    "seccompProfile": _PROFILE,
    "windowsOptions": {
        "gmsaCredentialSpec": str,
        "gmsaCredentialSpecName": str,
        "hostProcess": bool,
        "runAsUserName": str,
    },
}

CONTAINER: dict[str, Any] = {
    "args": [str],
    "command": [str],
    "env": [_ENV],
    "envFrom": [{"configMapRef": _REFERENCE, "prefix": str, "secretRef": _REFERENCE}],
    "image": str,
    "imagePullPolicy": str,
    "lifecycle": {"postStart": _HOOK, "preStop": _HOOK, "stopSignal": str},
    "livenessProbe": _PROBE,
    "name": str,
    "ports": [
        {"containerPort": INT32, "hostIP": str, "hostPort": INT32, "name": str, "protocol": str}
    ],
    "readinessProbe": _PROBE,
    "resizePolicy": [{"resourceName": str, "restartPolicy": str}],
    "resources": {
        "claims": [{"name": str, "request": str}],
        "limits": {"*": QUANTITY},
        "requests": {"*": QUANTITY},
    },
    "restartPolicy": str,
    "restartPolicyRules": [{"action": str, "exitCodes": {"operator": str, "values": [INT32]}}],
    "securityContext": _SECURITY_CONTEXT,
    "startupProbe": _PROBE,
    "stdin": bool,
    "stdinOnce": bool,
    "terminationMessagePath": str,
    "terminationMessagePolicy": str,
    "tty": bool,
    "volumeDevices": [{"devicePath": str, "name": str}],
    "volumeMounts": [
        {
            "mountPath": str,
            "mountPropagation": str,
            "name": str,
            "readOnly": bool,
            "recursiveReadOnly": str,
            "subPath": str,
            "subPathExpr": str,
        }
    ],
    "workingDir": str,
}
