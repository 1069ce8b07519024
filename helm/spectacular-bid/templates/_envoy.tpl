{{/*
Envoy's configuration: gRPC-Web for browsers, native gRPC as well, and the arrival stamp of commands.

The stamp: a command's message is buffered whole, and only then does the request go on with a header that says when its
headers came (seconds and nanoseconds since 1970) and how many microseconds lay between their first and the last byte
of the message. A header of that name from outside is taken away on every route. Streams get none: their messages come
later than their headers. The service believes the stamp at a port for Envoy alone; where there is none Envoy makes none.
*/}}
{{- define "spectacular-bid.arrivalHeader" -}}x-specbid-arrival{{- end -}}

{{- define "spectacular-bid.envoyConfig" -}}
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 9901}}
overload_manager:
  resource_monitors:
    - name: envoy.resource_monitors.global_downstream_max_connections
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig
        max_active_downstream_connections: {{ int .Values.envoy.maxConnections }}
static_resources:
  listeners:
    - {{ include "spectacular-bid.envoyWeb" . | indent 6 | trim }}
    - {{ include "spectacular-bid.envoyStatus" . | indent 6 | trim }}
  clusters:
    - {{ include "spectacular-bid.envoyUpstream" . | indent 6 | trim }}
    - name: admin
      type: STATIC
      load_assignment:
        cluster_name: admin
        endpoints:
          - lb_endpoints:
              - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
{{- end -}}

{{- define "spectacular-bid.envoyWeb" -}}
name: web
address: {socket_address: {address: {{ .Values.listen.address | quote }}, port_value: {{ .Values.envoy.port }}}}
per_connection_buffer_limit_bytes: 65536
filter_chains:
  - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          codec_type: AUTO
          max_request_headers_kb: 8
          request_headers_timeout: 10s
          stream_idle_timeout: 0s # a player may think for as long as the bank lasts
          http2_protocol_options:
            max_concurrent_streams: {{ .Values.envoy.streamsPerConnection }}
            connection_keepalive: {interval: 20s, timeout: 5s}
          http_filters:
            - name: envoy.filters.http.cors
              typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors}
            - name: envoy.filters.http.grpc_web
              typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb}
            - name: envoy.filters.http.buffer
              disabled: true
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer
                max_request_bytes: 16400 # the service's greatest message and its frame
            - name: envoy.filters.http.router
              typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            {{- include "spectacular-bid.envoyRoutes" . | nindent 12 }}
    {{- if .Values.envoy.tlsSecret }}
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
        common_tls_context:
          alpn_protocols: [h2, http/1.1]
          {{- include "spectacular-bid.envoyCertificate" "web" | nindent 10 }}
    {{- end }}
{{- end -}}

{{- define "spectacular-bid.envoyRoutes" -}}
name: service
most_specific_header_mutations_wins: true # otherwise the removal below would undo the stamp of the route
virtual_hosts:
  - name: service
    domains: ["*"]
    request_headers_to_remove: [{{ include "spectacular-bid.arrivalHeader" . }}]
    typed_per_filter_config:
      envoy.filters.http.cors:
        "@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy
        allow_origin_string_match:
          {{- range .Values.envoy.allowOrigins }}
          - exact: {{ . | quote }}
          {{- else }}
          []
          {{- end }}
        allow_methods: POST, OPTIONS
        allow_headers: authorization, content-type, grpc-timeout, x-grpc-web, x-user-agent
        expose_headers: grpc-status, grpc-message, grpc-status-details-bin
        max_age: "600"
    routes:
      {{- range list "SubmitCommand" "LeaveMatch" }}
      - match: {path: /spectacularbid.v1.MatchService/{{ . }}}
        route: {cluster: service, timeout: 0s}
        {{- if include "spectacular-bid.isStamped" $ }}
        request_headers_to_add:
          - header:
              key: {{ include "spectacular-bid.arrivalHeader" $ }}
              value: "%START_TIME(%s.%9f)% %COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%"
            append_action: OVERWRITE_IF_EXISTS_OR_ADD
        {{- end }}
        typed_per_filter_config:
          envoy.filters.http.buffer:
            "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig
            config: {}
      {{- end }}
      - match: {prefix: /spectacularbid.v1.}
        route: {cluster: service, timeout: 0s}
{{- end -}}

{{- define "spectacular-bid.envoyStatus" -}}
name: status
address: {socket_address: {address: {{ .Values.listen.address | quote }}, port_value: {{ .Values.envoy.statusPort }}}}
filter_chains:
  - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: status
          http_filters:
            - name: envoy.filters.http.router
              typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            name: status
            virtual_hosts:
              - name: status
                domains: ["*"]
                routes:
                  - match: {path: /ready}
                    route: {cluster: admin}
                  - match: {path: /stats/prometheus}
                    route: {cluster: admin}
{{- end -}}

{{- define "spectacular-bid.envoyUpstream" -}}
{{- $hostname := include "spectacular-bid.dnsName" . -}}
name: service
type: STRICT_DNS
dns_refresh_rate: 2s
respect_dns_ttl: false
dns_lookup_family: ALL
lb_policy: ROUND_ROBIN
connect_timeout: 2s
load_assignment:
  cluster_name: service
  endpoints:
    - lb_endpoints:
        - endpoint:
            address:
              socket_address:
                address: {{ include "spectacular-bid.fullname" . }}-headless.{{ .Release.Namespace }}.svc
                port_value: {{ get .Values.listen (printf "%sPort" (include "spectacular-bid.portForEnvoy" .)) }}
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config:
      http2_protocol_options:
        connection_keepalive: {interval: 20s, timeout: 5s}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    sni: {{ $hostname }}
    common_tls_context:
      alpn_protocols: [h2]
      validation_context:
        trusted_ca: {filename: /etc/envoy-ca/ca.crt, watched_directory: {path: /etc/envoy-ca}}
        match_typed_subject_alt_names:
          - san_type: DNS
            matcher: {exact: {{ $hostname | quote }}}
      {{- if .Values.envoy.clientCertificate }}
      {{- include "spectacular-bid.envoyCertificate" "client" | nindent 6 }}
      {{- end }}
{{- end -}}

{{/* The certificate in a mounted folder, read again when it is renewed. */}}
{{- define "spectacular-bid.envoyCertificate" -}}
tls_certificates:
  - certificate_chain: {filename: /etc/envoy-{{ . }}/tls.crt}
    private_key: {filename: /etc/envoy-{{ . }}/tls.key}
    watched_directory: {path: /etc/envoy-{{ . }}}
{{- end -}}
