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

{{/*
All templates begin with this. A key with nothing behind it (`settings:`) means its default, but helm
takes it away; after an upgrade with --reuse-values the keys of the new version are missing, too.
defaults.json is values.yaml, which no template can read.
*/}}
{{- define "gpu-webhook.defaults" -}}
{{- range $key, $default := .Files.Get "defaults.json" | fromJson }}
{{- $value := index $.Values $key }}
{{- if kindIs "invalid" $value }}
{{- $_ := set $.Values $key $default }}
{{- else if kindIs "map" $default }}
{{- range $name, $inner := $default }}
{{- if kindIs "invalid" (index $value $name) }}
{{- $_ := set $value $name $inner }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
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
