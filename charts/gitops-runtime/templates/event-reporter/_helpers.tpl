{{/*
The values of the Application reporter, as JSON: global.event-reporters, over it what an older chart called
argo-cd.eventReporter or cf-argocd-extras.eventReporter, over it event-reporters.runtime-event-reporter.
*/}}
{{- define "gitops-runtime.event-reporter.values" -}}
{{- $values := deepCopy (index .Values.global "event-reporters") -}}
{{- range tuple "argo-cd" "cf-argocd-extras" -}}
{{- $old := (index $.Values . | default dict).eventReporter | default dict -}}
{{- $values = mergeOverwrite $values (deepCopy (pick $old "resources" "nodeSelector" "tolerations" "affinity")) -}}
{{- if hasKey $old "replicas" -}}
{{- $_ := set $values "replicaCount" $old.replicas -}}
{{- end -}}
{{- end -}}
{{- $own := index .Values "event-reporters" | default dict -}}
{{- mergeOverwrite $values (deepCopy (index $own "runtime-event-reporter" | default dict)) | toJson -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.labels" -}}
{{- include "gitops-runtime.labels" (dict "root" . "name" "event-reporter") -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.selectorLabels" -}}
{{- include "gitops-runtime.selectorLabels" (dict "root" . "name" "event-reporter") -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.serviceAccountName" -}}
{{- (include "gitops-runtime.event-reporter.values" . | fromJson).serviceAccount.name | default "event-reporter" -}}
{{- end -}}

{{/* The ClusterRole is named after the namespace as well: two runtimes of one cluster must not share it. */}}
{{- define "gitops-runtime.event-reporter.clusterRoleName" -}}
{{- printf "%s-event-reporter" .Release.Namespace -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.config" -}}
{{- $argocd := include "gitops-runtime.argocd" . | fromJson -}}
{{- $scheme := ternary "https://" "" (eq $argocd.protocol "https") -}}
{{- $computed := dict "argocd.server" (printf "%s%s:%s" $scheme $argocd.host $argocd.port) -}}
{{- with $argocd.rootpath -}}
{{- $_ := set $computed "argocd.server.rootpath" . -}}
{{- end -}}
{{- mergeOverwrite $computed (include "gitops-runtime.event-reporter.values" . | fromJson).config | toJson -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.env" -}}
{{- $values := include "gitops-runtime.event-reporter.values" . | fromJson -}}
{{- $token := include "gitops-runtime.argocd.tokenSecret" . | fromJson -}}
{{- $env := dict
  "REPORTER_MODE" "app"
  "EVENT_REPORTER_REPLICAS" $values.replicaCount
  "LEDGER_FILE" "/var/lib/event-reporter/ledger.db"
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub ($values.terminationGracePeriodSeconds | int) 10)))
  "ARGO_CD_TOKEN_SECRET_NAME" $token.name
  "ARGO_CD_TOKEN_SECRET_KEY" $token.key
  "POD_NAME" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name")))
  "POD_NAMESPACE" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  "CODEFRESH_TOKEN" (dict "valueFrom" (dict "secretKeyRef" (dict "name" "codefresh-token" "key" "token" "optional" false)))
  "CODEFRESH_URL" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "base-url")))
  "RUNTIME_VERSION" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "version")))
-}}
{{- $settings := dict
  "APP_QUEUE_SIZE" "app.queue.size"
  "MAX_APP_RETRIES" "max.app.retries"
  "THREADINESS" "threadiness"
  "RESOURCE_THREADINESS" "resource.threadiness"
  "ARGOCD_SERVER" "argocd.server"
  "ARGOCD_SERVER_ROOTPATH" "argocd.server.rootpath"
  "CODEFRESH_TLS_INSECURE" "codefresh.tls.insecure"
  "HEARTBEAT_INTERVAL" "heartbeat.interval"
  "SWEEP_INTERVAL" "sweep.interval"
  "EVENT_REPORTER_RESEND_ON_REVISION" "resend.on.revision"
  "LISTEN_ADDRESS" "listen.address"
  "METRICS_LISTEN_ADDRESS" "metrics.listen.address"
  "LOG_LEVEL" "log.level"
  "LOG_FORMAT" "log.format"
-}}
{{- range $name, $key := $settings -}}
{{- $ref := dict "name" "event-reporter-cmd-params-cm" "key" $key "optional" true -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- end -}}
{{- if not (include "gitops-runtime.namespaced" .) -}}
{{- $ref := dict "name" "argocd-cmd-params-cm" "key" "application.namespaces" "optional" true -}}
{{- $_ := set $env "ARGOCD_APPLICATION_NAMESPACES" (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- end -}}
{{- $tls := (include "gitops-runtime.argocd" . | fromJson).tls -}}
{{- if $tls.insecure -}}
{{- $_ := set $env "ARGOCD_INSECURE" true -}}
{{- end -}}
{{- with $tls.caCerts.secretKeyRef -}}
{{- $_ := set $env "ARGOCD_CA_FILE" (printf "/app/config/argo-cd-tls-certs/%s" .key) -}}
{{- end -}}
{{- with include "gitops-runtime.caSecret" . | fromJson -}}
{{- $_ := set $env "CODEFRESH_SSL_CERT_PATH" (printf "/app/config/codefresh-tls-certs/%s" .key) -}}
{{- end -}}
{{- range $name, $value := dict "HTTP_PROXY" .Values.global.httpProxy "HTTPS_PROXY" .Values.global.httpsProxy "NO_PROXY" .Values.global.noProxy -}}
{{- if $value -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $values.env -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "gitops-runtime.env" $env -}}
{{- end -}}

{{- define "gitops-runtime.event-reporter.mistakes" -}}
{{- $values := include "gitops-runtime.event-reporter.values" . | fromJson -}}
{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) }}
- "global.event-reporters.serviceAccount.name is required when serviceAccount.create is false"
{{- end }}
{{- if and $values.pdb.enabled (not $values.pdb.minAvailable) (not $values.pdb.maxUnavailable) }}
- "global.event-reporters.pdb: minAvailable or maxUnavailable is required when pdb.enabled is true"
{{- end }}
{{- include "gitops-runtime.env.mistakes" (dict "path" "global.event-reporters.env" "env" $values.env) }}
{{- end -}}

