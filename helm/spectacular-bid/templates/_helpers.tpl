{{/* Names, labels and what several objects share. */}}

{{- define "spectacular-bid.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Labels that select; the second argument is the component: server, envoy, migrate or smoke. */}}
{{- define "spectacular-bid.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "spectacular-bid.labels" -}}
{{- $root := index . 0 -}}
{{ include "spectacular-bid.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of pods: none that changes with the chart, so that a new chart alone restarts nobody. */}}
{{- define "spectacular-bid.podLabels" -}}
{{ include "spectacular-bid.selector" . }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "spectacular-bid.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "spectacular-bid.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* The name in the cluster by which Envoy, gateways and `helm test` know the service; its certificate must hold it. */}}
{{- define "spectacular-bid.dnsName" -}}
{{ include "spectacular-bid.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "spectacular-bid.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.podSecurity }}
{{- with .runAsUser }}
runAsUser: {{ . }}
{{- end }}
{{- with .runAsGroup }}
runAsGroup: {{ . }}
{{- end }}
{{- with .fsGroup }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "spectacular-bid.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What every pod of the chart begins with. */}}
{{- define "spectacular-bid.podDefaults" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "spectacular-bid.podSecurityContext" . | nindent 2 }}
{{- end -}}

{{- define "spectacular-bid.isAutoscaled" -}}
{{- if or .Values.autoscaling.hpa.enabled .Values.autoscaling.keda.enabled }}true{{ end -}}
{{- end -}}
{{- define "spectacular-bid.isPostgresql" -}}
{{- if eq .Values.database.kind "postgresql" }}true{{ end -}}
{{- end -}}

{{/* Seconds from the end of the drain to the end of the process: calls end, clocks are suspended, the heartbeat retires. */}}
{{- define "spectacular-bid.finishSeconds" -}}5{{- end -}}
{{- define "spectacular-bid.terminationGraceSeconds" -}}
{{ add .Values.stop.preStopSeconds .Values.stop.drainSeconds (include "spectacular-bid.finishSeconds" . | int) }}
{{- end -}}

{{/* Pods are taken away one a minute, after a time of calm. */}}
{{- define "spectacular-bid.scaleDown" -}}
scaleDown:
  stabilizationWindowSeconds: {{ .Values.autoscaling.scaleDownSeconds }}
  policies:
    - type: Pods
      value: 1
      periodSeconds: 60
{{- end -}}

{{/* Labels of what Prometheus must find. */}}
{{- define "spectacular-bid.monitoringLabels" -}}
{{ include "spectacular-bid.labels" (list . "server") }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Who may reach a port of metrics, the second argument. */}}
{{- define "spectacular-bid.metricsIngress" -}}
- ports: [{port: {{ index . 1 }}}]
  {{- with (index . 0).Values.networkPolicy.metricsFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Whether the service has a port for Envoy alone, at which Envoy's stamps of arrival are believed. */}}
{{- define "spectacular-bid.isStamped" -}}
{{- if and .Values.envoy.enabled .Values.envoy.clientCA.existingSecret }}true{{ end -}}
{{- end -}}

{{/* The name of the port of the service that Envoy calls. */}}
{{- define "spectacular-bid.portForEnvoy" -}}
{{- if include "spectacular-bid.isStamped" . }}envoy{{ else }}grpc{{ end -}}
{{- end -}}

{{/* Whether a Job of its own migrates the database. */}}
{{- define "spectacular-bid.migrateJob" -}}
{{- if and (include "spectacular-bid.isPostgresql" .) (has .Values.migrations.mode (list "hook" "job")) }}true{{ end -}}
{{- end -}}
