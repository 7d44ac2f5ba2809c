{{- /*
What several templates have in common. All templates use what Go's text/template has itself, and none
of Helm's further functions: so the tests render them without Helm. printf "%q" quotes.
*/ -}}

{{- define "labels" }}
    app.kubernetes.io/name: {{ .Values.group }}
    app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "confined" }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
{{- end }}

{{- define "run" }}
            - run
            - {{ printf "%q" .Values.group }}
            - --name
            - $(POD_NAME)
            - --no-local
            - --ttl
            - {{ printf "%q" .Values.ttl }}
            - --grace
            - {{ printf "%q" .Values.grace }}
            - --restart
            - {{ printf "%q" .Values.restart }}
{{- end }}

{{- define "command" }}
            - --
            {{- range .Values.command }}
            - {{ printf "%q" . }}
            {{- end }}
{{- end }}

{{- define "worker" }}
        - name: worker
          image: {{ printf "%q" .Values.image }}
          imagePullPolicy: {{ .Values.imagePullPolicy }}
          command: [hustings]
          {{- template "confined" . }}
          resources:
            requests: {cpu: {{ printf "%q" .Values.cpu }}, memory: {{ printf "%q" .Values.memory }}}
            limits: {memory: {{ printf "%q" .Values.memoryLimit }}}
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            {{- if .Values.guard.passwordSecret }}
            - name: GUARD_PASSWORD
              valueFrom:
                secretKeyRef: {name: {{ printf "%q" .Values.guard.passwordSecret }}, key: GUARD_PASSWORD}
            {{- end }}
{{- end }}

{{- define "user" }}
        runAsNonRoot: true
        runAsUser: {{ .Values.user }}
        seccompProfile: {type: RuntimeDefault}
{{- end }}
