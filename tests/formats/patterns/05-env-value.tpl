{{- define "worker.env" -}}
- name: GPU_RESOURCE
{{- if ge .Capabilities.KubeVersion.Minor "8" }}
  value: nvidia.com/gpu
{{- else }}
  value: "alpha.kubernetes.io/nvidia-gpu"
{{- end }}
kind: Worker
{{- end -}}
