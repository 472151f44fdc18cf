{{/*
The chart renders the objects of the kustomizations beside it: templates read a file (.Files), set
what the values ask for, and write it with this.
*/}}
{{- define "gpu-webhook.object" -}}
{{- $metadata := .object.metadata }}
{{- $_ := set $metadata "labels" (merge (include "gpu-webhook.labels" . | fromYaml) (.labels | default dict)) }}
{{- if not (regexMatch "^Cluster|WebhookConfiguration$" .object.kind) }}
{{- $_ := set $metadata "namespace" .root.Release.Namespace }}
{{- end }}
{{- range .object.subjects }}
{{- $_ := set . "namespace" $.root.Release.Namespace }}
{{- end }}
---
{{ toYaml .object }}
{{ end }}

{{- define "gpu-webhook.labels" -}}
app.kubernetes.io/name: gpu-webhook
app.kubernetes.io/part-of: gpu-admission-webhook
{{- end }}

{{/* All objects of a file, as they are. */}}
{{- define "gpu-webhook.file" -}}
{{- range regexSplit "(?m)^---$" (.root.Files.Get .file) -1 }}
{{- include "gpu-webhook.object" (dict "root" $.root "object" (fromYaml .)) }}
{{- end }}
{{- end }}

{{- define "gpu-webhook.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}
