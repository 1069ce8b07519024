{{/* Combinations of values that cannot work, each as one sentence. What one value alone may be is in values.schema.json. */}}

{{- define "spectacular-bid.check" -}}
{{- $problems := list -}}
{{- range list "database" "secrets" "auth" "listen" "scaling" "edges" "monitoring" "env" -}}
{{- $found := include (printf "spectacular-bid.check.%s" .) $ -}}
{{- range splitList "\n" $found -}}
{{- with trim . }}{{ $problems = append $problems . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $problems }}{{ fail (join " " .) }}{{ end -}}
{{- end -}}

{{- define "spectacular-bid.check.database" -}}
{{- with .Values.database }}
{{- if eq .kind "sqlite" }}
{{- if ne (int $.Values.replicas) 1 }}
database.kind=sqlite keeps the matches in one file, so replicas must be 1 and not {{ $.Values.replicas }}; more need postgresql.
{{- end }}
{{- if include "spectacular-bid.isAutoscaled" $ }}
database.kind=sqlite keeps the matches in one file, so it cannot be autoscaled; that needs postgresql.
{{- end }}
{{- if .postgresql.existingSecret }}
database.postgresql.existingSecret is set, but database.kind is sqlite: set it to postgresql.
{{- end }}
{{- if $.Values.nats.url }}
nats.url is set, but database.kind is sqlite, whose one pod needs no NATS: remove it or set database.kind to postgresql.
{{- end }}
{{- else }}
{{- if not .postgresql.existingSecret }}
database.kind=postgresql needs database.postgresql.existingSecret, a Secret with the address of the database.
{{- end }}
{{- if not $.Values.nats.url }}
database.kind=postgresql needs nats.url, by which pods tell each other that a match has moved.
{{- end }}
{{- if not $.Values.sealingKey.existingSecret }}
database.kind=postgresql needs sealingKey.existingSecret, for all pods must open what one has sealed.
{{- end }}
{{- if .sqlite.existingClaim }}
database.sqlite.existingClaim is set, but database.kind is postgresql: remove it or set database.kind to sqlite.
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.secrets" -}}
{{- if not .Values.tls.existingSecret }}
tls.existingSecret is missing: beyond loopback the service listens with TLS only, so name a Secret of type kubernetes.io/tls.
{{- end }}
{{- if eq 1 (len .Values.smoke.players) }}
smoke.players needs two Secrets, for nobody may hold both seats of a match.
{{- end }}
{{- if and .Values.nats.existingSecret (not .Values.nats.url) }}
nats.existingSecret needs nats.url.
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.auth" -}}
{{- with .Values.auth }}
{{- $jwks := or .jwks.existingSecret .jwks.url }}
{{- if not (or $jwks .clientScopes) }}
auth is missing: beyond loopback players need platform credentials, so set auth.jwks.existingSecret, auth.jwks.url or auth.clientScopes.
{{- end }}
{{- if and .jwks.existingSecret .jwks.url }}
Only one of auth.jwks.existingSecret and auth.jwks.url can be set.
{{- end }}
{{- range $name := list "issuer" "audience" }}
{{- $value := get $.Values.auth $name }}
{{- if and $jwks (not $value) }}
auth.jwks needs auth.{{ $name }}.
{{- else if and $value (not $jwks) }}
auth.{{ $name }} needs auth.jwks.existingSecret or auth.jwks.url.
{{- end }}
{{- end }}
{{- if and .clientScopes (not $.Values.tls.clientCA.existingSecret) }}
auth.clientScopes needs tls.clientCA.existingSecret, the authorities of those certificates.
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.listen" -}}
{{- with .Values.listen }}
{{- if or (hasPrefix "127." .address) (eq .address "::1") (eq .address "localhost") }}
listen.address={{ .address }} is a loopback address, which neither players nor the kubelet's probes can reach.
{{- end }}
{{- $ports := list (int .grpcPort) (int .healthPort) (int .metricsPort) }}
{{- if include "spectacular-bid.isStamped" $ }}{{ $ports = append $ports (int .envoyPort) }}{{ end }}
{{- if ne (len $ports) ($ports | uniq | len) }}
listen.grpcPort, listen.envoyPort, listen.healthPort and listen.metricsPort must differ.
{{- end }}
{{- end }}
{{- with .Values.envoy }}
{{- if and .enabled (eq (int .port) (int .statusPort)) }}
envoy.port and envoy.statusPort must differ.
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.scaling" -}}
{{- with .Values.autoscaling }}
{{- if and .hpa.enabled .keda.enabled }}
Only one of autoscaling.hpa and autoscaling.keda can be enabled.
{{- end }}
{{- if and .keda.enabled (not .keda.triggers) }}
autoscaling.keda needs at least one of autoscaling.keda.triggers.
{{- end }}
{{- range $name := list "hpa" "keda" }}
{{- with get $.Values.autoscaling $name }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
autoscaling.{{ $name }}.minReplicas={{ .minReplicas }} is greater than maxReplicas={{ .maxReplicas }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.edges" -}}
{{- with .Values }}
{{- range $name := list "grpcRoute" "httpRoute" }}
{{- with get $.Values.gateway $name }}
{{- if and .enabled (not .parentRefs) }}
gateway.{{ $name }} needs gateway.{{ $name }}.parentRefs, the gateways that it belongs to.
{{- end }}
{{- end }}
{{- end }}
{{- if and .gateway.httpRoute.enabled (not .envoy.enabled) }}
gateway.httpRoute leads to Envoy, so it needs envoy.enabled.
{{- end }}
{{- if and .gateway.backendTLS.enabled (not .gateway.backendTLS.caConfigMap) }}
gateway.backendTLS needs gateway.backendTLS.caConfigMap, the authorities of the service's certificate.
{{- end }}
{{- if and .ingress.enabled (not .ingress.host) }}
ingress needs ingress.host.
{{- end }}
{{- if and .ingress.enabled (eq .ingress.target "web") (not .envoy.enabled) }}
ingress.target=web leads to Envoy, so it needs envoy.enabled.
{{- end }}
{{- if and .envoy.enabled .tls.clientCA.existingSecret (not .envoy.clientCertificate) }}
tls.clientCA asks every client for a certificate, so Envoy needs envoy.clientCertificate.
{{- end }}
{{- if and .envoy.clientCertificate (not (or .envoy.clientCA.existingSecret .tls.clientCA.existingSecret)) }}
envoy.clientCertificate needs envoy.clientCA.existingSecret or tls.clientCA.existingSecret: the service asks nobody for a certificate.
{{- end }}
{{- if and .envoy.clientCA.existingSecret (not (and .envoy.enabled .envoy.clientCertificate)) }}
envoy.clientCA opens a port to Envoy's certificate alone, so it needs envoy.enabled and envoy.clientCertificate.
{{- end }}
{{- if and .envoy.clientCA.existingSecret (eq .envoy.clientCA.existingSecret .tls.clientCA.existingSecret) }}
envoy.clientCA and tls.clientCA name one Secret, so every client could say when its commands came: give Envoy authorities of its own.
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.monitoring" -}}
{{- with .Values.monitoring }}
{{- if and .serviceMonitor.enabled .podMonitor.enabled }}
Only one of monitoring.serviceMonitor and monitoring.podMonitor can be enabled: both would scrape each pod twice.
{{- end }}
{{- end }}
{{- end -}}

{{- define "spectacular-bid.check.env" -}}
{{- $own := list }}
{{- range include "spectacular-bid.env" . | fromYamlArray }}{{ $own = append $own .name }}{{ end }}
{{- range .Values.extraEnv }}
{{- if has .name $own }}
extraEnv sets {{ .name }}, which the chart sets from other values.
{{- end }}
{{- end }}
{{- end -}}
