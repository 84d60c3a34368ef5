package experiment

import (
	"os"
	"runtime"
	"strings"
)

// machine is what a run was made on.
type machine struct {
	Model        string `json:"model"`
	Processors   int    `json:"processors"`
	Kernel       string `json:"kernel"`
	Go           string `json:"go"`
	Architecture string `json:"architecture"`
}

func thisMachine() machine {
	m := machine{
		Model: "processor of unknown model", Processors: runtime.NumCPU(),
		Kernel: "of unknown version", Go: runtime.Version(),
		Architecture: runtime.GOARCH,
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok &&
				strings.TrimSpace(key) == "model name" {
				m.Model = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	return m
}
