{{/*
Rules of this folder: a string of the user is written with quote, a block of the user with toYaml, and never through
tpl, so that no value can change the structure of an object. Between templates values travel as JSON, which keeps every
character. Every file begins with init.
*/}}

{{/*
Completes .Values, once: a key that is missing or null gets its default. It is missing after an upgrade with --reuse-values from a
release that did not have it. A list or a map of the user's that is null is empty, and nulls in it are left out. Argument: the root.
*/}}
{{- define "gitops-runtime.init" -}}
{{- if not (hasKey .Values "_defaults") -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- include "gitops-runtime.complete" (dict "values" .Values "defaults" $defaults) -}}
{{- range .Files.Get "files/value-formats.json" | fromJsonArray -}}
{{- if .reference -}}
{{- $node := $.Values.AsMap -}}
{{- range initial .path -}}
{{- $node = ternary (index ($node | default dict) .) nil (kindIs "map" $node) -}}
{{- end -}}
{{- $ref := ternary (index ($node | default dict) (last .path)) nil (kindIs "map" $node) -}}
{{- if and (kindIs "map" $ref) $ref (not (or $ref.name $ref.key)) -}}
{{- $_ := set $node (last .path) dict -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values "_defaults" $defaults -}}
{{- end -}}
{{- end -}}

