{{/*
Values whose text has not the right form, as a YAML list. files/value-formats.json names them and the form of each; a step of a
path is a key, "[]" for the items of a list, "{}" for the values of a map or "{keys}" for its keys. The schema leaves them
out, since it could only print a regular expression. Of references to a key of a Secret it names those that lack a part. Argument: the root.
*/}}
{{- define "gitops-runtime.formats.mistakes" -}}
{{- range $format := .Files.Get "files/value-formats.json" | fromJsonArray }}
{{- $nodes := list (dict "at" "" "value" $.Values.AsMap) }}
{{- range $step := $format.path }}
{{- $next := list }}
{{- range $node := $nodes }}
{{- if and (eq $step "[]") (kindIs "slice" $node.value) }}
{{- range $number, $item := $node.value }}
{{- $next = append $next (dict "at" (printf "%s[%d]" $node.at $number) "value" $item) }}
{{- end }}
{{- else if and (eq $step "{keys}") (kindIs "map" $node.value) }}
{{- range $key, $_ := $node.value }}
{{- $next = append $next (dict "at" $node.at "value" $key) }}
{{- end }}
{{- else if and (eq $step "{}") (kindIs "map" $node.value) }}
{{- range $key, $item := $node.value }}
{{- $next = append $next (dict "at" (printf "%s.%s" $node.at $key) "value" $item) }}
{{- end }}
{{- else if kindIs "map" $node.value }}
{{- if hasKey $node.value $step }}
{{- $name := ternary (printf "%q" $step) $step (contains "." $step) }}
{{- $next = append $next (dict "at" (ternary $name (printf "%s.%s" $node.at $name) (eq $node.at "")) "value" (index $node.value $step)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $nodes = $next }}
{{- end }}
{{- range $node := $nodes }}
{{- if $format.reference }}
{{- if and (kindIs "map" $node.value) $node.value (not (and $node.value.name $node.value.key)) }}
- {{ printf "%s must have both name and key" $node.at | quote }}
{{- end }}
{{- else if and $format.quote (or (kindIs "float64" $node.value) (kindIs "int64" $node.value)) }}
- {{ printf "%s: %v is a number, which keeps no zeros at its ends and 15 digits only; quote it in the values file, or give it with --set-string" $node.at $node.value | quote }}
{{- else if or (kindIs "string" $node.value) (kindIs "float64" $node.value) (kindIs "int64" $node.value) }}
{{- $text := include "gitops-runtime.text" $node.value }}
{{- if or (not (regexMatch $format.pattern $text)) (and $format.maxLength (gt (len $text) (int $format.maxLength))) }}
{{- /* What has an "@" may hold a password. */}}
- {{ printf "%s: %s is not %s" $node.at (ternary "the value" (trunc 80 $text | printf "%q") (contains "@" $text)) $format.form | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
Workloads of this release in the cluster that an older chart made and this one does not: an upgrade deletes them. As a JSON
array; empty when the user accepts that, for a first installation, and where nothing can be looked up. Objects with the
annotation helm.sh/resource-policy: keep stay. Where this chart is a part of another one only names that no other chart gives are
looked for. Argument: the root.
*/}}
{{- define "gitops-runtime.removals" -}}
{{- $found := list -}}
{{- if and .Release.IsUpgrade (not .Values.upgrade.acceptRemovals) -}}
{{- $ours := list "event-reporter" "runtime-event-reporter" "cluster-event-reporter" "codefresh-tunnel-client" (include "gitops-runtime.router" . | fromJson).name -}}
{{- if (index .Values "app-proxy").enabled -}}
{{- $ours = append $ours "cap-app-proxy" -}}
{{- end -}}
{{- $parts := list "gitops-runtime" -}}
{{- range $key, $part := dict "argo-cd" "argocd" "argo-workflows" "argo-workflows" "argo-rollouts" "argo-rollouts" "argo-events" "argo-events" -}}
{{- if dig $key "enabled" false $.Values.AsMap -}}
{{- $parts = append $parts $part -}}
{{- end -}}
{{- end -}}
{{- range $kind := list "Deployment" "StatefulSet" -}}
{{- range (lookup "apps/v1" $kind $.Release.Namespace "").items -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- $part := index (.metadata.labels | default dict) "app.kubernetes.io/part-of" | default "" -}}
{{- $owned := eq (index $annotations "meta.helm.sh/release-name" | default "") $.Release.Name -}}
{{- if include "gitops-runtime.isPart" $ -}}
{{- $owned = and $owned (has .metadata.name (list "cap-app-proxy" "gitops-operator" "argo-gateway")) -}}
{{- end -}}
{{- $kept := eq (index $annotations "helm.sh/resource-policy" | default "") "keep" -}}
{{- if and $owned (not $kept) (not (has .metadata.name $ours)) (not (has $part $parts)) -}}
{{- $found = append $found (printf "%s %s" $kind .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
