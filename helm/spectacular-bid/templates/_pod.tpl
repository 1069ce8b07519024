{{/* The container's environment, volumes and mounts, shared by the service and the migrations. */}}

{{- define "spectacular-bid.folder" -}}/etc/spectacular-bid{{- end -}}

{{/* The variables that the migrations need; the sealing key must be named, but is not read, so not mounted for them. */}}
{{- define "spectacular-bid.storeEnv" -}}
{{- with .Values.database -}}
{{- if eq .kind "sqlite" -}}
- name: SPECBID_DATABASE
  value: /var/lib/spectacular-bid/spectacular-bid.sqlite3
{{- else -}}
- name: SPECBID_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .postgresql.existingSecret | quote }}
      key: {{ .postgresql.key | quote }}
- name: SPECBID_DURABILITY
  value: {{ .postgresql.durability }}
{{- end }}
{{- end }}
{{- with .Values.sealingKey }}
{{- if .existingSecret }}
- name: SPECBID_SEALING_KEY_FILE
  value: {{ include "spectacular-bid.folder" $ }}/sealing-key/{{ .key }}
{{- end }}
{{- end }}
- name: SPECBID_LOG_LEVEL
  value: {{ .Values.log.level }}
- name: SPECBID_LOG_FORMAT
  value: {{ .Values.log.format }}
{{- end -}}

{{- define "spectacular-bid.env" -}}
{{ include "spectacular-bid.storeEnv" . }}
{{ include "spectacular-bid.edgeEnv" . }}
{{- with .Values.nats }}
{{- if .url }}
- name: SPECBID_NATS_URL
  value: {{ .url | quote }}
{{- end }}
{{- if .existingSecret }}
- name: SPECBID_NATS_CREDENTIALS_FILE
  value: {{ include "spectacular-bid.folder" $ }}/nats/{{ .key }}
{{- end }}
{{- end }}
{{- range $name, $value := include "spectacular-bid.numbers" . | fromYaml }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
- name: SPECBID_ADMIN_SOCKET
  value: /tmp/admin.sock
- name: SPECBID_REFLECTION
  value: {{ .Values.reflection | quote }}
{{- end -}}

{{/* Where the service listens, and whom it lets in. */}}
{{- define "spectacular-bid.edgeEnv" -}}
{{- $folder := include "spectacular-bid.folder" . -}}
- name: SPECBID_AUTH
  value: platform
- name: SPECBID_HOST
  value: {{ .Values.listen.address | quote }}
- name: SPECBID_TLS_CERTIFICATE
  value: {{ $folder }}/tls/tls.crt
- name: SPECBID_TLS_KEY
  value: {{ $folder }}/tls/tls.key
{{- with .Values.tls.clientCA }}
{{- if .existingSecret }}
- name: SPECBID_TLS_CLIENT_CA
  value: {{ $folder }}/client-ca/{{ .key }}
{{- end }}
{{- end }}
{{- if include "spectacular-bid.isStamped" . }}
- name: SPECBID_ENVOY_CLIENT_CA
  value: {{ $folder }}/envoy-ca/{{ .Values.envoy.clientCA.key }}
{{- end }}
{{- with .Values.auth }}
{{- if .jwks.existingSecret }}
- name: SPECBID_JWKS_FILE
  value: {{ $folder }}/jwks/{{ .jwks.key }}
{{- else if .jwks.url }}
- name: SPECBID_JWKS_URL
  value: {{ .jwks.url | quote }}
{{- end }}
{{- if or .jwks.existingSecret .jwks.url }}
- name: SPECBID_JWT_ISSUER
  value: {{ .issuer | quote }}
- name: SPECBID_JWT_AUDIENCE
  value: {{ .audience | quote }}
- name: SPECBID_JWT_TYPE
  value: {{ .type | quote }}
{{- end }}
{{- with .clientScopes }}
- name: SPECBID_CLIENT_SCOPES
  value: {{ toJson . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* As texts: a large number would come back from YAML as 1e+06. */}}
{{- define "spectacular-bid.numbers" -}}
SPECBID_PORT: {{ int .Values.listen.grpcPort | quote }}
{{- if include "spectacular-bid.isStamped" . }}
SPECBID_ENVOY_PORT: {{ int .Values.listen.envoyPort | quote }}
{{- end }}
SPECBID_HEALTH_PORT: {{ int .Values.listen.healthPort | quote }}
SPECBID_METRICS_PORT: {{ int .Values.listen.metricsPort | quote }}
SPECBID_DRAIN_SECONDS: {{ int .Values.stop.drainSeconds | quote }}
{{- with .Values.limits }}
SPECBID_COMMANDS_PER_SECOND: {{ int .commandsPerSecond | quote }}
SPECBID_READS_PER_SECOND: {{ int .readsPerSecond | quote }}
SPECBID_CREATES_PER_SECOND: {{ int .createsPerSecond | quote }}
SPECBID_SPECTATOR_STREAMS: {{ int .spectatorStreams | quote }}
SPECBID_CONNECTION_STREAMS: {{ int .connectionStreams | quote }}
{{- end }}
{{- with .Values.timing }}
SPECBID_WIDEST_STAMP_MS: {{ int .widestStampMs | quote }}
SPECBID_CHARGE_TOLERANCE_MS: {{ int .chargeToleranceMs | quote }}
SPECBID_AFTERMATH_MS: {{ int .aftermathMs | quote }}
SPECBID_STORE_GAP_MS: {{ int .storeGapMs | quote }}
SPECBID_PUBLISH_STALL_MS: {{ int .publishStallMs | quote }}
SPECBID_OUTAGE_MS: {{ int .outageMs | quote }}
{{- end }}
{{- end -}}

{{/* Secrets that are mounted as folders: the folder's name and the Secret's. */}}
{{- define "spectacular-bid.secretFolders" -}}
tls: {{ .Values.tls.existingSecret | quote }}
client-ca: {{ .Values.tls.clientCA.existingSecret | quote }}
{{- if include "spectacular-bid.isStamped" . }}
envoy-ca: {{ .Values.envoy.clientCA.existingSecret | quote }}
{{- end }}
jwks: {{ .Values.auth.jwks.existingSecret | quote }}
nats: {{ .Values.nats.existingSecret | quote }}
sealing-key: {{ .Values.sealingKey.existingSecret | quote }}
{{- end -}}

{{- define "spectacular-bid.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- if not (include "spectacular-bid.isPostgresql" .) }}
- name: data
  persistentVolumeClaim:
    claimName: {{ default (include "spectacular-bid.fullname" .) .Values.database.sqlite.existingClaim }}
{{- end }}
{{- range $folder, $secret := include "spectacular-bid.secretFolders" . | fromYaml }}
{{- with $secret }}
- name: {{ $folder }}
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if not (include "spectacular-bid.isPostgresql" .) }}
- name: data
  mountPath: /var/lib/spectacular-bid
{{- end }}
{{- range $folder, $secret := include "spectacular-bid.secretFolders" . | fromYaml }}
{{- if $secret }}
- name: {{ $folder }}
  mountPath: {{ include "spectacular-bid.folder" $ }}/{{ $folder }}
  readOnly: true
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* One run of `spectacular-bid migrate`. */}}
{{- define "spectacular-bid.migrateContainer" -}}
name: migrate
image: {{ include "spectacular-bid.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [migrate]
env:
  {{- include "spectacular-bid.storeEnv" . | nindent 2 }}
securityContext:
  {{- include "spectacular-bid.securityContext" . | nindent 2 }}
resources:
  requests:
    cpu: 100m
    memory: 128Mi
  limits:
    memory: 256Mi
{{- end -}}
