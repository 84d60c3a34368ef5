{{- /* What the node's daemon and the agents of pods need; the tests of e2e run with these alone. */ -}}
{{- define "sextant.capabilities" -}}
[SYS_ADMIN, NET_ADMIN, NET_RAW, BPF, PERFMON, SYS_PTRACE, SYS_RESOURCE, IPC_LOCK, DAC_OVERRIDE]
{{- end -}}
