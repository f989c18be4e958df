{{/*
The request-router as a component, in JSON. Its objects, labels and values have the names that it had in the older chart.
*/}}
{{- define "gitops-runtime.router" -}}
{{- $values := index .Values "internal-router" -}}
{{- $name := $values.fullnameOverride | default (printf "%s-%s" .Release.Name ($values.nameOverride | default "internal-router")) -}}
{{- dict "name" ($name | trunc 50 | trimSuffix "-") "values" $values | toJson -}}
{{- end -}}

{{/* By these labels the older chart found its pods; a Deployment's selector cannot be changed. */}}
{{- define "gitops-runtime.router.selectorLabels" -}}
app: internal-router
{{- end -}}

{{/* Argument of the two below: the root. Empty: there is no such route. */}}
{{- define "gitops-runtime.router.appProxyUrl" -}}
{{- dig "app-proxy" "internalUrl" "" (index .Values "internal-router").routing | default (printf "http://cap-app-proxy:%d" ((index .Values "app-proxy").service.port | int)) -}}
{{- end -}}

{{- define "gitops-runtime.router.workflowsUrl" -}}
{{- $argo := index .Values "argo-workflows" -}}
{{- $own := dig "workflows" dict (index .Values "internal-router").routing -}}
{{- if dig "enabled" (or $argo.enabled $own.internalUrl) $own -}}
{{- $computed := printf "%s://%s-%s:2746" (ternary "https" "http" $argo.server.secure) $argo.fullnameOverride $argo.server.name -}}
{{- $own.internalUrl | default $computed -}}
{{- end -}}
{{- end -}}

{{/*
The routes file: what the values say, and config, whose keys are others. Numbers and switches are written as text, which the
router reads as well.
*/}}
{{- define "gitops-runtime.router.routes" -}}
{{- $values := index .Values "internal-router" -}}
{{- $cors := include "gitops-runtime.app-proxy.cors" . -}}
{{- $proxies := $values.trustedProxies | default list -}}
{{- $names := list -}}
{{- if include "gitops-runtime.tunnel.enabled" . -}}
{{- $proxies = concat $proxies (index .Values "tunnel-client").podNetworks | uniq -}}
{{- if not (index .Values "tunnel-client").podNetworks -}}
{{- $names = list (printf "%s.%s.svc.%s." (include "gitops-runtime.tunnel.podsName" .) .Release.Namespace $values.clusterDomain) -}}
{{- end -}}
{{- end -}}
{{- $routes := dict
  "app-proxy-url" (include "gitops-runtime.router.appProxyUrl" .)
  "workflows-url" (include "gitops-runtime.router.workflowsUrl" .)
  "cors" (regexSplit " *, *" $cors -1)
  "cluster-domain" $values.clusterDomain
  "webhook-namespaces" $values.webhooks.allowedNamespaces
  "trusted-proxies" $proxies -}}
{{- with $names -}}
{{- $_ := set $routes "trusted-proxy-names" . -}}
{{- end -}}
{{- $signatures := list -}}
{{- range $values.webhooks.signatures -}}
{{- $signatures = append $signatures (printf "%s/%s=%s:/app/config/webhook-secrets/%s" .namespace .eventSource .kind .key) -}}
{{- end -}}
{{- $_ := set $routes "webhook-signatures" $signatures -}}
{{- range $key, $value := $values.config -}}
{{- $_ := set $routes $key $value -}}
{{- end -}}
{{- $lines := list -}}
{{- range $key, $value := $routes -}}
{{- if kindIs "slice" $value -}}
{{- $items := list -}}
{{- range $value -}}
{{- $items = append $items (include "gitops-runtime.text" . | quote) -}}
{{- end -}}
{{- $lines = append $lines (printf "%s: [%s]" $key (join ", " $items)) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $lines = append $lines (printf "%s: %s" $key (include "gitops-runtime.text" $value | quote)) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* Argument: the component. Of the time until the kill a sixth, at most five seconds, passes until no new request is sent
to the pod, and five seconds are left in the end. */}}
{{- define "gitops-runtime.router.env" -}}
{{- $grace := .values.terminationGracePeriodSeconds | int -}}
{{- $delay := min 5 (div $grace 6) -}}
{{- $env := dict
  "ROUTES_FILE" "/app/config/routes/routes.yaml"
  "POD_NAMESPACE" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  "DRAIN_DELAY" (printf "%ds" $delay)
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub $grace (add $delay 5))))
-}}
{{- if not .values.ipv6.enabled -}}
{{- $_ := set $env "LISTEN_ADDRESS" "0.0.0.0" -}}
{{- $_ := set $env "METRICS_LISTEN_ADDRESS" "0.0.0.0" -}}
{{- end -}}
{{- range $name, $value := include "gitops-runtime.tracingEnv" .root | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- range $name, $value := .values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "gitops-runtime.env" $env -}}
{{- end -}}

