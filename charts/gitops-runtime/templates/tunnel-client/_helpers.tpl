{{/*
The tunnel-client as a component, in JSON. Its objects, labels and values have the names that they had in the older chart.
*/}}
{{- define "gitops-runtime.tunnel" -}}
{{- $off := dict "enabled" false -}}
{{- $values := merge (deepCopy (index .Values "tunnel-client")) (dict "pdb" $off) -}}
{{- dict "name" "codefresh-tunnel-client" "values" (set $values "env" (include "gitops-runtime.tunnel.userEnv" . | fromJson)) | toJson -}}
{{- end -}}

{{/* The headless Service by which the router knows its pods. */}}
{{- define "gitops-runtime.tunnel.podsName" -}}codefresh-tunnel-client-pods{{- end -}}

{{/* Is the tunnel the way in? Argument of this and the following: the root. */}}
{{- define "gitops-runtime.tunnel.enabled" -}}
{{- $runtime := .Values.global.runtime -}}
{{- if and (index .Values "tunnel-client").enabled .Values.global.codefresh.accountId (not $runtime.ingress.enabled) (not $runtime.httpRoute.enabled) }}true{{ end -}}
{{- end -}}

{{- define "gitops-runtime.tunnel.prefix" -}}
{{- $computed := printf "%s-%s" (toString .Values.global.codefresh.accountId) .Values.global.runtime.name -}}
{{- (index .Values "tunnel-client").tunnel.subdomainPrefix | default $computed | lower -}}
{{- end -}}

{{- define "gitops-runtime.tunnel.url" -}}
{{- printf "https://%s.%s" (include "gitops-runtime.tunnel.prefix" .) (index .Values "tunnel-client").tunnelServer.subdomainHost -}}
{{- end -}}

{{/* The user's variables as a map, in JSON: the older chart has a list here, other components have a map. */}}
{{- define "gitops-runtime.tunnel.userEnv" -}}
{{- $env := (index .Values "tunnel-client").env -}}
{{- if kindIs "slice" $env -}}
{{- $map := dict -}}
{{- range $env -}}
{{- $_ := set $map .name (ternary (omit . "name") .value (hasKey . "valueFrom")) -}}
{{- end -}}
{{- $map | toJson -}}
{{- else -}}
{{- $env | default dict | toJson -}}
{{- end -}}
{{- end -}}

{{/* Argument: the component. Five seconds of the time until the kill are left in the end. */}}
{{- define "gitops-runtime.tunnel.env" -}}
{{- $server := .values.tunnelServer -}}
{{- $tunnel := .values.tunnel -}}
{{- $router := include "gitops-runtime.router" .root | fromJson -}}
{{- $env := dict
  "TUNNEL_SERVER_HOST" $server.host
  "TUNNEL_SERVER_PORT" $server.port
  "TUNNEL_SERVER_PROTOCOL" $server.protocol
  "TUNNEL_SERVER_TLS" $server.tls
  "TUNNEL_SERVER_LINKS" $server.links
  "TUNNEL_SUBDOMAIN_PREFIX" (include "gitops-runtime.tunnel.prefix" .root)
  "TUNNEL_FORWARD_TO_HOST" ($tunnel.forwardTo.host | default $router.name)
  "TUNNEL_FORWARD_TO_PORT" ($tunnel.forwardTo.port | default $router.values.service.port)
  "TUNNEL_FORWARD_TO_LOCATION" $tunnel.forwardTo.location
  "TUNNEL_POOL_SIZE" $tunnel.poolSize
  "LOG_LEVEL" .values.logLevel
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub (.values.terminationGracePeriodSeconds | int) 5)))
-}}
{{- if $server.insecure -}}
{{- $_ := set $env "TUNNEL_SERVER_INSECURE_SKIP_VERIFY" true -}}
{{- end -}}
{{- if $server.caCerts.secretKeyRef.name -}}
{{- $_ := set $env "TUNNEL_SERVER_CA_FILE" "/app/config/tunnel-ca/ca.pem" -}}
{{- end -}}
{{- range $name, $ref := dict "TUNNEL_SERVER_TOKEN" $server.token.secretKeyRef "TUNNEL_SERVER_GROUP_KEY" $server.groupKey.secretKeyRef -}}
{{- if $ref.name -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (pick $ref "name" "key"))) -}}
{{- end -}}
{{- end -}}
{{- with $tunnel.ipsAllowList -}}
{{- $_ := set $env "TUNNEL_IPS_ALLOW_LIST" . -}}
{{- end -}}
{{- $proxies := list -}}
{{- range $tunnel.extraProxies -}}
{{- $proxies = append $proxies (printf "%s=%s:%s" .name .host (include "gitops-runtime.text" .port)) -}}
{{- end -}}
{{- with $proxies -}}
{{- $_ := set $env "TUNNEL_EXTRA_PROXIES" (join "," .) -}}
{{- end -}}
{{- range $name, $value := include "gitops-runtime.proxyEnv" (dict "root" .root "env" .values.env) | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- range $name, $value := .values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "gitops-runtime.env" $env -}}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.tunnel.mistakes" -}}
{{- $values := index .Values "tunnel-client" -}}
{{- $named := true -}}
{{- if kindIs "slice" $values.env }}
{{- range $values.env }}
{{- if not .name }}
{{- $named = false }}
- "tunnel-client.env: an item of the list has no name"
{{- end }}
{{- end }}
{{- end }}
{{- if $named }}
{{- $tunnel := include "gitops-runtime.tunnel" . | fromJson }}
{{- include "gitops-runtime.component.mistakes" (set $tunnel "path" "tunnel-client") }}
{{- end }}
{{- if include "gitops-runtime.tunnel.enabled" . }}
{{- if not $values.tunnelServer.subdomainHost }}
- "tunnel-client.tunnelServer.subdomainHost is required: the domain below which the server offers the runtime"
{{- end }}
{{- $prefix := include "gitops-runtime.tunnel.prefix" . }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" $prefix) }}
- {{ printf "the tunnel's host would begin with %q, which is no label of a domain name of at most 63 characters" $prefix | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.tunnel.remarks" -}}
{{- include "gitops-runtime.component.remarks" (merge (dict "root" . "path" "tunnel-client") (include "gitops-runtime.tunnel" . | fromJson)) }}
{{- end -}}
