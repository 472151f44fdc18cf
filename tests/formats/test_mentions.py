"""What is said of a text where no rule looks."""

from __future__ import annotations

import pytest

from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.mentions import everywhere, mentions

NAME = "alpha.kubernetes.io/nvidia-gpu"


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        pytest.param("a: b\n", [], id="nothing"),
        pytest.param(f"# {NAME}: 1\n", [Status.NOTICE], id="in a comment: worth knowing"),
        pytest.param(f"x: {NAME}\n", [Status.MANUAL], id="data: a person must look"),
        pytest.param(
            f"spec:\n  description: |-\n    Words,\n\n    and `{NAME}`.\n  type: boolean\n",
            [Status.NOTICE],
            id="the description of a field: worth knowing",
        ),
        pytest.param(
            f"- description: as {NAME}\n", [Status.NOTICE], id="a description on one line"
        ),
        pytest.param(
            "spec:\n  description: |-\n    jobs of the old `extensions/v1beta1` API\n",
            [Status.NOTICE],
            id="a version in a description, as the CRDs of Kubeflow have one",
        ),
        pytest.param(
            f"description: Words.\nargs:\n  - --resource={NAME}\n",
            [Status.MANUAL],
            id="behind a description: a person must look",
        ),
        pytest.param(
            "kubectl.kubernetes.io/last-applied-configuration: |\n"
            f'  {{"limits":{{"{NAME}":1}}}}\nother: {NAME}\n',
            [Status.MANUAL],
            id="what kubectl remembers is written anew by the next apply",
        ),
        pytest.param(
            f'"kubectl.kubernetes.io/last-applied-configuration": "{{\\"{NAME}\\":1}}"\n',
            [],
            id="and so it is in JSON",
        ),
    ],
)
def test_mentions(text: str, statuses: list[Status]) -> None:
    source = Source.of("a.yaml", text.encode())
    assert [each.status for each in mentions(source, Plan(), ())] == statuses


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(f'x: "a # z"  # was {NAME}', Status.NOTICE, id="behind a text with a sign"),
        pytest.param(f'x: ["a\\"b"]  # was {NAME}', Status.NOTICE, id="behind a text with a quote"),
        pytest.param(f'x: "a \\"b\\" # c" # {NAME}', Status.NOTICE, id="behind a text with both"),
        pytest.param(
            f"x: 'a # z'  # was {NAME}", Status.NOTICE, id="behind a text in single quotes"
        ),
        pytest.param(
            f"x: ['a \"b']  # was {NAME}", Status.NOTICE, id="behind a double quote in them"
        ),
        pytest.param(f"x: it's b  # was {NAME}", Status.NOTICE, id="behind an apostrophe"),
        pytest.param(f"x: 1  # it's \"so {NAME}", Status.NOTICE, id="behind a quote of a comment"),
        pytest.param(f'x: "a # {NAME}"', Status.MANUAL, id="in a text"),
        pytest.param(f"x: 'a # {NAME}'", Status.MANUAL, id="in a text in single quotes"),
        pytest.param(f'x: "a\\" # {NAME}"', Status.MANUAL, id="in a text, behind its quote"),
        pytest.param(f'x: "a # {NAME}', Status.MANUAL, id="in a text that goes on"),
        pytest.param(f'x: "a" b "# {NAME}', Status.MANUAL, id="in the second text of a line"),
        pytest.param(f'x: "a # {NAME}\\', Status.MANUAL, id="in a text that ends in a backslash"),
    ],
)
def test_what_is_behind_a_text_is_a_comment(line: str, status: Status) -> None:
    source = Source.of("a.yaml", f"{line}\n".encode())
    assert [each.status for each in mentions(source, Plan(), ())] == [status]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(f"// as {NAME}", Status.NOTICE, id="a comment"),
        pytest.param(f"x := 1 // not {NAME}", Status.NOTICE, id="a comment behind a statement"),
        pytest.param(
            "\t// a webhook on apps/v1beta1 and extensions/v1beta1", Status.NOTICE, id="a version"
        ),
        pytest.param(f'url := "a // {NAME}"', Status.MANUAL, id="slashes in a text"),
        pytest.param(f'const gpu = "{NAME}"', Status.MANUAL, id="a name"),
        pytest.param('version := "extensions/v1beta1"', Status.MANUAL, id="a version as a value"),
        pytest.param("version := `extensions/v1beta1`", Status.MANUAL, id="in other quotes"),
        pytest.param(
            'text := "if a rule says apps/v1beta1, a request to it"',
            Status.NOTICE,
            id="a version in a sentence, as in what is made of comments",
        ),
        pytest.param("apiVersion: extensions/v1beta1", Status.MANUAL, id="a manifest in a program"),
    ],
)
def test_what_a_go_program_says(line: str, status: Status) -> None:
    """Vendored packages of Kubernetes speak of old versions, and are as they should be."""
    source = Source.of("a.go", f"package a\n\n{line}\n".encode())
    assert {each.status for each in mentions(source, Plan(), ())} == {status}


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        pytest.param("a.go", f"/*\nkind: Job\n  {NAME}: 1\n*/\n", Status.NOTICE, id="Go, a block"),
        pytest.param("a.go", f"  /* {NAME} */\n", Status.NOTICE, id="Go, a block on a line"),
        pytest.param("A.java", f"  /**\n   * as {NAME}\n   */\n", Status.NOTICE, id="Javadoc"),
        pytest.param("a.ts", f"// as {NAME}\n", Status.NOTICE, id="TypeScript"),
        pytest.param("Jenkinsfile", f"// {NAME}\n", Status.NOTICE, id="a Jenkinsfile"),
        pytest.param("a.tf", f"# {NAME}\n", Status.NOTICE, id="Terraform"),
        pytest.param("a.tf", f"// {NAME}\n", Status.NOTICE, id="Terraform, the other sign"),
        pytest.param("a.jsonnet", f"# {NAME}\n", Status.NOTICE, id="Jsonnet"),
        pytest.param("a.go", f'/* a */\nx := "{NAME}"\n', Status.MANUAL, id="behind a block"),
        pytest.param("a.go", f'f("d/*.go", "{NAME}", "*/")\n', Status.MANUAL, id="stars in a text"),
        pytest.param("a.ts", f"  #gpu = '{NAME}'\n", Status.MANUAL, id="a private field"),
        pytest.param("a.py", f"// {NAME}\n", Status.MANUAL, id="another language"),
        pytest.param("a.py", f"/*\n{NAME}\n*/\n", Status.MANUAL, id="a block of another one"),
    ],
)
def test_comments_of_programs_are_notices(name: str, text: str, status: Status) -> None:
    source = Source.of(name, text.encode())
    assert [each.status for each in mentions(source, Plan(), ())] == [status]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param(f"Ask for `{NAME}`.", Status.NOTICE, id="prose"),
        pytest.param(f" {NAME}:  2", Status.NOTICE, id="what a command prints"),
        pytest.param(f'"capacity": {{"{NAME}": "2"}}', Status.NOTICE, id="the state of a node"),
        pytest.param(
            f'oc patch dc w -p \'{{"limits":{{"cpu":1,"{NAME}":"1"}}}}\'',
            Status.MANUAL,
            id="a patch",
        ),
        pytest.param(
            f'curl -d "{{\\"requests\\": {{\\"{NAME}\\": 1}}}}"',
            Status.MANUAL,
            id="one with escapes",
        ),
        pytest.param(f"Write `limits: {{{NAME}: 1}}`.", Status.MANUAL, id="in flow style"),
        pytest.param(
            f'"limits":{{"cpu":1}}, then `{NAME}`', Status.NOTICE, id="behind the limits of others"
        ),
    ],
)
def test_what_a_document_tells_users_to_request_is_manual(line: str, status: Status) -> None:
    source = Source.of("a.md", f"# A\n\n{line}\n".encode())
    assert [each.status for each in mentions(source, Plan(), (), prose=everywhere)] == [status]


