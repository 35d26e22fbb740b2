{{- define "gatewright.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gatewright.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gatewright.labels" -}}
{{ include "gatewright.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The port of the admin listener; empty when it is off, or on loopback and so out of reach. */ -}}
{{- define "gatewright.adminPort" -}}
{{- with .Values.config.admin -}}
{{- if not (has (default "127.0.0.1" .host) (list "127.0.0.1" "::1")) -}}{{- default 9464 .port | int -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gatewright.serviceAccount" -}}
{{- default (ternary (include "gatewright.name" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}