{{/* The least number of pods. Argument: the component's values. */}}
{{- define "gitops-runtime.router.pods" -}}
{{- ternary .hpa.minReplicas .replicaCount .hpa.enabled | int -}}
{{- end -}}

{{/* The URL by which all this is reached from outside; empty: it is not. Argument: the root. */}}
{{- define "gitops-runtime.ingressHost" -}}
{{- if include "gitops-runtime.tunnel.enabled" . -}}
{{- include "gitops-runtime.tunnel.url" . -}}
{{- else -}}
{{- with .Values.global.runtime -}}
{{- if .ingress.enabled -}}
{{- printf "%s://%s" .ingress.protocol (.ingress.hosts | default list | first | default "") -}}
{{- else if .httpRoute.enabled -}}
{{- printf "%s://%s" .httpRoute.protocol (.httpRoute.hostnames | default list | first | default "") -}}
{{- else -}}
{{- .ingressUrl | trimSuffix "/" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The prefixes that are sent to the router, as a JSON array. Argument: the root. */}}
{{- define "gitops-runtime.router.prefixes" -}}
{{- ternary (list "/webhooks" "/app-proxy" "/workflows") (list "/webhooks" "/app-proxy") (ne (include "gitops-runtime.router.workflowsUrl" .) "") | toJson -}}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.router.mistakes" -}}
{{- with .Values.global.runtime }}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) }}
- "global.runtime.httpRoute.parentRefs is required when httpRoute is enabled"
{{- end }}
{{- range $key, $hosts := dict "ingress" "hosts" "httpRoute" "hostnames" }}
{{- $access := index $.Values.global.runtime $key }}
{{- $first := index $access $hosts | default list | first | default "" }}
{{- if and $access.enabled (not $first) }}
- {{ printf "global.runtime.%s.%s is required when %s is enabled" $key $hosts $key | quote }}
{{- else if and $access.enabled (hasPrefix "*" $first) }}
- {{ printf "global.runtime.%s.%s: the first one is part of the runtime's URL and must be no wildcard" $key $hosts | quote }}
{{- end }}
{{- end }}
{{- if and (not (index $.Values "tunnel-client").enabled) (not .ingress.enabled) (not .httpRoute.enabled) (not .ingressUrl) }}
- "global.runtime.ingressUrl must be provided when global.runtime.ingress, global.runtime.httpRoute and tunnel-client are not enabled"
{{- end }}
{{- end }}
{{- $router := include "gitops-runtime.router" . | fromJson }}
{{- include "gitops-runtime.component.mistakes" (set $router "path" "internal-router") }}
{{- with $router.values.hpa }}
{{- if and .enabled (gt (.minReplicas | int) (.maxReplicas | int)) }}
- {{ printf "internal-router.hpa: minReplicas is %d, which is more than maxReplicas, %d" (.minReplicas | int) (.maxReplicas | int) | quote }}
{{- end }}
{{- end }}
{{- $allowed := $router.values.webhooks.allowedNamespaces | default (list .Release.Namespace) }}
{{- $sources := list }}
{{- range $router.values.webhooks.signatures }}
{{- if not (or (has .namespace $allowed) (has "*" $allowed)) }}
- {{ printf "internal-router.webhooks.signatures: webhooks.allowedNamespaces does not hold %s" .namespace | quote }}
{{- end }}
{{- $source := printf "%s/%s" .namespace .eventSource }}
{{- if has $source $sources }}
- {{ printf "internal-router.webhooks.signatures names the event source %s twice" $source | quote }}
{{- end }}
{{- $sources = append $sources $source }}
{{- end }}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.router.remarks" -}}
{{- $router := include "gitops-runtime.router" . | fromJson }}
{{- include "gitops-runtime.component.remarks" (merge (dict "root" . "path" "internal-router") $router) }}
{{- $resources := $router.values.resources }}
{{- if and $router.values.hpa.enabled (not (dig "requests" "cpu" "" $resources)) (not (dig "limits" "cpu" "" $resources)) }}
- "internal-router.hpa: utilization is measured by resources.requests.cpu, which is not set, so the number of pods stays at minReplicas"
{{- end }}
{{- end -}}
