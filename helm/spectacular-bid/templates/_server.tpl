{{/* The service's container, and where its pods go. */}}

{{- define "spectacular-bid.serverContainer" -}}
name: spectacular-bid
image: {{ include "spectacular-bid.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve]
env:
  {{- include "spectacular-bid.env" . | nindent 2 }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: grpc
    containerPort: {{ .Values.listen.grpcPort }}
  {{- if include "spectacular-bid.isStamped" . }}
  - name: envoy
    containerPort: {{ .Values.listen.envoyPort }}
  {{- end }}
  - name: health
    containerPort: {{ .Values.listen.healthPort }}
  - name: metrics
    containerPort: {{ .Values.listen.metricsPort }}
{{- range $name := list "startup" "readiness" "liveness" }}
{{ $name }}Probe:
  grpc:
    port: {{ $.Values.listen.healthPort }}
    service: {{ $name }}
  {{- toYaml (get $.Values.probes $name) | nindent 2 }}
  timeoutSeconds: 2
{{- end }}
{{- with .Values.stop.preStopSeconds }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ . }}
{{- end }}
securityContext:
  {{- include "spectacular-bid.securityContext" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  {{- include "spectacular-bid.volumeMounts" . | nindent 2 }}
{{- end -}}

{{- define "spectacular-bid.scheduling" -}}
{{- with .Values.scheduling }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- if include "spectacular-bid.isPostgresql" . }}
{{- include "spectacular-bid.spread" . }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.spread" -}}
{{- $selector := include "spectacular-bid.selector" (list . "server") }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - topologyKey: {{ $key }}
    maxSkew: 1
    whenUnsatisfiable: {{ $.Values.scheduling.spread }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash] # old and new pods of an upgrade are spread apart from each other
  {{- end }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" ($selector | fromYaml)) }}
{{- if eq .Values.scheduling.antiAffinity "required" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      {{- list $term | toYaml | nindent 6 }}
{{- else if eq .Values.scheduling.antiAffinity "preferred" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      {{- list (dict "weight" 100 "podAffinityTerm" $term) | toYaml | nindent 6 }}
{{- end }}
{{- end -}}