{{/* Arguments: dict values, which are changed; defaults, in which {} stands for a map of the user's. In env and config a null takes
away what the chart, or global.event-reporters, would put there; objects of the user's stay as they are. */}}
{{- define "gitops-runtime.complete" -}}
{{- range $key, $value := .values -}}
{{- if and (kindIs "invalid" $value) (not (hasKey $.defaults $key)) -}}
{{- $_ := unset $.values $key -}}
{{- end -}}
{{- end -}}
{{- range $key, $default := .defaults -}}
{{- $value := index $.values $key -}}
{{- if and (kindIs "map" $default) $default -}}
{{- if not (kindIs "map" $value) -}}
{{- $_ := set $.values $key dict -}}
{{- end -}}
{{- include "gitops-runtime.complete" (dict "values" (index $.values $key) "defaults" $default) -}}
{{- else if kindIs "invalid" $value -}}
{{- $_ := set $.values $key $default -}}
{{- else if and (or (kindIs "map" $value) (kindIs "slice" $value)) (not (has $key (list "env" "config" "runtime-event-reporter" "extraObjects"))) -}}
{{- $_ := set $.values $key (include "gitops-runtime.withoutNulls" $value | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A value without the nulls in its maps and lists, as JSON: an object with the key value. */}}
{{- define "gitops-runtime.withoutNulls" -}}
{{- $value := . -}}
{{- if kindIs "map" . -}}
{{- $value = dict -}}
{{- range $key, $item := . -}}
{{- if not (kindIs "invalid" $item) -}}
{{- $_ := set $value $key (include "gitops-runtime.withoutNulls" $item | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- $value = list -}}
{{- range . -}}
{{- if not (kindIs "invalid" .) -}}
{{- $value = append $value (include "gitops-runtime.withoutNulls" . | fromJson).value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "value" $value | toJson -}}
{{- end -}}

{{/* Is this chart a part of another one? Then keys of global belong to that one and its other parts, and so do other workloads of the
release. Argument: the root. */}}
{{- define "gitops-runtime.isPart" -}}
{{- if contains "/charts/" .Template.BasePath }}true{{ end -}}
{{- end -}}

{{/* A scalar as text. Numbers of a values file arrive as floats, which print as 1e+06 otherwise and keep 15 digits only. */}}
{{- define "gitops-runtime.text" -}}
{{- if and (kindIs "float64" .) (or (ge . 1e15) (le . -1e15)) -}}
{{- fail (printf "the values hold the number %v, which has lost digits: quote it in the values file, so that it stays as it is written" .) -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- . | toString -}}
{{- end -}}
{{- end -}}

{{/* A map with every value as a quoted string, for labels, annotations and ConfigMap data; null drops a key. {}: there is none. */}}
{{- define "gitops-runtime.strings" -}}
{{- $lines := list -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $lines = append $lines (printf "%s: %s" (quote $key) (include "gitops-runtime.text" $value | quote)) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines | default "{}" -}}
{{- end -}}

{{/* Arguments of the two below: dict root, name (of the component). */}}
{{- define "gitops-runtime.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- end -}}

{{/* Besides: labels, the user's for this object. Those of the chart replace them, and they replace global.commonLabels. */}}
{{- define "gitops-runtime.labels" -}}
{{- $labels := dict -}}
{{- range $map := list (.root.Values.global.commonLabels | default dict) (.labels | default dict) -}}
{{- range $key, $value := $map -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := dict
  "app.kubernetes.io/name" .name
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/part-of" "gitops-runtime"
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- include "gitops-runtime.strings" $labels -}}
{{- end -}}

{{/* The values of a component's image, as JSON: its own over those of image, which was global.image once. That key belongs to others
where this chart is a part of theirs. Arguments: dict root, image. */}}
{{- define "gitops-runtime.imageValues" -}}
{{- $merged := deepCopy .root.Values.image -}}
{{- $older := ternary dict (.root.Values.global.image | default dict) (ne (include "gitops-runtime.isPart" .root) "") -}}
{{- $repository := $older.repository | default $merged.repository -}}
{{- range $image := list $older .image -}}
{{- range $key, $value := $image -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* The digest of the image for all neither overrides a tag of the component's own nor is that of another image. */ -}}
{{- if and (or .image.tag (ne (base $merged.repository) (base $repository))) (not .image.digest) -}}
{{- $_ := unset $merged "digest" -}}
{{- end -}}
{{- $merged | toJson -}}
{{- end -}}

{{/* Image reference. Arguments: dict root, image. */}}
{{- define "gitops-runtime.image" -}}
{{- $image := include "gitops-runtime.imageValues" . | fromJson -}}
{{- $registry := .root.Values.global.imageRegistry | default $image.registry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Where a pod may run. Arguments: dict root, values (of the component), name. The component's own lists replace the
global ones, they are not joined. */}}
{{- define "gitops-runtime.scheduling" -}}
{{- $global := .root.Values.global -}}
{{- with .values.priorityClassName | default $global.priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
{{- with .values.nodeSelector | default $global.nodeSelector }}
nodeSelector: {{- include "gitops-runtime.strings" . | nindent 2 }}
{{- end }}
{{- with .values.tolerations | default $global.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := dict "matchLabels" (include "gitops-runtime.selectorLabels" . | fromYaml) }}
{{- with .values.topologySpreadConstraints | default $global.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- merge (ternary (dict) (dict "labelSelector" $selector) (hasKey . "labelSelector")) (deepCopy .) | toYaml | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A container's env list. Argument: map of name to scalar, or to a map with valueFrom; null drops a name. */}}
{{- define "gitops-runtime.env" -}}
{{- $list := list -}}
{{- range $name, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $list = append $list (dict "name" $name "valueFrom" $value.valueFrom) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $list = append $list (dict "name" $name "value" (include "gitops-runtime.text" $value)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $list -}}
{{- end -}}

{{/*
What every daemon of the chart is made of. Argument of each: the component, a dict with root, name, values; and what is
named there.
*/}}

{{- define "gitops-runtime.serviceAccountName" -}}
{{- .values.serviceAccount.name | default .name -}}
{{- end -}}

{{- define "gitops-runtime.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "gitops-runtime.serviceAccountName" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations: {{- include "gitops-runtime.strings" . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}

{{/* The labels of its pods: the chart's, and the user's. Besides: labels, where the pods have more than the selector's. */}}
{{- define "gitops-runtime.podLabels" -}}
{{- $labels := merge (include "gitops-runtime.selectorLabels" . | fromYaml) (.labels | default dict) -}}
{{- include "gitops-runtime.strings" (merge $labels .values.podLabels) -}}
{{- end -}}

{{/* Pull secrets as a pod names them. Argument: a list of names and of {name: NAME}. */}}
{{- define "gitops-runtime.pullSecrets" -}}
{{- $secrets := list -}}
{{- range . -}}
{{- $secrets = append $secrets (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}

{{/* Of a pod: its account, the Secrets for the registry, where it runs, and how long it may take to stop. */}}
{{- define "gitops-runtime.podBasics" -}}
serviceAccountName: {{ include "gitops-runtime.serviceAccountName" . | quote }}
# A Service named "listen" or "admin" would otherwise set LISTEN_PORT or ADMIN_PORT.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds | int }}
{{- with .values.imagePullSecrets | default .root.Values.global.imagePullSecrets }}
imagePullSecrets: {{- include "gitops-runtime.pullSecrets" . | nindent 2 }}
{{- end }}
{{- with include "gitops-runtime.scheduling" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* The image of a container, and when it is pulled. */}}
{{- define "gitops-runtime.containerImage" -}}
{{- $image := dict "root" .root "image" .values.image -}}
image: {{ include "gitops-runtime.image" $image | quote }}
imagePullPolicy: {{ (include "gitops-runtime.imageValues" $image | fromJson).pullPolicy | quote }}
{{- end -}}

{{/* A number of pods, which may be given as text, or a part of them, such as 50%. */}}
{{- define "gitops-runtime.podCount" -}}
{{- $text := include "gitops-runtime.text" . -}}
{{- ternary $text (quote $text) (regexMatch "^[0-9]+$" $text) -}}
{{- end -}}

{{/* Besides: pods, the least number of them; selector, where that is another than the labels. Nothing for one pod. */}}
{{- define "gitops-runtime.pdb" -}}
{{- $pdb := .values.pdb -}}
{{- if and $pdb.enabled (gt (.pods | int) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.labels" . | nindent 4 }}
spec:
  {{- if $pdb.minAvailable }}
  minAvailable: {{ include "gitops-runtime.podCount" $pdb.minAvailable }}
  {{- else }}
  maxUnavailable: {{ include "gitops-runtime.podCount" $pdb.maxUnavailable }}
  {{- end }}
  {{- if semverCompare ">=1.27-0" .root.Capabilities.KubeVersion.Version }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  {{- end }}
  selector:
    matchLabels: {{- include "gitops-runtime.selectorLabels" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* What every Ingress of a component begins with, up to its rules. Besides: ingress, its values. */}}
{{- define "gitops-runtime.ingress" -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.labels" (dict "root" .root "name" .name "labels" .ingress.labels) | nindent 4 }}
  {{- with .ingress.annotations }}
  annotations: {{- include "gitops-runtime.strings" . | nindent 4 }}
  {{- end }}
spec:
  {{- with .ingress.className }}
  ingressClassName: {{ quote . }}
  {{- end }}
  {{- with .ingress.tls }}
  tls: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/*
What a Service of the user's choice may have besides its ports, from its values: annotations are the caller's.
*/}}
{{- define "gitops-runtime.serviceExposure" -}}
{{- if ne .type "ClusterIP" }}
{{- with .externalTrafficPolicy }}
externalTrafficPolicy: {{ . }}
{{- end }}
{{- end }}
{{- if eq .type "LoadBalancer" }}
{{- with .loadBalancerSourceRanges }}
loadBalancerSourceRanges: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .loadBalancerClass }}
loadBalancerClass: {{ quote . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Egress to name servers; those of OpenShift listen on 5353. */}}
{{- define "gitops-runtime.egress.dns" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
    - {port: 5353, protocol: UDP}
    - {port: 5353, protocol: TCP}
{{- end -}}

{{/* Egress to the collector of traces, whose addresses are not known here. Argument: the root. */}}
{{- define "gitops-runtime.egress.tracing" -}}
{{- with .Values.tracing.endpoint -}}
- ports: [{port: {{ include "gitops-runtime.portOf" . }}, protocol: TCP}]
{{- end -}}
{{- end -}}

{{/* The variables of traces, as a JSON object. Argument: the root. */}}
{{- define "gitops-runtime.tracingEnv" -}}
{{- $env := dict -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" .endpoint -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER_ARG" (include "gitops-runtime.text" .ratio) -}}
{{- with .headers.secretKeyRef -}}
{{- if .name -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_HEADERS" (dict "valueFrom" (dict "secretKeyRef" (pick . "name" "key"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* Ingress to the port with metrics, health and status: without peers none, since its pages need no credentials. Probes
come from the node, which policies do not concern. Argument: the policy's values. */}}
{{- define "gitops-runtime.ingress.metrics" -}}
{{- with .metricsFrom -}}
- ports: [{port: metrics, protocol: TCP}]
  from: {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* The port of a URL; 443 or 80 where it names none. */}}
{{- define "gitops-runtime.portOf" -}}
{{- $host := regexReplaceAll "^[a-z0-9]+://([^/]*).*$" . "${1}" -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default (ternary "80" "443" (hasPrefix "http://" .)) -}}
{{- end -}}

{{/* The ports of the HTTP proxies, as a JSON array. Argument: the root. */}}
{{- define "gitops-runtime.proxyPorts" -}}
{{- $ports := list -}}
{{- range list .Values.global.httpProxy .Values.global.httpsProxy -}}
{{- if . -}}
{{- $url := ternary . (printf "http://%s" .) (contains "://" .) -}}
{{- $ports = append $ports (include "gitops-runtime.portOf" $url | int) -}}
{{- end -}}
{{- end -}}
{{- uniq $ports | toJson -}}
{{- end -}}

{{/* The ports by which a daemon reaches the API server, the control plane and other hosts outside, as a JSON array; also
those of proxies. Argument: the root. */}}
{{- define "gitops-runtime.outsidePorts" -}}
{{- $ports := list 443 6443 (include "gitops-runtime.portOf" .Values.global.codefresh.url | int) -}}
{{- range include "gitops-runtime.proxyPorts" . | fromJsonArray -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- uniq $ports | toJson -}}
{{- end -}}

{{/* The host of a URL where that is a Service: SERVICE, SERVICE.NAMESPACE, or these with .svc behind; else empty. The second of them may
be a public name, too, then with https. Arguments: dict root, url, https (does such a one count?). */}}
{{- define "gitops-runtime.serviceOf" -}}
{{- $host := regexReplaceAll "^[a-z]+://([^/:]*).*$" .url "${1}" -}}
{{- $domain := (index .root.Values "internal-router").clusterDomain | replace "." "\\." -}}
{{- if or (regexMatch (printf "^[-a-z0-9]+(\\.[-a-z0-9]+\\.svc(\\.%s)?\\.?)?$" $domain) $host) (and (regexMatch "^[-a-z0-9]+\\.[-a-z0-9]+$" $host) (or .https (hasPrefix "http://" .url))) -}}
{{- $host -}}
{{- end -}}
{{- end -}}

{{/* Egress to the pods of a control plane in the cluster: policies see their port, not that of the Service in the URL. Argument: the
root. */}}
{{- define "gitops-runtime.egress.controlPlane" -}}
{{- if include "gitops-runtime.serviceOf" (dict "root" . "url" .Values.global.codefresh.url "https" true) -}}
- ports: [{port: 8080, protocol: TCP}]
  to: [{namespaceSelector: {}, podSelector: {matchLabels: {app.kubernetes.io/name: control-plane}}}]
{{- end -}}
{{- end -}}

{{/*
The variables of HTTP proxies, as a JSON object. What is inside the cluster is never asked for through a proxy: its
domains, the API server, whose address the kubelet puts in place of $(KUBERNETES_SERVICE_HOST), argocd-server, the
router, and a control plane and a collector of traces that are there. Arguments: dict root; env, the component's own variables, which
may name a proxy, too, and override these.
*/}}
{{- define "gitops-runtime.proxyEnv" -}}
{{- $root := .root -}}
{{- $own := .env | default dict -}}
{{- $global := $root.Values.global -}}
{{- $env := dict -}}
{{- range $name, $value := dict "HTTP_PROXY" $global.httpProxy "HTTPS_PROXY" $global.httpsProxy -}}
{{- if $value -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}
{{- $proxied := not (empty $env) -}}
{{- $proxies := list "HTTP_PROXY" "HTTPS_PROXY" "http_proxy" "https_proxy" -}}
{{- range $name := $proxies -}}
{{- $proxied = or $proxied (not (empty (index $own $name))) -}}
{{- end -}}
{{- if $proxied -}}
{{- $domain := (index $root.Values "internal-router").clusterDomain -}}
{{- $argocd := include "gitops-runtime.argocd" $root | fromJson -}}
{{- $router := include "gitops-runtime.router" $root | fromJson -}}
{{- $inside := list "localhost" "127.0.0.1" "::1" "kubernetes.default" ".svc" (printf ".%s" $domain) "$(KUBERNETES_SERVICE_HOST)" $argocd.host $router.name "cap-app-proxy" -}}
{{- range $url := list $global.codefresh.url $root.Values.tracing.endpoint -}}
{{- $inside = append $inside (include "gitops-runtime.serviceOf" (dict "root" $root "url" $url "https" false)) -}}
{{- end -}}
{{- $hosts := concat (regexSplit " *, *" (trim $global.noProxy) -1) $inside -}}
{{- $_ := set $env "NO_PROXY" (without (uniq $hosts) "" | join ",") -}}
{{- end -}}
{{- range $name := concat $proxies (list "NO_PROXY" "no_proxy") -}}
{{- if hasKey $own $name -}}
{{- $_ := set $env $name (index $own $name) -}}
{{- end -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* Nothing where the cluster does not know the kind; so is the rule below. */}}
{{- define "gitops-runtime.serviceMonitor" -}}
{{- $monitor := .values.serviceMonitor -}}
{{- if and $monitor.enabled (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.labels" (dict "root" .root "name" .name "labels" $monitor.labels) | nindent 4 }}
spec:
  selector:
    matchLabels: {{- include "gitops-runtime.selectorLabels" . | nindent 6 }}
  endpoints:
    - port: metrics
      path: /metrics
      interval: {{ $monitor.interval | quote }}
      scrapeTimeout: {{ $monitor.scrapeTimeout | quote }}
{{- end -}}
{{- end -}}

{{/* Besides: rules, in which PODS stands for the labels of its pods and REPLICAS for their number; pods, that number;
pattern, what follows "NAME-" in the names of pods. */}}
{{- define "gitops-runtime.prometheusRule" -}}
{{- if and .values.prometheusRule.enabled (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- $pods := printf "namespace=%q, pod=~\"%s-%s\"" .root.Release.Namespace .name .pattern -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.labels" (dict "root" .root "name" .name "labels" .values.prometheusRule.labels) | nindent 4 }}
spec:
  groups:
    - name: {{ .name }}
      rules:
        {{- .rules | replace "PODS" $pods | replace "REPLICAS" (.pods | int | toString) | nindent 8 }}
{{- end -}}
{{- end -}}

{{/* Mistakes in the values of a component. Besides: path, their key. */}}
{{- define "gitops-runtime.component.mistakes" -}}
{{- with .values }}
{{- if and (not .serviceAccount.create) (not .serviceAccount.name) }}
- {{ printf "%s.serviceAccount.name is required when serviceAccount.create is false" $.path | quote }}
{{- end }}
{{- if and .pdb.enabled (not .pdb.minAvailable) (not .pdb.maxUnavailable) }}
- {{ printf "%s.pdb: minAvailable or maxUnavailable is required when pdb.enabled is true" $.path | quote }}
{{- end }}
{{- include "gitops-runtime.env.mistakes" (dict "path" (printf "%s.env" $.path) "env" .env) }}
{{- end }}
{{- end -}}

{{/* What the values of a component ask for and the cluster cannot give, as a YAML list. Besides: path, their key. */}}
{{- define "gitops-runtime.component.remarks" -}}
{{- range $key, $kind := dict "serviceMonitor" "ServiceMonitor" "prometheusRule" "PrometheusRule" }}
{{- if and (index $.values $key).enabled (not ($.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}
- {{ printf "%s.%s: the cluster does not know the kind %s, none was created" $.path $key $kind | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
How argocd-server is reached, as JSON: host, port, protocol, rootpath, tls, auth. With argo-cd.enabled, in a package that
contains Argo CD, it is that one. global.external-argo-cd is the name that global.integrations.argo-cd had in older charts
(auth beside server there).
*/}}
{{- define "gitops-runtime.argocd" -}}
{{- $now := index .Values.global.integrations "argo-cd" -}}
{{- $old := (include "gitops-runtime.withoutNulls" (index .Values.global "external-argo-cd" | default dict) | fromJson).value -}}
{{- $server := mergeOverwrite (deepCopy $now.server) (deepCopy ($old.server | default dict)) -}}
{{- $auth := mergeOverwrite $server.auth (deepCopy ($old.auth | default dict)) -}}
{{- $chart := index .Values "argo-cd" -}}
{{- $tls := $server.tls -}}
{{- if $chart.enabled -}}
{{- $insecure := eq (index $chart.configs.params "server.insecure" | toString) "true" -}}
{{- $server = dict
  "svc" (printf "%s-%s" $chart.fullnameOverride $chart.server.name)
  "port" (ternary 80 443 $insecure)
  "protocol" (ternary "http" "https" $insecure)
  "rootpath" (index $chart.configs.params "server.rootpath") -}}
{{- end -}}
{{- $port := include "gitops-runtime.text" ($server.port | default "") -}}
{{- dict
  "host" ($server.svc | default "")
  "port" $port
  "protocol" ($server.protocol | default (ternary "https" "http" (eq $port "443")))
  "rootpath" ($server.rootpath | default "")
  "tls" $tls
  "auth" $auth
  | toJson -}}
{{- end -}}

{{/* The Service of argocd-server as its host names it; empty where that is a host outside the cluster. A host of two labels may be
either: the manifests, the chart and the operator of Argo CD have Services whose names end with "server". Argument: the root. */}}
{{- define "gitops-runtime.argocd.service" -}}
{{- $host := (include "gitops-runtime.argocd" . | fromJson).host -}}
{{- $service := include "gitops-runtime.serviceOf" (dict "root" . "url" (printf "http://%s" $host) "https" true) -}}
{{- if or (not (regexMatch "^[^.]+\\.[^.]+$" $service)) (regexMatch "^[^.]*server\\." $service) -}}
{{- $service -}}
{{- end -}}
{{- end -}}

{{/* The namespace of Argo CD: the variable of the Application reporter, or that of the Service, which is the release's unless the values
name another. Argument: the root. */}}
{{- define "gitops-runtime.argocd.namespace" -}}
{{- $reporter := include "gitops-runtime.event-reporters" . | fromJsonArray | first -}}
{{- $named := index $reporter.values.env "ARGOCD_NAMESPACE" -}}
{{- if and (kindIs "string" $named) $named -}}
{{- $named -}}
{{- else -}}
{{- regexReplaceAll "^[^.]+\\.?([^.]*).*$" (include "gitops-runtime.argocd.service" .) "${1}" | default .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Name and key, as JSON, of the Secret with the password of Argo CD; empty map: a token is used. */}}
{{- define "gitops-runtime.argocd.passwordSecret" -}}
{{- $auth := (include "gitops-runtime.argocd" . | fromJson).auth -}}
{{- if and (eq $auth.type "password") $auth.password -}}
{{- dict "name" "gitops-runtime-argo-cd-password" "key" "token" | toJson -}}
{{- else if and (eq $auth.type "password") $auth.passwordSecretKeyRef -}}
{{- pick $auth.passwordSecretKeyRef "name" "key" | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* Name and key, as JSON, of the Secret with the authority of argocd-server; empty map: public ones. Argument: the root. */}}
{{- define "gitops-runtime.argocd.caSecret" -}}
{{- $argocd := include "gitops-runtime.argocd" . | fromJson -}}
{{- $ref := $argocd.tls.caCerts.secretKeyRef | default dict -}}
{{- if and (eq $argocd.protocol "https") (not $argocd.tls.insecure) $ref.name -}}
{{- pick $ref "name" "key" | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* Name and key, as JSON, of the Secret with the token of Argo CD; empty map: a password is used. */}}
{{- define "gitops-runtime.argocd.tokenSecret" -}}
{{- $auth := (include "gitops-runtime.argocd" . | fromJson).auth -}}
{{- if include "gitops-runtime.argocd.passwordSecret" . | fromJson -}}
{}
{{- else if ne $auth.type "token" -}}
{{- dict "name" "argocd-token" "key" "token" | toJson -}}
{{- else if $auth.token -}}
{{- dict "name" "gitops-runtime-argo-cd-token" "key" "token" | toJson -}}
{{- else -}}
{{- pick $auth.tokenSecretKeyRef "name" "key" | toJson -}}
{{- end -}}
{{- end -}}

{{/* Name and key, as JSON, of the Secret with the control plane's CA bundle; empty map: the image's public CAs. */}}
{{- define "gitops-runtime.caSecret" -}}
{{- with .Values.global.codefresh.tls.caCerts -}}
{{- if .secretKeyRef.name -}}
{{- pick .secretKeyRef "name" "key" | toJson -}}
{{- else if .secret.create -}}
{{- dict "name" "codefresh-tls-certs" "key" .secret.key | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Is the runtime confined to the release's namespace? Yes if the user says so, and also where the values of Argo CD's
chart say that Applications live nowhere else.
*/}}
{{- define "gitops-runtime.namespaced" -}}
{{- $chart := index .Values "argo-cd" -}}
{{- $params := $chart.configs.params -}}
{{- $nowhereElse := and (hasKey $params "application.namespaces") (not (index $params "application.namespaces")) -}}
{{- if or .Values.global.runtime.singleNamespace $nowhereElse }}true{{ end -}}
{{- end -}}

{{/*
Every mistake in the values, as a YAML list; templates/validate.yaml reports them together. What the schema can say is
not repeated here.
*/}}
{{- define "gitops-runtime.mistakes" -}}
{{- $global := .Values.global -}}
{{- if not $global.runtime.name }}
- "global.runtime.name is required"
{{- end }}
{{- if not $global.codefresh.url }}
- "global.codefresh.url is required: the base URL of the control plane, as in https://gitops.example.com"
{{- end }}
{{- with $global.codefresh.tls.caCerts }}
{{- if and .secret.create (not .secretKeyRef) (not .secret.content) }}
- "global.codefresh.tls.caCerts.secret.content is required when secret.create is true"
{{- end }}
{{- end }}
{{- $argocd := include "gitops-runtime.argocd" . | fromJson }}
{{- $resources := index .Values "event-reporters" "cluster-event-reporter" }}
{{- if and (eq $resources.form "argo-events") $resources.managedClusters }}
- "event-reporters.cluster-event-reporter.managedClusters needs form native: EventSources watch their own cluster only"
{{- end }}
{{- if not $argocd.host }}
- "global.integrations.argo-cd.server.svc is not set: the Service of argocd-server, argocd-server in most installations"
{{- end }}
{{- if not $argocd.port }}
- "global.integrations.argo-cd.server.port is not set: the port of that Service, 443 in most installations"
{{- end }}
{{- range $key, $product := dict "argo-cd" "Argo CD" "argo-workflows" "Argo Workflows" "argo-rollouts" "Argo Rollouts" "argo-events" "Argo Events" "sealed-secrets" "Sealed Secrets" }}
{{- if and (dig $key "enabled" false $.Values.AsMap) (not (hasKey $.Subcharts $key)) }}
{{- $instead := "" }}
{{- if eq $key "argo-cd" }}
{{- $instead = ", and name the one that is there with global.integrations.argo-cd.server" }}
{{- else if eq $key "argo-workflows" }}
{{- $instead = "; internal-router.routing.workflows.enabled routes /workflows to the one that is there" }}
{{- end }}
- {{ printf "%s.enabled is true, but this package of the chart does not contain %s: take the package gitops-runtime-with-argo, or set it to false%s" $key $product $instead | quote }}
{{- end }}
{{- end }}
{{- include "gitops-runtime.besideArgo.mistakes" . }}
{{- with $argocd.auth }}
{{- if not (has .type (list "password" "token")) }}
- {{ printf "global.integrations.argo-cd.server.auth.type: invalid value %q, allowed values: [password token]" (.type | toString) | quote }}
{{- else if and (eq .type "token") (not .token) (not (and .tokenSecretKeyRef.name .tokenSecretKeyRef.key)) }}
- "global.integrations.argo-cd.server.auth: type token requires token, or tokenSecretKeyRef with name and key"
{{- end }}
{{- if and (eq .type "password") (or .password .passwordSecretKeyRef) (not .username) }}
- "global.integrations.argo-cd.server.auth.username is required with a password"
{{- end }}
{{- end }}
{{- include "gitops-runtime.formats.mistakes" . }}
{{- include "gitops-runtime.event-reporters.mistakes" . }}
{{- include "gitops-runtime.router.mistakes" . }}
{{- include "gitops-runtime.tunnel.mistakes" . }}
{{- include "gitops-runtime.tunnel-server.mistakes" . }}
{{- include "gitops-runtime.app-proxy.mistakes" . }}
{{- end -}}

{{/* What charts of Argo in the same package would misunderstand, since they read the same keys of global. Argument: the root. */}}
{{- define "gitops-runtime.besideArgo.mistakes" -}}
{{- range $key, $product := dict "argo-cd" "Argo CD" "argo-events" "Argo Events" }}
{{- if and (dig $key "enabled" false $.Values.AsMap) (hasKey $.Subcharts $key) }}
{{- if $.Values.global.image }}
- {{ printf "global.image: the chart of %s reads it, too, and would start this image in the place of its own; set image, which only this chart reads" $product | quote }}
{{- end }}
{{- range $.Values.global.imagePullSecrets }}
{{- if kindIs "string" . }}
- {{ printf "global.imagePullSecrets: the chart of %s reads it, too, and takes no names; write {name: %s}" $product . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Mistakes in an env map. Arguments: dict path, env. */}}
{{- define "gitops-runtime.env.mistakes" -}}
{{- $path := .path -}}
{{- range $name, $value := .env }}
{{- if kindIs "map" $value }}
{{- $from := $value.valueFrom }}
{{- if or (ne (len $value) 1) (not (kindIs "map" $from)) (ne (len ($from | default dict)) 1) (not (has (keys ($from | default dict) | first) (list "secretKeyRef" "configMapKeyRef" "fieldRef"))) }}
- {{ printf "%s.%s: a map must be valueFrom with one of secretKeyRef, configMapKeyRef, fieldRef" $path $name | quote }}
{{- end }}
{{- else if kindIs "slice" $value }}
- {{ printf "%s.%s must be a value or a map with valueFrom, not a list" $path $name | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
What the values hold that is not read or has a new name, and what is probably not meant, as a YAML list for NOTES.txt.
files/older-values.json names the keys of older charts.
*/}}
{{- define "gitops-runtime.remarks" -}}
{{- $values := .Values.AsMap -}}
{{- range $older := .Files.Get "files/older-values.json" | fromJsonArray }}
{{- $node := $values }}
{{- range $name := $older.path }}
{{- $node = ternary (index ($node | default dict) $name) nil (and (kindIs "map" $node) (hasKey ($node | default dict) $name)) }}
{{- end }}
{{- if not (kindIs "invalid" $node) }}
{{- $key := join "." $older.path }}
{{- if eq $older.state "renamed" }}
- {{ printf "%s: read for now; its new name is %s" $key $older.note | quote }}
{{- else }}
- {{ printf "%s: not read; %s" $key $older.note | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- include "gitops-runtime.global.remarks" . }}
{{- $ingress := .Values.global.runtime.ingress }}
{{- if and $ingress.enabled (eq $ingress.protocol "https") (not $ingress.tls) }}
- "global.runtime.ingress: protocol is https and tls is empty; the controller must have a default certificate that clients trust"
{{- end }}
{{- $image := include "gitops-runtime.imageValues" (dict "root" . "image" dict) | fromJson }}
{{- if not (or .Values.global.imageRegistry $image.registry (contains "/" $image.repository)) }}
- {{ printf "image: no registry is set, so the nodes look for %s in their default one; set image.registry and repository" (include "gitops-runtime.image" (dict "root" . "image" dict)) | quote }}
{{- end }}
{{- range $part := splitList ", " (index (.Chart.Annotations | default dict) "gitops-runtime/untested" | default "") }}
{{- if $part }}
- {{ printf "this package contains %s, with which nothing was tested" $part | quote }}
{{- end }}
{{- end }}
{{- if and (index .Values "argo-cd").enabled (or (index .Values.global "external-argo-cd") (ne (index .Values.global.integrations "argo-cd").server.svc "argocd-server")) }}
- "global.integrations.argo-cd.server: svc, port and rootpath are not read while argo-cd.enabled is true"
{{- end }}
{{- include "gitops-runtime.event-reporters.remarks" . }}
{{- include "gitops-runtime.router.remarks" . }}
{{- include "gitops-runtime.tunnel.remarks" . }}
{{- include "gitops-runtime.tunnel-server.remarks" . }}
{{- include "gitops-runtime.app-proxy.remarks" . }}
{{- end -}}

{{/* Keys of a ConfigMap that nothing reads: slips, as a rule. Those of older charts are named above. Arguments: dict root, path (of the
map in the values), config (the map), known. */}}
{{- define "gitops-runtime.config.remarks" -}}
{{- $known := .known -}}
{{- range $older := .root.Files.Get "files/older-values.json" | fromJsonArray -}}
{{- if eq (initial $older.path | join ".") $.path -}}
{{- $known = append $known (last $older.path) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := .config }}
{{- if not (or (has $key $known) (kindIs "invalid" $value)) }}
- {{ printf "%s: nothing reads the setting %q" $.path $key | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Keys of global that nothing reads: a slip, unless they belong to another chart, which there is then. Argument: the root. */}}
{{- define "gitops-runtime.global.remarks" -}}
{{- if not (or .Subcharts (include "gitops-runtime.isPart" .)) -}}
{{- $known := append (keys .Values._defaults.global) "image" -}}
{{- range .Files.Get "files/older-values.json" | fromJsonArray -}}
{{- if eq (first .path) "global" -}}
{{- $known = append $known (index .path 1) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := .Values.global }}
{{- if not (or (has $key $known) (kindIs "invalid" $value)) }}
- {{ printf "global.%s: not read; this chart has no such key" $key | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- $there := include "gitops-runtime.argocd.namespace" . }}
{{- if and (include "gitops-runtime.namespaced" .) (ne $there .Release.Namespace) }}
- {{ printf "global.integrations.argo-cd.server.svc: Argo CD is in namespace %s, whose Applications are not reported, since the runtime is confined to %s" $there .Release.Namespace | quote }}
{{- end }}
{{- $ca := include "gitops-runtime.argocd.caSecret" . | fromJson }}
{{- if eq ($ca.name | default "") "argocd-secret" }}
{{- if not (include "gitops-runtime.argocd.service" .) }}
- {{ printf "global.integrations.argo-cd.server.tls.caCerts: %s is no Service of the cluster, and Secret argocd-secret has the certificate that argocd-server makes for itself; name the Secret with the authority of that host, or give null for a public one" (include "gitops-runtime.argocd" . | fromJson).host | quote }}
{{- else if ne $there .Release.Namespace }}
- {{ printf "global.integrations.argo-cd.server.tls.caCerts: argocd-server is in namespace %s, and Secret argocd-secret is looked for in %s; copy its certificate there and name that Secret, or give null for a public one" $there .Release.Namespace | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The Secrets that the daemons read and that are not in the cluster, as a JSON array of name, key and what they are for. Empty
where nothing can be looked up. Argument: the root. */}}
{{- define "gitops-runtime.missingSecrets" -}}
{{- $missing := list -}}
{{- $wanted := list -}}
{{- $user := .Values.global.codefresh.userToken | default dict -}}
{{- with include "gitops-runtime.app-proxy.userToken" . | fromJson -}}
{{- if $user.secretKeyRef -}}
{{- $wanted = append $wanted (dict "name" .name "key" .key "what" "the user's token by which app-proxy registers the runtime; its pods wait for it") -}}
{{- end -}}
{{- else -}}
{{- $wanted = append $wanted (dict "name" "codefresh-token" "key" "token" "what" "the runtime's token for the control plane") -}}
{{- end -}}
{{- with include "gitops-runtime.argocd.tokenSecret" . | fromJson -}}
{{- if ne .name "gitops-runtime-argo-cd-token" -}}
{{- $wanted = append $wanted (dict "name" .name "key" .key "what" "an Argo CD API token that may get applications; docs/get-started/install.md says how to make it") -}}
{{- end -}}
{{- end -}}
{{- with include "gitops-runtime.argocd.passwordSecret" . | fromJson -}}
{{- if ne .name "gitops-runtime-argo-cd-password" -}}
{{- $wanted = append $wanted (dict "name" .name "key" .key "what" "the password of the account in Argo CD") -}}
{{- end -}}
{{- end -}}
{{- /* Every namespace has this ConfigMap: without it this is not a cluster but helm template. */ -}}
{{- if lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt" -}}
{{- range $wanted -}}
{{- if not (hasKey ((lookup "v1" "Secret" $.Release.Namespace .name).data | default dict) .key) -}}
{{- $missing = append $missing . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $missing | toJson -}}
{{- end -}}

{{/* Is there a pod for helm test? Argument: the root. */}}
{{- define "gitops-runtime.test.enabled" -}}
{{- if and .Values.test.enabled (include "gitops-runtime.argocd.tokenSecret" . | fromJson) }}true{{ end -}}
{{- end -}}

{{/* The daemons that the release contains, as a YAML list of name and version. */}}
{{- define "gitops-runtime.components" -}}
{{- $names := list -}}
{{- range include "gitops-runtime.event-reporters" . | fromJsonArray -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- $names = append $names (include "gitops-runtime.router" . | fromJson).name -}}
{{- if (index .Values "app-proxy").enabled -}}
{{- $names = append $names "cap-app-proxy" -}}
{{- end -}}
{{- if include "gitops-runtime.tunnel.enabled" . -}}
{{- $names = append $names "codefresh-tunnel-client" -}}
{{- end -}}
{{- if (index .Values "tunnel-server").enabled -}}
{{- $names = append $names "tunnel-server" -}}
{{- end -}}
{{- range $names }}
- {name: {{ . }}, version: {{ $.Chart.AppVersion | quote }}}
{{- end }}
{{- end -}}

{{/* What the reporters read of ConfigMap codefresh-cm. */}}
{{- define "gitops-runtime.codefresh-cm.reporterData" -}}
base-url: {{ .Values.global.codefresh.url | trimSuffix "/" | quote }}
version: {{ .Chart.Version | quote }}
{{- end -}}

{{/* What app-proxy reads of it, when it starts: the address and how it registers the runtime. */}}
{{- define "gitops-runtime.codefresh-cm.proxyData" -}}
{{- include "gitops-runtime.codefresh-cm.reporterData" . }}
cluster: {{ .Values.global.runtime.cluster | quote }}
isConfigurationRuntime: {{ .Values.global.runtime.isConfigurationRuntime | quote }}
{{- with include "gitops-runtime.ingressHost" . }}
ingressHost: {{ quote . }}
{{- end }}
{{- with .Values.global.runtime.ingress }}
{{- if .enabled }}
ingressClassName: {{ .className | default "" | quote }}
ingressController: {{ .className | default "" | quote }}
{{- end }}
{{- end }}
{{- end -}}
