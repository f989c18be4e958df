{{/*
app-proxy as a component, in JSON. Its objects, labels and values have the names that they had in the older chart.
*/}}
{{- define "gitops-runtime.app-proxy" -}}
{{- dict "name" "cap-app-proxy" "values" (index .Values "app-proxy") | toJson -}}
{{- end -}}

{{/* By these labels the older chart found its pods; a Deployment's selector cannot be changed. */}}
{{- define "gitops-runtime.app-proxy.selectorLabels" -}}
app: cap-app-proxy
{{- end -}}

{{/* Does the Application reporter ask app-proxy for files in Git? Argument: the root. */}}
{{- define "gitops-runtime.sourceFiles" -}}
{{- $proxy := index .Values "app-proxy" -}}
{{- if and $proxy.enabled $proxy.sourceFiles.enabled -}}
true
{{- end -}}
{{- end -}}

{{/* The origins of web pages that may ask app-proxy and read the router's own answers, comma separated. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.cors" -}}
{{- (index .Values "app-proxy").config.cors | default (regexReplaceAll "^(https?://[^/]*).*$" .Values.global.codefresh.url "${1}") -}}
{{- end -}}

{{/* What runs the Workflows that report images, as a component, in JSON: a ServiceAccount with its Role. {} where they are not
wanted. Argument: the root. */}}
{{- define "gitops-runtime.image-reports" -}}
{{- $proxy := index .Values "app-proxy" -}}
{{- $reports := index $proxy "image-enrichment" -}}
{{- ternary (dict "name" "cap-app-proxy-enrichment" "values" $reports) dict (and $proxy.enabled $reports.enabled) | toJson -}}
{{- end -}}

{{/* The keys of ConfigMap cap-app-proxy-cm about reports of images, by the variable that each becomes, as JSON; {} where they are
not wanted. Argument: the root. */}}
{{- define "gitops-runtime.image-reports.keys" -}}
{{- $keys := dict -}}
{{- if include "gitops-runtime.image-reports" . | fromJson -}}
{{- $keys = dict
  "IRW_SERVICE_ACCOUNT" "enrichmentServiceAccountName"
  "IRW_CONCURRENCY_CM_NAME" "enrichmentConcurrencyCmName"
  "IRW_CONCURRENCY_CM_KEY" "enrichmentConcurrencyCmKey"
  "IRW_POD_GC_STRATEGY" "enrichmentPodGcStrategy"
  "IRW_TTL_AFTER_COMPLETION_IN_SECONDS" "enrichmentTtlAfterCompletionInSeconds"
  "IRW_TTL_ACTIVE_IN_SECONDS" "enrichmentTtlActiveInSeconds"
  "IRW_HEARTBEAT_INTERVAL_IN_SECONDS" "enrichmentClientHeartbeatIntervalInSeconds"
  "IRW_REPORT_IMAGE_TASK_IMAGE" "enrichmentImageReportingImage"
  "IRW_GIT_ENRICHMENT_TASK_IMAGE" "enrichmentGitEnrichmentImage"
  "IRW_JIRA_ENRICHMENT_TASK_IMAGE" "enrichmentJiraEnrichmentImage" -}}
{{- end -}}
{{- $keys | toJson -}}
{{- end -}}

