{{/*
The event-reporters, as a JSON array: each with its name, which is also the key of its own values, its mode, and its values:
global.event-reporters, over it for mode app what an older chart called argo-cd.eventReporter or
cf-argocd-extras.eventReporter, over it its own.
*/}}
{{- define "gitops-runtime.event-reporters" -}}
{{- $all := list -}}
{{- range $reporter := list
  (dict "name" "runtime-event-reporter" "mode" "app" "key" "runtime-event-reporter")
  (dict "name" "cluster-event-reporter" "mode" "resource" "key" "cluster-event-reporter") -}}
{{- $values := deepCopy (index $.Values.global "event-reporters") -}}
{{- if eq $reporter.mode "app" -}}
{{- range tuple "argo-cd" "cf-argocd-extras" -}}
{{- $old := (index $.Values . | default dict).eventReporter | default dict -}}
{{- $values = mergeOverwrite $values (deepCopy (pick $old "resources" "nodeSelector" "tolerations" "affinity")) -}}
{{- if hasKey $old "replicas" -}}
{{- $_ := set $values "replicaCount" $old.replicas -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $own := index (index $.Values "event-reporters" | default dict) $reporter.key | default dict -}}
{{- $values = mergeOverwrite $values (deepCopy $own) -}}
{{- include "gitops-runtime.complete" (dict "values" $values "defaults" (index $.Values._defaults.global "event-reporters")) -}}
{{- if or (eq $reporter.mode "app") (and (dig "enabled" true $values) (not (include "gitops-runtime.argo-events" $))) -}}
{{- $all = append $all (set $reporter "values" $values) -}}
{{- end -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}

{{/* Do EventSources and Sensors of Argo Events take the place of cluster-event-reporter? Argument: the root. */}}
{{- define "gitops-runtime.argo-events" -}}
{{- $own := index .Values "event-reporters" "cluster-event-reporter" -}}
{{- if and $own.enabled (eq $own.form "argo-events") -}}
true
{{- end -}}
{{- end -}}

{{/* Argument of the templates below, but where another is named: one of the above, and root in it. */}}

{{/* The ClusterRole is named after the namespace as well: two runtimes of one cluster must not share it. */}}
{{- define "gitops-runtime.event-reporter.clusterRoleName" -}}
{{- printf "%s-%s" .root.Release.Namespace .name -}}
{{- end -}}

{{/* Is the reporter confined to the release's namespace? Where Applications live says nothing about Rollouts. */}}
{{- define "gitops-runtime.event-reporter.namespaced" -}}
{{- if eq .mode "app" -}}
{{- include "gitops-runtime.namespaced" .root -}}
{{- else if .root.Values.global.runtime.singleNamespace -}}
true
{{- end -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.config" -}}
{{- $computed := dict -}}
{{- if eq .mode "app" -}}
{{- $argocd := include "gitops-runtime.argocd" .root | fromJson -}}
{{- $scheme := ternary "https://" "" (eq $argocd.protocol "https") -}}
{{- $_ := set $computed "argocd.server" (printf "%s%s:%s" $scheme $argocd.host $argocd.port) -}}
{{- with $argocd.rootpath -}}
{{- $_ := set $computed "argocd.server.rootpath" . -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite $computed .values.config | toJson -}}
{{- end -}}

{{/* The keys of its ConfigMap, by the variable that each becomes, as JSON. Of the argument only mode is read. */}}
{{- define "gitops-runtime.event-reporter.settings" -}}
{{- $settings := dict
  "APP_QUEUE_SIZE" "app.queue.size"
  "MAX_APP_RETRIES" "max.app.retries"
  "THREADINESS" "threadiness"
  "RESOURCE_THREADINESS" "resource.threadiness"
  "CODEFRESH_TLS_INSECURE" "codefresh.tls.insecure"
  "HEARTBEAT_INTERVAL" "heartbeat.interval"
  "RECONCILE_INTERVAL" "reconcile.interval"
  "LISTEN_ADDRESS" "listen.address"
  "METRICS_LISTEN_ADDRESS" "metrics.listen.address"
  "LOG_LEVEL" "log.level"
  "LOG_FORMAT" "log.format"
-}}
{{- if eq .mode "app" -}}
{{- $settings = merge $settings (dict
  "ARGOCD_SERVER" "argocd.server"
  "ARGOCD_SERVER_ROOTPATH" "argocd.server.rootpath"
  "SWEEP_INTERVAL" "sweep.interval"
  "EVENT_REPORTER_RESEND_ON_REVISION" "resend.on.revision") -}}
{{- else -}}
{{- $settings = merge $settings (dict
  "REPORT_KINDS" "report.kinds"
  "REPORT_ALL_REPLICASETS" "report.all.replicasets"
  "WORKFLOW_NAMESPACES" "workflow.namespaces") -}}
{{- end -}}
{{- $settings | toJson -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.env" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $env := dict
  "REPORTER_MODE" .mode
  "EVENT_REPORTER_REPLICAS" $values.replicaCount
  "LEDGER_FILE" "/var/lib/event-reporter/ledger.db"
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub ($values.terminationGracePeriodSeconds | int) 10)))
  "POD_NAME" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name")))
  "POD_NAMESPACE" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  "CODEFRESH_URL" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "base-url")))
  "RUNTIME_VERSION" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "version")))
