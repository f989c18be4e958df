{{/*
The tunnel-server as a component, in JSON. Beside others a new pod gets users when its clients have had the time to come
back: they wait up to 30 s between two attempts.
*/}}
{{- define "gitops-runtime.tunnel-server" -}}
{{- $values := deepCopy (index .Values "tunnel-server") -}}
{{- if and (gt ($values.replicaCount | int) 1) (not $values.readinessProbe.initialDelaySeconds) -}}
{{- $_ := set $values.readinessProbe "initialDelaySeconds" 30 -}}
{{- end -}}
{{- dict "name" "tunnel-server" "values" $values | toJson -}}
{{- end -}}

{{/* Folder, and file in it, of each Secret that the daemon reads, as a map of volume name to a dict with secret, items and path; in JSON.
Argument: the component. */}}
{{- define "gitops-runtime.tunnel-server.secrets" -}}
{{- $secrets := dict -}}
{{- range $name, $ref := dict
  "tunnel-token" .values.auth.token.secretKeyRef
  "runtimes" .values.auth.runtimes.secretKeyRef
  "plugin-ca" .values.auth.plugin.caCerts.secretKeyRef
  "client-ca" .values.clients.caCerts.secretKeyRef
  "api-token" (ternary .values.api.token.secretKeyRef dict .values.api.enabled) -}}
{{- if $ref.name -}}
{{- $_ := set $secrets $name (dict "secret" $ref.name "items" (list (dict "key" $ref.key "path" $name))) -}}
{{- end -}}
{{- end -}}
{{- range $name, $secret := dict "tunnel-tls" .values.clients.tls.secretName "users-tls" .values.users.tls.secretName -}}
{{- if $secret -}}
{{- $_ := set $secrets $name (dict "secret" $secret "items" list) -}}
{{- end -}}
{{- end -}}
{{- $secrets | toJson -}}
{{- end -}}

