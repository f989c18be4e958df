{{/*
Rules of this folder: a string of the user is written with quote, a block of the user with toYaml, and never through tpl, so that no
value can change the structure of an object. Every file begins with init.
*/}}

{{/* Completes .Values, once: a key that is missing or null gets its default. A null within a list or a map of the user's is left out.
Argument: the root. */}}
{{- define "control-plane.init" -}}
{{- if not (hasKey .Values "_defaults") -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- include "control-plane.complete" (dict "values" .Values "defaults" $defaults) -}}
{{- $_ := set .Values "_defaults" $defaults -}}
{{- end -}}
{{- end -}}

{{/* Arguments: dict values, which are changed; defaults, in which {} stands for a map of the user's, and so do those of Kubernetes' own
fields. In env and config a null takes away what the chart would put there. */}}
{{- define "control-plane.complete" -}}
{{- range $key, $default := .defaults -}}
{{- $value := index $.values $key -}}
{{- $own := has $key (list "resources" "podSecurityContext" "securityContext") -}}
{{- if and (kindIs "map" $default) $default (not $own) -}}
{{- if not (kindIs "map" $value) -}}
{{- $_ := set $.values $key dict -}}
{{- end -}}
{{- include "control-plane.complete" (dict "values" (index $.values $key) "defaults" $default) -}}
{{- else if kindIs "invalid" $value -}}
{{- $_ := set $.values $key $default -}}
{{- else if and (or (kindIs "map" $value) (kindIs "slice" $value)) (not (has $key (list "env" "config"))) -}}
{{- $_ := set $.values $key (include "control-plane.withoutNulls" $value | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A value without the nulls in its maps and lists, as JSON: an object with the key value. */}}
{{- define "control-plane.withoutNulls" -}}
{{- $value := . -}}
{{- if kindIs "map" . -}}
{{- $value = dict -}}
{{- range $key, $item := . -}}
{{- if not (kindIs "invalid" $item) -}}
{{- $_ := set $value $key (include "control-plane.withoutNulls" $item | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- $value = list -}}
{{- range . -}}
{{- if not (kindIs "invalid" .) -}}
{{- $value = append $value (include "control-plane.withoutNulls" . | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "value" $value | toJson -}}
{{- end -}}

{{/* A scalar as text. Numbers of a values file arrive as floats, which print as 1e+06 otherwise and keep 15 digits only. */}}
{{- define "control-plane.text" -}}
{{- if and (kindIs "float64" .) (or (ge . 1e15) (le . -1e15)) -}}
{{- fail (printf "the values hold the number %v, which has lost digits: quote it in the values file, so that it stays as it is written" .) -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- . | toString -}}
{{- end -}}
{{- end -}}

{{/* A map with every value as a quoted string; null drops a key. {}: there is none. */}}
{{- define "control-plane.strings" -}}
{{- $lines := list -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $lines = append $lines (printf "%s: %s" (quote $key) (include "control-plane.text" $value | quote)) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines | default "{}" -}}
{{- end -}}

{{- define "control-plane.selectorLabels" -}}
app.kubernetes.io/name: control-plane
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "control-plane.tunnelServer.selectorLabels" -}}
app.kubernetes.io/name: tunnel-server
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Arguments: dict root, labels (the user's for this object), component (control-plane unless given). Those of the chart replace the user's. */}}
{{- define "control-plane.labels" -}}
{{- $labels := dict -}}
{{- range $map := list .root.Values.commonLabels (.labels | default dict) -}}
{{- range $key, $value := $map -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := dict
  "app.kubernetes.io/name" (.component | default "control-plane")
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/part-of" "gitops-control-plane"
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- include "control-plane.strings" $labels -}}
{{- end -}}