-}}
{{- if eq .mode "app" -}}
{{- $env = merge $env (include "gitops-runtime.event-reporter.argocdEnv" . | fromJson) -}}
{{- if include "gitops-runtime.sourceFiles" $root -}}
{{- $_ := set $env "APP_PROXY_URL" (printf "http://cap-app-proxy:%d" ((index $root.Values "app-proxy").service.port | int)) -}}
{{- end -}}
{{- else -}}
{{- $env = merge $env (dict
  "IS_NAMESPACED_RUNTIME" (ne (include "gitops-runtime.event-reporter.namespaced" .) "" | toString)
  "REPORT_MANAGED_CLUSTERS" (dig "managedClusters" false $values | toString)) -}}
{{- if and $values.managedClusters $values.clusterSecrets -}}
{{- $_ := set $env "CLUSTER_SECRETS" (join "," $values.clusterSecrets) -}}
{{- end -}}
{{- end -}}
{{- $configMap := printf "%s-cmd-params-cm" .name -}}
{{- range $name, $key := include "gitops-runtime.event-reporter.settings" . | fromJson -}}
{{- $ref := dict "name" $configMap "key" $key "optional" true -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- end -}}
{{- with include "gitops-runtime.caSecret" $root | fromJson -}}
{{- $_ := set $env "CODEFRESH_SSL_CERT_PATH" (printf "/app/config/codefresh-tls-certs/%s" .key) -}}
{{- end -}}
{{- range $name, $value := include "gitops-runtime.proxyEnv" (dict "root" $root "env" $values.env) | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- range $name, $value := include "gitops-runtime.tracingEnv" $root | fromJson -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- range $name, $value := $values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "gitops-runtime.env" $env -}}
{{- end -}}