HELM_CREATE = """\
{{- if semverCompare ">=1.19-0" .Capabilities.KubeVersion.GitVersion -}}
apiVersion: networking.k8s.io/v1
{{- else if semverCompare ">=1.14-0" .Capabilities.KubeVersion.GitVersion -}}
apiVersion: networking.k8s.io/v1beta1
{{- else -}}
apiVersion: extensions/v1beta1
{{- end }}
kind: Ingress
"""
FOR_OLD_CLUSTERS = {
    "helm create": HELM_CREATE,
    "the other way round": (
        '{{- if semverCompare "<1.14-0" .Capabilities.KubeVersion.Version }}\n'
        "apiVersion: extensions/v1beta1\n{{- else }}\napiVersion: networking.k8s.io/v1\n"
        "{{- end }}\nkind: Ingress\n"
    ),
    "APIVersions": (
        '{{- if .Capabilities.APIVersions.Has "networking.k8s.io/v1" }}\n'
        "apiVersion: networking.k8s.io/v1\n{{- else }}\napiVersion: extensions/v1beta1\n"
        "{{- end }}\n"
    ),
    "a budget": (
        '{{- if $.Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}\n'
        "apiVersion: policy/v1\n{{- else }}\napiVersion: policy/v1beta1\n{{- end }}\n"
    ),
    "a helper": (
        '{{- define "x.ingress.apiVersion" -}}\n'
        '{{- if semverCompare ">=1.19-0" (include "x.kubeVersion" .) -}}\nnetworking.k8s.io/v1\n'
        "{{- else -}}\nextensions/v1beta1\n{{- end -}}\n{{- end }}\n"
    ),
    "a helper that prints": (
        '{{- define "x.api" -}}\n{{- if semverCompare "<1.9-0" .Capabilities.KubeVersion.Version }}'
        '{{- print "extensions/v1beta1" }}\n{{- else }}{{- print "apps/v1" }}{{- end }}{{- end }}\n'
    ),
    "on one line": (
        'apiVersion: {{ if .Capabilities.APIVersions.Has "apps/v1" }}apps/v1{{ else }}'
        "extensions/v1beta1{{ end }}\n"
    ),
    "blocks in blocks": (
        '{{- if .Capabilities.APIVersions.Has "networking.k8s.io/v1" }}\n'
        "apiVersion: networking.k8s.io/v1\n{{- else }}\n{{- if .Values.beta }}\n"
        "apiVersion: networking.k8s.io/v1beta1\n{{- else }}\napiVersion: extensions/v1beta1\n"
        "{{- end }}\n{{- end }}\n"
    ),
    "a variable": (
        '{{- $new := semverCompare ">=1.19-0" .Capabilities.KubeVersion.Version }}\n'
        "{{- if $new }}\napiVersion: networking.k8s.io/v1\n{{- else }}\n"
        "apiVersion: extensions/v1beta1\n{{- end }}\n"
    ),
    "a helper that is asked": (
        '{{- if eq (include "x.ingress.isStable" .) "true" }}\napiVersion: networking.k8s.io/v1\n'
        "{{- else }}\napiVersion: extensions/v1beta1\n{{- end }}\n"
    ),
    "batch": (
        '{{- if semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version }}\n'
        "apiVersion: batch/v1\n{{- else }}\napiVersion: batch/v1beta1\n{{- end }}\n"
    ),
}
STILL_DEAD = {
    "a condition of another kind": HELM_CREATE.replace(
        'semverCompare ">=1.19-0" .Capabilities.KubeVersion.GitVersion', ".Values.new"
    ).replace('semverCompare ">=1.14-0" .Capabilities.KubeVersion.GitVersion', ".Values.beta"),
    "no version of today beside it": HELM_CREATE.replace("k8s.io/v1\n", "k8s.io/v1beta1\n"),
    "behind the branches": HELM_CREATE + "---\napiVersion: extensions/v1beta1\n",
    "the version of today in the same branch": (
        '{{- if .Capabilities.APIVersions.Has "extensions/v1beta1" }}\n'
        "apiVersion: extensions/v1beta1\n---\napiVersion: apps/v1\n{{- end }}\n"
    ),
}