{{- define "control-plane.image" -}}
{{- with .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}
@{{ .Values.image.digest }}
{{- else -}}
:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* That of tunnel-server. A digest of image is one of another repository's, unless both have the same image. */}}
{{- define "control-plane.tunnelServer.image" -}}
{{- $own := .Values.tunnel.server.image -}}
{{- $image := dict "registry" .Values.image.registry "repository" $own.repository "tag" ($own.tag | default .Values.image.tag) "digest" $own.digest -}}
{{- if and (eq (base $own.repository) (base .Values.image.repository)) (not $own.tag) (not $own.digest) -}}
{{- $_ := set $image "digest" .Values.image.digest -}}
{{- end -}}
{{- include "control-plane.image" (dict "Values" (dict "image" $image) "Chart" .Chart) -}}
{{- end -}}

{{/* Pull secrets as a pod names them: the values hold names and {name: NAME}. */}}
{{- define "control-plane.pullSecrets" -}}
{{- $secrets := list -}}
{{- range .Values.imagePullSecrets -}}
{{- $secrets = append $secrets (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}

{{/* The volume of the database belongs to a group that the image's user is made a member of. OpenShift refuses groups that it did not
choose, and chooses one itself. */}}
{{- define "control-plane.podSecurityContext" -}}
{{- $context := .Values.podSecurityContext -}}
{{- if not (or (hasKey $context "fsGroup") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $context = merge (dict "fsGroup" 65532 "fsGroupChangePolicy" "OnRootMismatch") $context -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{- define "control-plane.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default "control-plane" -}}
{{- end -}}

{{/* Is the database SQLite? */}}
{{- define "control-plane.isSqlite" -}}
{{- if not .Values.database.postgres.url }}true{{ end -}}
{{- end -}}

{{/* Name of the claim of SQLite's volume; empty: there is none. */}}
{{- define "control-plane.claim" -}}
{{- with .Values.database.sqlite.persistence -}}
{{- if and .enabled (include "control-plane.isSqlite" $) -}}
{{- .existingClaim | default "control-plane" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secrets that the daemon reads, as a JSON map of folder to secret, items and the variable with the file's path. */}}
{{- define "control-plane.secrets" -}}
{{- $secrets := dict -}}
{{- range $name, $one := dict
  "database-password" (dict "ref" .Values.database.postgres.passwordSecretKeyRef "variable" "DATABASE_PASSWORD_FILE" "on" .Values.database.postgres.url)
  "first-password" (dict "ref" .Values.firstStart.passwordSecretKeyRef "flag" "first-start.password-file" "on" true)
  "master-key" (dict "ref" .Values.masterKey.secretKeyRef "flag" "master-key-file" "on" true)
  "plugin-token" (dict "ref" .Values.tunnel.pluginToken.secretKeyRef "flag" "tunnel.plugin-token-file" "on" true)
  "tunnel-api-token" (dict "ref" .Values.tunnel.api.token.secretKeyRef "flag" "tunnel.api-token-file" "on" (or .Values.tunnel.server.enabled .Values.tunnel.api.urls))
  "tunnel-api-ca" (dict "ref" .Values.tunnel.api.caCerts.secretKeyRef "variable" "TUNNEL_API_CA_FILE" "on" .Values.tunnel.api.urls) -}}
{{- if and $one.on $one.ref.name -}}
{{- $_ := set $secrets $name (dict "secret" $one.ref.name "items" (list (dict "key" $one.ref.key "path" $name)) "variable" ($one.variable | default "") "flag" ($one.flag | default "")) -}}
{{- end -}}
{{- end -}}
{{- range .Values.sso.providers -}}
{{- $provider := . -}}
{{- range $kind, $ref := dict "secret" .clientSecretKeyRef "ca" .caSecretKeyRef -}}
{{- if $ref -}}
{{- $name := printf "sso-%s-%s" $provider.name $kind -}}
{{- $_ := set $secrets $name (dict "secret" $ref.name "items" (list (dict "key" $ref.key "path" $name)) "variable" "" "flag" "") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls.secretName -}}
{{- $_ := set $secrets "tls" (dict "secret" . "items" list "variable" "" "flag" "") -}}
{{- end -}}
{{- $secrets | toJson -}}
{{- end -}}

{{/* The paths of the files of identity providers, separated by commas. */}}
{{- define "control-plane.providerFiles" -}}
{{- $files := list -}}
{{- range .Values.sso.providers -}}
{{- $files = append $files (printf "/app/config/sso/%s.yaml" .name) -}}
{{- end -}}
{{- join "," $files -}}
{{- end -}}

{{/* The file of an identity provider, as a YAML map. Argument: the item of sso.providers. */}}
{{- define "control-plane.provider" -}}
{{- $file := dict
  "name" .name
  "issuer" .issuer
  "client-id" .clientId
  "client-secret-file" (printf "/app/config/sso-%s-secret/sso-%s-secret" .name .name) -}}
{{- range $key, $value := dict
  "title" .title
  "scopes" .scopes
  "groups-claim" .groupsClaim
  "teams" .teams
  "account" .account
  "create-users" .createUsers
  "join-by-email" .joinByEmail -}}
{{- if $value -}}
{{- $_ := set $file $key $value -}}
{{- end -}}
{{- end -}}
{{- if .caSecretKeyRef -}}
{{- $_ := set $file "ca-file" (printf "/app/config/sso-%s-ca/sso-%s-ca" .name .name) -}}
{{- end -}}
{{- toYaml $file -}}
{{- end -}}

{{/* The same of tunnel-server. */}}
{{- define "control-plane.tunnelServer.secrets" -}}
{{- $ref := .Values.tunnel.api.token.secretKeyRef -}}
{{- $secrets := dict "api-token" (dict "secret" $ref.name "items" (list (dict "key" $ref.key "path" "api-token"))) -}}
{{- with .Values.tunnel.server.clients.tls.secretName -}}
{{- $_ := set $secrets "clients-tls" (dict "secret" . "items" list) -}}
{{- end -}}
{{- with .Values.tunnel.server.users.tls.secretName -}}
{{- $_ := set $secrets "users-tls" (dict "secret" . "items" list) -}}
{{- end -}}
{{- $secrets | toJson -}}
{{- end -}}

{{/* The variables of traces, as a JSON object. */}}
{{- define "control-plane.tracingEnv" -}}
{{- $env := dict -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" .endpoint -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER_ARG" (include "control-plane.text" .ratio) -}}
{{- with .headers.secretKeyRef -}}
{{- if .name -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_HEADERS" (dict "valueFrom" (dict "secretKeyRef" (pick . "name" "key"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* The env list of tunnel-server. The plugin's token, which is a part of its URL, has to stand first. */}}
{{- define "control-plane.tunnelServer.env" -}}
{{- $server := .Values.tunnel.server -}}
{{- $grace := .Values.terminationGracePeriodSeconds | int -}}
{{- $delay := min 5 (div $grace 6) -}}
{{- $env := dict
  "SUBDOMAIN_HOST" (.Values.tunnel.domain | lower)
  "LISTEN_PORT" 8080
  "TUNNEL_PORT" 7000
  "API_PORT" 8089
  "API_LISTEN_ADDRESS" "::"
  "LOG_LEVEL" .Values.logLevel
  "DRAIN_DELAY" (printf "%ds" $delay)
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub $grace (add $delay 5))))
  "PLUGIN_URL" (printf "http://control-plane.%s.svc:%d/tunnel-plugin/$(PLUGIN_TOKEN)" .Release.Namespace (.Values.service.port | int))
-}}
{{- if $server.clients.tls.secretName -}}
{{- $_ := set $env "TUNNEL_TLS_CERTIFICATE_FILE" "/app/config/clients-tls/tls.crt" -}}
{{- $_ := set $env "TUNNEL_TLS_KEY_FILE" "/app/config/clients-tls/tls.key" -}}
{{- $_ := set $env "TUNNEL_REQUIRE_TLS" true -}}
{{- end -}}
{{- if $server.users.tls.secretName -}}
{{- $_ := set $env "TLS_CERTIFICATE_FILE" "/app/config/users-tls/tls.crt" -}}
{{- $_ := set $env "TLS_KEY_FILE" "/app/config/users-tls/tls.key" -}}
{{- end -}}
{{- with $server.users.trustedProxies -}}
{{- $_ := set $env "TRUSTED_PROXIES" (join "," .) -}}
{{- end -}}
{{- $flags := .Files.Get "files/flags.json" | fromJson -}}
{{- range $flag, $value := $server.config -}}
{{- $_ := set $env (index $flags "tunnel-server" $flag) $value -}}
{{- end -}}
{{- range $name, $value := include "control-plane.tracingEnv" . | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- $token := .Values.tunnel.pluginToken.secretKeyRef -}}
{{- $list := list (dict "name" "PLUGIN_TOKEN" "valueFrom" (dict "secretKeyRef" (dict "name" $token.name "key" $token.key))) -}}
{{- range $name, $value := $env -}}
{{- if kindIs "map" $value -}}
{{- $list = append $list (dict "name" $name "valueFrom" $value.valueFrom) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $list = append $list (dict "name" $name "value" (include "control-plane.text" $value)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $list -}}
{{- end -}}

{{/* The container's env list. */}}
{{- define "control-plane.env" -}}
{{- $grace := .Values.terminationGracePeriodSeconds | int -}}
{{- $delay := min 5 (div $grace 6) -}}
{{- $env := dict
  "PORT" 8080
  "LOG_LEVEL" .Values.logLevel
  "DRAIN_DELAY" (printf "%ds" $delay)
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub $grace (add $delay 5))))
  "FIRST_START_ACCOUNT" .Values.firstStart.account
  "FIRST_START_ADMINISTRATOR" .Values.firstStart.administrator
-}}
{{- $apis := .Values.tunnel.api.urls -}}
{{- if .Values.tunnel.server.enabled -}}
{{- $apis = append $apis (printf "http://tunnel-server-admin.%s.svc:8089" .Release.Namespace) -}}
{{- end -}}
{{- range $name, $value := dict
  "PUBLIC_URL" .Values.publicUrl
  "DATABASE_URL" .Values.database.postgres.url
  "STORAGE_LIMIT" .Values.database.storageLimit
  "FIRST_START_EMAIL" .Values.firstStart.email
  "TRUSTED_PROXIES" (join "," .Values.trustedProxies)
  "TUNNEL_DOMAIN" .Values.tunnel.domain
  "SSO_PROVIDERS" (include "control-plane.providerFiles" .)
  "TUNNEL_API_URLS" (join "," $apis) -}}
{{- if $value -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}
{{- range $folder, $secret := include "control-plane.secrets" . | fromJson -}}
{{- with $secret.variable -}}
{{- $_ := set $env . (printf "/app/config/%s/%s" $folder $folder) -}}
{{- end -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $env "TLS_CERTIFICATE_FILE" "/app/config/tls/tls.crt" -}}
{{- $_ := set $env "TLS_KEY_FILE" "/app/config/tls/tls.key" -}}
{{- end -}}
{{- range $name, $value := include "control-plane.tracingEnv" . | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- $flags := .Files.Get "files/flags.json" | fromJson -}}
{{- range $flag, $value := .Values.config -}}
{{- $_ := set $env (index $flags "control-plane" $flag) $value -}}
{{- end -}}
{{- range $name, $value := .Values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- $list := list -}}
{{- range $name, $value := $env -}}
{{- if kindIs "map" $value -}}
{{- $list = append $list (dict "name" $name "valueFrom" $value.valueFrom) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $list = append $list (dict "name" $name "value" (include "control-plane.text" $value)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $list -}}
{{- end -}}

{{/* The port of the collector of traces. Argument: its URL. */}}
{{- define "control-plane.tracingPort" -}}
{{- include "control-plane.portOf" (dict "url" . "otherwise" (ternary "80" "443" (hasPrefix "http://" .))) -}}
{{- end -}}

{{/* The port of a URL; `otherwise` where it names none. Arguments: dict url, otherwise. */}}
{{- define "control-plane.portOf" -}}
{{- $host := regexReplaceAll "^[a-z0-9]+://([^/?]*).*$" .url "${1}" -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default .otherwise -}}
{{- end -}}

{{/* The ports of PostgreSQL's address, which may name several hosts, as a JSON array. Argument: the address. */}}
{{- define "control-plane.postgresPorts" -}}
{{- $ports := list -}}
{{- range regexReplaceAll "^[a-z0-9]+://(?:[^@/?]*@)?([^/?]*).*$" . "${1}" | splitList "," -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default "5432" | int) -}}
{{- end -}}
{{- uniq $ports | toJson -}}
{{- end -}}

{{/* Every mistake in the values, as a YAML list. What the schema can say is not repeated here. */}}
{{- define "control-plane.mistakes" -}}
{{- if and (gt (.Values.replicaCount | int) 1) (include "control-plane.isSqlite" .) }}
- "replicaCount: several pods need database.postgres.url; a file of SQLite belongs to one process"
{{- end }}
{{- if contains "@" (regexFind ":[^:/@]*@" .Values.database.postgres.url) }}
- "database.postgres.url: the password does not belong into the address; set passwordSecretKeyRef"
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
- "ingress.hosts is required when ingress.enabled is true"
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
- "httpRoute.parentRefs is required when httpRoute.enabled is true"
{{- end }}
{{- if and .Values.tunnel.api.urls (not .Values.tunnel.api.token.secretKeyRef.name) }}
- "tunnel.api.token.secretKeyRef is required with tunnel.api.urls"
{{- end }}
{{- if and .Values.sso.providers (not .Values.publicUrl) }}
- "publicUrl is required with sso.providers: they send browsers back to it"
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
- "serviceAccount.name is required when serviceAccount.create is false"
{{- end }}
{{- $names := list }}
{{- $known := list "name" "title" "issuer" "clientId" "clientSecretKeyRef" "scopes" "groupsClaim" "teams" "account" "createUsers" "joinByEmail" "caSecretKeyRef" }}
{{- range $index, $provider := .Values.sso.providers }}
{{- $path := printf "sso.providers[%d]" $index }}
{{- if not (kindIs "map" $provider) }}
- {{ printf "%s is no map" $path | quote }}
{{- else }}
{{- range $key, $_ := $provider }}
{{- if not (has $key $known) }}
- {{ printf "%s: there is no key %s" $path $key | quote }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^[a-z0-9-]{1,40}$" ($provider.name | default "" | toString)) }}
- {{ printf "%s.name has 1 to 40 lower-case letters, digits and hyphens" $path | quote }}
{{- end }}
{{- range $key := list "title" "issuer" "clientId" "scopes" "groupsClaim" "teams" "account" }}
{{- $text := index $provider $key | default "" }}
{{- range $value := ternary $text (list $text) (kindIs "slice" $text) }}
{{- if not (kindIs "string" $value) }}
- {{ printf "%s.%s: %v is no text; quote it in the values file, so that it stays as it is written" $path $key $value | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if has $provider.name $names }}
- {{ printf "%s.name: %v stands there twice" $path $provider.name | quote }}
{{- end }}
{{- $names = append $names $provider.name }}
{{- if not (and $provider.issuer $provider.clientId) }}
- {{ printf "%s needs issuer and clientId" $path | quote }}
{{- end }}
{{- range $name, $ref := dict "clientSecretKeyRef" ($provider.clientSecretKeyRef | default dict) "caSecretKeyRef" ($provider.caSecretKeyRef | default (dict "name" "x" "key" "x")) }}
{{- if not (and (kindIs "map" $ref) $ref.name $ref.key) }}
- {{ printf "%s.%s needs name and key" $path $name | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.tunnel.server }}
{{- if .enabled }}
{{- if not $.Values.tunnel.domain }}
- "tunnel.domain is required with tunnel.server: the domain below which runtimes get their hosts"
{{- end }}
{{- if not $.Values.tunnel.pluginToken.secretKeyRef.name }}
- "tunnel.pluginToken.secretKeyRef is required with tunnel.server"
{{- end }}
{{- if not $.Values.tunnel.api.token.secretKeyRef.name }}
- "tunnel.api.token.secretKeyRef is required with tunnel.server"
{{- end }}
{{- if $.Values.tls.secretName }}
- "tunnel.server asks the control plane over HTTP within the cluster: leave tls.secretName empty and end TLS at an ingress, or install the tunnel-server of the chart gitops-runtime"
{{- end }}
{{- if and .clients.ingress.enabled (not .clients.host) }}
- "tunnel.server.clients.host is required when its ingress is enabled"
{{- end }}
{{- end }}
{{- end }}
{{- range $path, $ref := dict
  "database.postgres.passwordSecretKeyRef" .Values.database.postgres.passwordSecretKeyRef
  "firstStart.passwordSecretKeyRef" .Values.firstStart.passwordSecretKeyRef
  "masterKey.secretKeyRef" .Values.masterKey.secretKeyRef
  "tunnel.pluginToken.secretKeyRef" .Values.tunnel.pluginToken.secretKeyRef
  "tunnel.api.token.secretKeyRef" .Values.tunnel.api.token.secretKeyRef
  "tunnel.api.caCerts.secretKeyRef" .Values.tunnel.api.caCerts.secretKeyRef
  "tracing.headers.secretKeyRef" .Values.tracing.headers.secretKeyRef }}
{{- if and (or $ref.name $ref.key) (not (and $ref.name $ref.key)) }}
- {{ printf "%s needs name and key" $path | quote }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.env }}
{{- if kindIs "map" $value }}
{{- $from := $value.valueFrom }}
{{- if or (ne (len $value) 1) (not (kindIs "map" $from)) (ne (len ($from | default dict)) 1) (not (has (keys ($from | default dict) | first) (list "secretKeyRef" "configMapKeyRef" "fieldRef"))) }}
- {{ printf "env.%s: a map must be valueFrom with one of secretKeyRef, configMapKeyRef, fieldRef" $name | quote }}
{{- end }}
{{- else if kindIs "slice" $value }}
- {{ printf "env.%s must be a value or a map with valueFrom, not a list" $name | quote }}
{{- end }}
{{- end }}
{{- end -}}
