package lab

import (
	"os"
	"strings"

	"sextant/linux"
)

func openLog(path string) (*os.File, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return log, linux.Failed(err, "open the log %s", path)
}

const (
	tailLines = 10
	tailBytes = 4096
)

// tail returns the last lines of a log, to be put behind an error: a lab that
// fails to come up takes its logs with it.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(data[max(0, len(data)-tailBytes):]))
	if text == "" {
		return "; it wrote nothing"
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "; it wrote:\n  " + strings.Join(lines, "\n  ")
}