{{/* Their values, by key, as JSON. Argument: the root. */}}
{{- define "gitops-runtime.image-reports.data" -}}
{{- $data := dict -}}
{{- with include "gitops-runtime.image-reports" . | fromJson -}}
{{- $config := .values.config -}}
{{- $data = dict
  "enrichmentServiceAccountName" .values.serviceAccount.name
  "enrichmentConcurrencyCmName" $config.concurrencyCmName
  "enrichmentConcurrencyCmKey" $config.concurrencyCmKey
  "enrichmentPodGcStrategy" $config.podGcStrategy
  "enrichmentTtlAfterCompletionInSeconds" $config.ttlAfterCompletionInSeconds
  "enrichmentTtlActiveInSeconds" $config.ttlActiveInSeconds
  "enrichmentClientHeartbeatIntervalInSeconds" $config.clientHeartbeatIntervalInSeconds -}}
{{- range $key, $name := dict "enrichmentImageReportingImage" "reportImage" "enrichmentGitEnrichmentImage" "gitEnrichment" "enrichmentJiraEnrichmentImage" "jiraEnrichment" -}}
{{- $image := index $config.images $name -}}
{{- $version := printf ":%v" $image.tag -}}
{{- with $image.digest -}}
{{- $version = printf "@%s" . -}}
{{- end -}}
{{- $registry := $.Values.global.imageRegistry | default $image.registry | default "" | trimSuffix "/" -}}
{{- $_ := set $data $key (printf "%s/%s%s" $registry $image.repository $version | trimPrefix "/") -}}
{{- end -}}
{{- end -}}
{{- $data | toJson -}}
{{- end -}}

{{/* The data of ConfigMap cap-app-proxy-cm: what is computed, and config over it. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.data" -}}
{{- $data := dict "runtimeName" .Values.global.runtime.name "logLevel" "info" "skipGitPermissionValidation" false -}}
{{- $data = merge $data (include "gitops-runtime.image-reports.data" . | fromJson) -}}
{{- range $key, $value := (index .Values "app-proxy").config -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $data $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $data "cors" (include "gitops-runtime.app-proxy.cors" .) -}}
{{- include "gitops-runtime.strings" $data -}}
{{- end -}}

{{/* The keys of that ConfigMap by the variable that each becomes, but those about reports of images, as JSON. */}}
{{- define "gitops-runtime.app-proxy.settings" -}}
{{- dict "CORS" "cors" "LOG_LEVEL" "logLevel" "RUNTIME_NAME" "runtimeName" "SKIP_PERMISSIONS_VALIDATION" "skipGitPermissionValidation" "CLUSTER_CHUNK_SIZE" "clusterChunkSize" "GRAPHQL_PLAYGROUND" "graphqlPlayground" | toJson -}}
{{- end -}}

{{/* Where the clones of Git repositories lie. */}}
{{- define "gitops-runtime.app-proxy.reposDir" -}}
/var/lib/app-proxy/repos
{{- end -}}

