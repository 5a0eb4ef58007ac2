{{- /* Tags and labels have no +, which the versions between releases have. */ -}}
{{- define "hopscope.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion | replace "+" "_" }}
{{- end }}

{{- define "hopscope.labels" -}}
app.kubernetes.io/name: hopscope
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* What all pods have in common. */ -}}
{{- define "hopscope.pod" -}}
automountServiceAccountToken: false
securityContext: { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: { type: RuntimeDefault } }
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A collector that reads interfaces of the node has the capabilities for it, which the kernel gives root alone in a pod. */ -}}
{{- define "hopscope.collector" -}}
{{- $capture := .Values.collector.capture -}}
{{- if eq $capture "none" -}}
{{ include "hopscope.container" . }}
{{- else -}}
image: {{ include "hopscope.image" . }}
securityContext:
  runAsNonRoot: false
  runAsUser: 0
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL], add: [{{ ternary "NET_RAW, NET_ADMIN, BPF" "NET_RAW" (eq $capture "afxdp") }}] }
{{- end }}
{{- end }}

{{- define "hopscope.container" -}}
image: {{ include "hopscope.image" . }}
securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
{{- end }}

{{- define "hopscope.probes" -}}
startupProbe: { httpGet: { path: /healthz, port: page }, periodSeconds: 2, failureThreshold: 60 }
readinessProbe: { httpGet: { path: {{ . }}, port: page }, periodSeconds: 5, failureThreshold: 3 }
livenessProbe: { httpGet: { path: /healthz, port: page }, periodSeconds: 10, failureThreshold: 6 }
{{- end }}

{{- define "hopscope.volumes" -}}
- { name: settings, configMap: { name: hopscope-settings } }
- { name: secrets, secret: { secretName: {{ .Values.secretName }}, defaultMode: 0440 } }
{{- end }}

{{- define "hopscope.mounts" -}}
- { name: settings, mountPath: /etc/hopscope, readOnly: true }
- { name: secrets, mountPath: /run/secrets/hopscope, readOnly: true }
{{- end }}

{{- /* Pods of one component are on different nodes, as far as there are any. */ -}}
{{- define "hopscope.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: { app.kubernetes.io/component: {{ . }} } }
{{- end }}