@pytest.mark.parametrize("text", FOR_OLD_CLUSTERS.values(), ids=FOR_OLD_CLUSTERS)
def test_a_version_for_old_clusters_is_worth_knowing(text: str) -> None:
    source = Source.of("templates/x.yaml", text.encode())
    found = list(mentions(source, Plan(), ()))

    assert found
    assert {each.status for each in found} == {Status.NOTICE}


@pytest.mark.parametrize("text", STILL_DEAD.values(), ids=STILL_DEAD)
def test_a_version_that_clusters_of_today_get_is_dead(text: str) -> None:
    source = Source.of("templates/x.yaml", text.encode())

    assert Status.MANUAL in {each.status for each in mentions(source, Plan(), ())}


PATHS = '"/apis/apps/v1beta1/deployments": {}, "/apis/extensions/v1beta1/ingresses": {}'
API = {
    "Swagger, last of all": ("swagger.json", f'{{"paths": {{{PATHS}}}, "swagger": "2.0"}}'),
    "OpenAPI in many lines": (
        "v3.json",
        f'{{\n  "openapi": "3.0.0",\n  "paths": {{\n    {PATHS}\n  }}\n}}\n',
    ),
    "OpenAPI in YAML": (
        "api.yaml",
        "paths:\n  /apis/apps/v1beta1/deployments: {}\nopenapi: 3.0.0\n",
    ),
    "Swagger in quotes": (
        "api.yaml",
        '---\n"swagger": "2.0"\npaths:\n  /apis/apps/v1beta2/deployments: {}\n',
    ),
}


@pytest.mark.parametrize(("path", "text"), API.values(), ids=API)
def test_a_description_of_an_api_names_all_versions_that_it_has(path: str, text: str) -> None:
    assert list(mentions(Source.of_text(path, text), Plan(), ())) == []


NO_API = {
    "one inside a manifest": (
        "cm.yaml",
        "kind: ConfigMap\ndata:\n  a.yaml: |\n    openapi: 3.0.0\n    x: extensions/v1beta1\n",
    ),
    "a chart's switch": ("values.yaml", "swagger: enabled\nversion: extensions/v1beta1\n"),
    "a member of another": ("x.json", '{"a": {"openapi": "3.0.0"}, "b": "extensions/v1beta1"}'),
    "no JSON": ("x.json", '{"openapi": "3.0.0", "b": "extensions/v1beta1"'),
}


@pytest.mark.parametrize(("path", "text"), NO_API.values(), ids=NO_API)
def test_other_files_are_told_though_they_speak_of_apis(path: str, text: str) -> None:
    assert len(list(mentions(Source.of_text(path, text), Plan(), ()))) == 1


def test_a_book_in_one_line_of_json_says_the_same_once() -> None:
    text = '{"./": {"body": "apiVersion: apps/v1beta1 ... apps/v1beta1 ... apps/v1beta2"}}\n'
    found = [each.message for each in mentions(Source.of_text("index.json", text), Plan(), ())]
    assert len(found) == len(set(found)) == 2