{{/* The Secret with the runtime's Git token as {name, key}, in JSON; {} without a token. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.gitPassword" -}}
{{- $password := .Values.global.runtime.gitCredentials.password -}}
{{- $secret := dict -}}
{{- if $password.secretKeyRef -}}
{{- $secret = dict "name" $password.secretKeyRef.name "key" ($password.secretKeyRef.key | default "password") -}}
{{- else if $password.value -}}
{{- $secret = dict "name" (printf "%s-git-password" .Values.global.runtime.name) "key" "password" -}}
{{- end -}}
{{- $secret | toJson -}}
{{- end -}}

{{/* The Secret with the user's token that registers the runtime as {name, key, optional}, in JSON; {} without a token, and without
app-proxy. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.userToken" -}}
{{- $user := .Values.global.codefresh.userToken | default dict -}}
{{- $secret := dict -}}
{{- if (index .Values "app-proxy").enabled -}}
{{- if $user.secretKeyRef -}}
{{- $secret = dict "name" $user.secretKeyRef.name "key" $user.secretKeyRef.key "optional" ($user.secretKeyRef.optional | default false) -}}
{{- else if $user.token -}}
{{- $secret = dict "name" "codefresh-user-token" "key" "token" "optional" false -}}
{{- end -}}
{{- end -}}
{{- $secret | toJson -}}
{{- end -}}

{{/* What is told at the registration, as JSON; without a user's token only the address, to which Git hosts send browsers back after a login.
     Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.registrationEnv" -}}
{{- $env := dict "INGRESS_HOST" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "ingressHost" "optional" true))) -}}
{{- if include "gitops-runtime.app-proxy.userToken" . | fromJson -}}
{{- $_ := set $env "CHART_VERSION" .Chart.Version -}}
{{- $_ := set $env "INSTALLATION_TYPE" "HELM" -}}
{{- $_ := set $env "IS_EXTERNAL_ARGOCD" (not (index .Values "argo-cd").enabled) -}}
{{- range $name, $key := dict "RUNTIME_VERSION" "version" "CLUSTER" "cluster" "INGRESS_CLASS_NAME" "ingressClassName" "INGRESS_CONTROLLER" "ingressController" -}}
{{- $ref := dict "name" "codefresh-cm" "key" $key -}}
{{- if hasPrefix "ingress" $key -}}
{{- $_ := set $ref "optional" true -}}
{{- end -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- end -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* Authorities of Git hosts, by host, as JSON: those that Argo CD's chart got, and the runtime's own over them. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.gitCertificates" -}}
{{- $own := .Values.global.codefresh.tls.workflowPipelinesGitWebhooks.certificates | default dict -}}
{{- $argocd := dig "configs" "tls" "certificates" dict (index .Values "argo-cd") | default dict -}}
{{- mergeOverwrite (deepCopy $argocd) $own | toJson -}}
{{- end -}}

{{/* The sources of the volume with all authorities besides public ones, as JSON. That of Argo CD is optional: where Argo CD serves no
TLS, or lives in another namespace, its Secret has no such key or is not there. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.authorities" -}}
{{- $sources := list -}}
{{- with include "gitops-runtime.caSecret" . | fromJson -}}
{{- $sources = append $sources (dict "secret" (dict "name" .name "items" (list (dict "key" .key "path" "control-plane.pem")))) -}}
{{- end -}}
{{- if (index .Values "app-proxy").actions.enabled -}}
{{- with include "gitops-runtime.argocd.caSecret" . | fromJson -}}
{{- $sources = append $sources (dict "secret" (dict "name" .name "optional" true "items" (list (dict "key" .key "path" "argo-cd.pem")))) -}}
{{- end -}}
{{- end -}}
{{- if include "gitops-runtime.app-proxy.gitCertificates" . | fromJson -}}
{{- $sources = append $sources (dict "secret" (dict "name" "codefresh-workflow-pipelines-tls")) -}}
{{- end -}}
{{- $sources | toJson -}}
{{- end -}}

{{/* How the servers of the Argo projects are reached, as JSON. Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.argoEnv" -}}
{{- $argocd := include "gitops-runtime.argocd" . | fromJson -}}
{{- $env := dict "ARGO_CD_URL" (printf "%s://%s:%s%s" $argocd.protocol $argocd.host $argocd.port (ternary (printf "/%s" (trimAll "/" $argocd.rootpath)) "" (ne (trimAll "/" $argocd.rootpath) ""))) -}}
{{- with include "gitops-runtime.argocd.passwordSecret" . | fromJson -}}
{{- $_ := set $env "ARGO_CD_USERNAME" $argocd.auth.username -}}
{{- end -}}
{{- if $argocd.tls.insecure -}}
{{- $_ := set $env "ARGO_CD_INSECURE" true -}}
{{- end -}}
{{- with include "gitops-runtime.router.workflowsUrl" . -}}
{{- $_ := set $env "ARGO_WORKFLOWS_URL" . -}}
{{- end -}}
{{- $env | toJson -}}
{{- end -}}

{{/* Argument: the component. Of the time until the kill a sixth, at most five seconds, passes until no new request is sent
to the pod, and five seconds are left in the end. */}}
{{- define "gitops-runtime.app-proxy.env" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $grace := $values.terminationGracePeriodSeconds | int -}}
{{- $delay := min 5 (div $grace 6) -}}
{{- $env := dict
  "CF_HOST" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "base-url")))
  "REPOS_DIR" (include "gitops-runtime.app-proxy.reposDir" .)
  "NAMESPACE" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  "DRAIN_DELAY" (printf "%ds" $delay)
  "DRAIN_TIMEOUT" (printf "%ds" (max 1 (sub $grace (add $delay 5))))