{{/* Argument: the component. Of the time until the kill a sixth, at most five seconds, passes until no new request is sent
to the pod, and five seconds are left in the end. */}}
{{- define "gitops-runtime.tunnel-server.env" -}}
{{- $values := .values -}}
{{- $grace := $values.terminationGracePeriodSeconds | int -}}
{{- $delay := min 5 (div $grace 6) -}}
{{- $env := dict
  "SUBDOMAIN_HOST" ($values.subdomainHost | lower)
  "LISTEN_PORT" 8080
  "TUNNEL_PORT" 7000
  "TUNNEL_LINKS" $values.clients.links
  "LOG_LEVEL" $values.logLevel
  "DRAIN_DELAY" (printf "%ds" $delay)
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub $grace (add $delay 5))))
-}}
{{- if gt (len $values.clients.hosts) 1 -}}
{{- $servers := list -}}
{{- range $values.clients.hosts -}}
{{- $servers = append $servers (printf "%s:%s" . (include "gitops-runtime.text" $values.clients.port)) -}}
{{- end -}}
{{- $_ := set $env "TUNNEL_SERVERS" (join "," $servers) -}}
{{- end -}}
{{- with $values.clients.tls.secretName -}}
{{- $_ := set $env "TUNNEL_TLS_CERTIFICATE_FILE" "/app/config/tunnel-tls/tls.crt" -}}
{{- $_ := set $env "TUNNEL_TLS_KEY_FILE" "/app/config/tunnel-tls/tls.key" -}}
{{- $_ := set $env "TUNNEL_REQUIRE_TLS" $values.clients.tls.required -}}
{{- end -}}
{{- if $values.clients.caCerts.secretKeyRef.name -}}
{{- $_ := set $env "TUNNEL_CLIENT_CA_FILE" "/app/config/client-ca/client-ca" -}}
{{- end -}}
{{- with $values.users.tls.secretName -}}
{{- $_ := set $env "TLS_CERTIFICATE_FILE" "/app/config/users-tls/tls.crt" -}}
{{- $_ := set $env "TLS_KEY_FILE" "/app/config/users-tls/tls.key" -}}
{{- end -}}
{{- with $values.users.trustedProxies -}}
{{- $_ := set $env "TRUSTED_PROXIES" (join "," .) -}}
{{- end -}}
{{- if $values.auth.runtimes.secretKeyRef.name -}}
{{- $_ := set $env "RUNTIMES_FILE" "/app/config/runtimes/runtimes" -}}
{{- end -}}
{{- with $values.auth.plugin -}}
{{- if .url -}}
{{- $_ := set $env "PLUGIN_URL" .url -}}
{{- $_ := set $env "PLUGIN_OPERATIONS" (join "," .operations) -}}
{{- $_ := set $env "PLUGIN_TIMEOUT" .timeout -}}
{{- if .caCerts.secretKeyRef.name -}}
{{- $_ := set $env "PLUGIN_CA_FILE" "/app/config/plugin-ca/plugin-ca" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $values.api.enabled -}}
{{- $_ := set $env "API_PORT" 8089 -}}
{{- $_ := set $env "API_LISTEN_ADDRESS" "::" -}}
{{- end -}}
{{- range $flag, $value := $values.config -}}
{{- $_ := set $env ($flag | upper | replace "." "_" | replace "-" "_") $value -}}
{{- end -}}
{{- range $name, $value := include "gitops-runtime.tracingEnv" .root | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- range $name, $value := $values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "gitops-runtime.env" $env -}}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.tunnel-server.mistakes" -}}
{{- $values := index .Values "tunnel-server" }}
{{- if $values.enabled }}
{{- $server := include "gitops-runtime.tunnel-server" . | fromJson }}
{{- include "gitops-runtime.component.mistakes" (set $server "path" "tunnel-server") }}
{{- if not $values.subdomainHost }}
- "tunnel-server.subdomainHost is required: the domain below which runtimes get their hosts"
{{- end }}
{{- with $values.auth }}
{{- if not (or .token.secretKeyRef.name .runtimes.secretKeyRef.name .plugin.url) }}
- "tunnel-server.auth: one of token.secretKeyRef, runtimes.secretKeyRef and plugin.url is required; they decide who may offer a host"
{{- end }}
{{- if and (gt ($values.clients.hosts | len) 1) (not (or .runtimes.secretKeyRef.name .plugin.url)) }}
- "tunnel-server.auth: several pods require runtimes.secretKeyRef or plugin.url; with a token alone a client is not told of the other pods"
{{- end }}
{{- if and .plugin.caCerts.secretKeyRef.name (not .plugin.url) }}
- "tunnel-server.auth.plugin.caCerts: there is no plugin.url"
{{- end }}
{{- end }}
{{- with $values.clients }}
{{- $hosts := len .hosts }}
{{- if and (or .hosts .ingress.enabled (gt ($values.replicaCount | int) 1)) (ne $hosts ($values.replicaCount | int)) }}
- {{ printf "tunnel-server.clients.hosts: there are %d hosts for %d pods; each pod needs one" $hosts ($values.replicaCount | int) | quote }}
{{- end }}
{{- if ne (len (uniq .hosts)) $hosts }}
- "tunnel-server.clients.hosts: a host stands there twice"
{{- end }}
{{- if and .caCerts.secretKeyRef.name (not .tls.secretName) }}
- "tunnel-server.clients.caCerts requires clients.tls.secretName: an ingress that ends TLS does not pass certificates of clients on"
{{- end }}
{{- end }}
{{- if and $values.api.enabled (not $values.api.token.secretKeyRef.name) }}
- "tunnel-server.api.token.secretKeyRef is required when the API is enabled"
{{- end }}
{{- end }}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.tunnel-server.remarks" -}}
{{- include "gitops-runtime.component.remarks" (merge (dict "root" . "path" "tunnel-server") (include "gitops-runtime.tunnel-server" . | fromJson)) }}
{{- end -}}