{{/* Keys that a values file of the older chart may carry for a reporter and that do nothing here. */}}
{{- define "gitops-runtime.event-reporter.remarks" -}}
{{- $known := list "replicaCount" "image" "imagePullSecrets" "command" "extraArgs" "config" "env" "serviceAccount" "service" "resources" "startupProbe" "readinessProbe" "livenessProbe" "persistence" "terminationGracePeriodSeconds" "podAnnotations" "podLabels" "podSecurityContext" "securityContext" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "extraVolumes" "extraVolumeMounts" "pdb" "serviceMonitor" "prometheusRule" "dashboard" -}}
{{- $values := include "gitops-runtime.event-reporter.values" . | fromJson -}}
{{- range $key := keys $values | sortAlpha }}
{{- if not (has $key $known) }}
- {{ printf "event-reporters, %s: nothing in this version of the chart reads it" $key | quote }}
{{- end }}
{{- end }}
{{- range $key, $kind := dict "serviceMonitor" "ServiceMonitor" "prometheusRule" "PrometheusRule" }}
{{- if and (index $values $key).enabled (not ($.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}
- {{ printf "event-reporters, %s: the cluster does not know the kind %s, none was created" $key $kind | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "gitops-runtime.event-reporter.subjects" -}}
- kind: ServiceAccount
  name: {{ include "gitops-runtime.event-reporter.serviceAccountName" . | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}

{{/* The labels of an object for monitoring: the user's, but for those that the chart sets. Arguments: dict root, labels. */}}
{{- define "gitops-runtime.event-reporter.monitoringLabels" -}}
{{- with omit .labels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/part-of" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{- include "gitops-runtime.strings" . }}
{{ end }}
{{- include "gitops-runtime.event-reporter.labels" .root -}}
{{- end -}}

{{/*
The volume of the ledger belongs to a group that the image's user is made a member of. OpenShift refuses groups that it
did not choose, and chooses one itself.
*/}}
{{- define "gitops-runtime.event-reporter.podSecurityContext" -}}
{{- $context := (include "gitops-runtime.event-reporter.values" . | fromJson).podSecurityContext | default dict -}}
{{- if not (or (hasKey $context "fsGroup") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
{{- $context = merge (dict "fsGroup" 65532 "fsGroupChangePolicy" "OnRootMismatch") $context -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}