-}}
{{- range $name, $key := include "gitops-runtime.app-proxy.settings" . | fromJson -}}
{{- $ref := dict "name" "cap-app-proxy-cm" "key" $key -}}
{{- if has $key (list "clusterChunkSize" "graphqlPlayground") -}}
{{- $_ := set $ref "optional" true -}}
{{- end -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "configMapKeyRef" $ref)) -}}
{{- end -}}
{{- range $name, $key := include "gitops-runtime.image-reports.keys" $root | fromJson -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "cap-app-proxy-cm" "key" $key))) -}}
{{- end -}}
{{- if include "gitops-runtime.app-proxy.gitPassword" $root | fromJson -}}
{{- $_ := set $env "GIT_USERNAME" $root.Values.global.runtime.gitCredentials.username -}}
{{- end -}}
{{- $_ := set $env "IS_CONFIGURATION_RUNTIME" (dict "valueFrom" (dict "configMapKeyRef" (dict "name" "codefresh-cm" "key" "isConfigurationRuntime"))) -}}
{{- $env = merge $env (include "gitops-runtime.app-proxy.registrationEnv" $root | fromJson) -}}
{{- with $values.trustedProxies -}}
{{- $_ := set $env "TRUSTED_PROXIES" (join "," .) -}}
{{- end -}}
{{- if include "gitops-runtime.app-proxy.authorities" $root | fromJsonArray -}}
{{- $_ := set $env "NODE_EXTRA_CA_CERTS" "/app/config/all" -}}
{{- end -}}
{{- if $values.actions.enabled -}}
{{- $env = merge $env (include "gitops-runtime.app-proxy.argoEnv" $root | fromJson) -}}
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

{{/* Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.mistakes" -}}
{{- if eq "codefresh-token" (dig "password" "secretKeyRef" "name" "" .Values.global.runtime.gitCredentials | toString) }}
- "global.runtime.gitCredentials.password.secretKeyRef.name: codefresh-token is the Secret that app-proxy makes for the runtime's own token; put the Git token into another one"
{{- end }}
{{- with .Values.global.codefresh.userToken.secretKeyRef }}
{{- if eq (.name | default "") "codefresh-token" }}
- "global.codefresh.userToken.secretKeyRef.name: codefresh-token is the Secret that app-proxy makes for the runtime's own token; put the user's token into another one"
{{- end }}
{{- end }}
{{- if (index .Values "app-proxy").enabled }}
{{- $proxy := include "gitops-runtime.app-proxy" . | fromJson }}
{{- include "gitops-runtime.component.mistakes" (set $proxy "path" "app-proxy") }}
{{- end }}
{{- end -}}

{{/* Argument: the root. */}}
{{- define "gitops-runtime.app-proxy.remarks" -}}
{{- $proxy := include "gitops-runtime.app-proxy" . | fromJson }}
{{- $values := $proxy.values }}
{{- if $values.enabled }}
{{- include "gitops-runtime.component.remarks" (merge (dict "root" . "path" "app-proxy") $proxy) }}
{{- $known := list }}
{{- range list "gitops-runtime.app-proxy.settings" "gitops-runtime.image-reports.keys" }}
{{- $known = concat $known (include . $ | fromJson | values) }}
{{- end }}
{{- include "gitops-runtime.config.remarks" (dict "root" . "path" "app-proxy.config" "config" $values.config "known" $known) }}
{{- if and (index $values "image-enrichment").enabled (not (index .Values "argo-workflows").enabled) (not (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1/Workflow")) }}
- "app-proxy.image-enrichment: the cluster does not know the kind Workflow, so no image is reported; install Argo Workflows"
{{- end }}
{{- else if or (omit $values.config "cors" "logLevel" "skipGitPermissionValidation") $values.env (index $values "image-enrichment").enabled (ne ($values.replicaCount | int) 1) }}
- "app-proxy: nothing but config.cors is read while app-proxy.enabled is false"
{{- end }}
{{- $user := .Values.global.codefresh.userToken | default dict }}
{{- if and (not $values.enabled) (or $user.token $user.secretKeyRef) }}
- "global.codefresh.userToken: not read while app-proxy.enabled is false, so nothing registers the runtime"
{{- end }}
{{- end -}}