{{/* As JSON, what only mode app needs: which Applications there are, and how argocd-server is entered. */}}
{{- define "gitops-runtime.event-reporter.argocdEnv" -}}
{{- $argocd := include "gitops-runtime.argocd" .root | fromJson -}}
{{- $env := dict -}}
{{- if not (include "gitops-runtime.event-reporter.namespaced" .) -}}
{{- $there := include "gitops-runtime.argocd.namespace" .root -}}
{{- $ref := dict "name" "argocd-cmd-params-cm" "key" "application.namespaces" "optional" true -}}
{{- $_ := set $env "ARGOCD_APPLICATION_NAMESPACES" (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- if ne $there .root.Release.Namespace -}}
{{- /* A ConfigMap of another namespace cannot be named. app-proxy has Applications in this one. */ -}}
{{- $_ := set $env "ARGOCD_NAMESPACE" $there -}}
{{- $_ := set $env "ARGOCD_APPLICATION_NAMESPACES" .root.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- with include "gitops-runtime.argocd.tokenSecret" .root | fromJson -}}
{{- $_ := set $env "ARGO_CD_TOKEN_SECRET_NAME" .name -}}
{{- $_ := set $env "ARGO_CD_TOKEN_SECRET_KEY" .key -}}
{{- end -}}
{{- with include "gitops-runtime.argocd.passwordSecret" .root | fromJson -}}
{{- $_ := set $env "ARGO_CD_USERNAME" $argocd.auth.username -}}
{{- end -}}
{{- if $argocd.tls.insecure -}}
{{- $_ := set $env "ARGOCD_INSECURE" true -}}
{{- end -}}
{{- with include "gitops-runtime.argocd.caSecret" .root | fromJson -}}
{{- $_ := set $env "ARGOCD_CA_FILE" (printf "/app/config/argo-cd-tls-certs/%s" .key) -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.event-reporters.mistakes" -}}
{{- range $reporter := include "gitops-runtime.event-reporters" . | fromJsonArray -}}
{{- $path := printf "event-reporters.%s" $reporter.key }}
{{- include "gitops-runtime.component.mistakes" (dict "path" $path "values" $reporter.values) }}
{{- if and (eq $reporter.mode "resource") $.Values.global.runtime.singleNamespace (index $reporter.values.config "workflow.namespaces") }}
- {{ printf "%s.config: workflow.namespaces contradicts global.runtime.singleNamespace" $path | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.event-reporters.remarks" -}}
{{- $lines := list -}}
{{- range $reporter := include "gitops-runtime.event-reporters" . | fromJsonArray -}}
{{- $lines = concat $lines (include "gitops-runtime.component.remarks" (merge (dict "root" $ "path" "event-reporters") $reporter) | fromYamlArray) -}}
{{- end -}}
{{- $there := include "gitops-runtime.argocd.namespace" . -}}
{{- if and (index .Values "event-reporters" "cluster-event-reporter").managedClusters (ne $there .Release.Namespace) -}}
{{- $lines = append $lines (printf "event-reporters.cluster-event-reporter.managedClusters: no cluster is found, since the reporter looks for Argo CD's Secrets in %s, and Argo CD is in %s" .Release.Namespace $there) -}}
{{- end -}}
{{- $all := list -}}
{{- range $name, $mode := dict "runtime-event-reporter" "app" "cluster-event-reporter" "resource" -}}
{{- $known := include "gitops-runtime.event-reporter.settings" (dict "mode" $mode) | fromJson | values -}}
{{- $all = concat $all $known -}}
{{- $own := index $.Values "event-reporters" $name | default dict -}}
{{- $lines = concat $lines (include "gitops-runtime.config.remarks" (dict "root" $ "path" (printf "event-reporters.%s.config" $name) "config" (index $own "config") "known" $known) | fromYamlArray) -}}
{{- end -}}
{{- $shared := index .Values.global "event-reporters" -}}
{{- $lines = concat $lines (include "gitops-runtime.config.remarks" (dict "root" $ "path" "global.event-reporters.config" "config" $shared.config "known" $all) | fromYamlArray) -}}
{{- range uniq $lines }}
- {{ quote . }}
{{- end }}
{{- end -}}

{{- define "gitops-runtime.event-reporter.subjects" -}}
- kind: ServiceAccount
  name: {{ include "gitops-runtime.serviceAccountName" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
{{- end -}}

{{/* The ServiceMonitor of a reporter scrapes each pod by this Service, also those that are not ready. */}}
{{- define "gitops-runtime.event-reporter.podsService" -}}
{{ .name }}-pods
{{- end -}}

{{/*
The volume of the ledger belongs to a group that the image's user is made a member of. OpenShift refuses groups that it
did not choose, and chooses one itself.
*/}}
{{- define "gitops-runtime.event-reporter.podSecurityContext" -}}
{{- $context := .values.podSecurityContext | default dict -}}
{{- if not (or (hasKey $context "fsGroup") (.root.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $context = merge (dict "fsGroup" 65532 "fsGroupChangePolicy" "OnRootMismatch") $context -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}
