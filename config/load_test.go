package config_test

import (
	"strings"
	"testing"

	"sextant/config"
)

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]config.Load{
		"connections":               {},
		"accept-queue":              {Kind: config.LoadQueue},
		"pressure":                  {Kind: config.LoadPressure},
		"pressure:/sys/fs/cgroup/x": {Kind: config.LoadPressure, Target: "/sys/fs/cgroup/x"},
		"memory:/dev/shm/web.load":  {Kind: config.LoadMemory, Target: "/dev/shm/web.load"},
		"apache:http://[::1]:8080/server-status?auto": {Kind: config.LoadApache,
			Target: "http://[::1]:8080/server-status?auto"},
	} {
		got, err := config.ParseLoad(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v, written as %s", text, got, err, got)
		}
	}
	for text, want := range map[string]string{
		"":                     "unknown load",
		"nginx:http://x/":      "unknown load",
		"connections:":         "unknown load",
		"accept-queue:":        "unknown load",
		"memory":               "write memory:",
		"memory:web.load":      "write memory:",
		"pressure:":            "write pressure",
		"pressure:cpu":         "write pressure",
		"apache":               "write apache:http://",
		"apache:/etc/passwd":   "write apache:http://",
		"apache:https://[::1]": "write apache:http://",
	} {
		if _, err := config.ParseLoad(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

// TestWrongLoadHasAHint: the error of a file says what is wrong, then what mends it.
func TestWrongLoadHasAHint(t *testing.T) {
	_, err := config.Parse("host.yaml", []byte("node: web1\nhost:\n  services:\n"+
		"    - {name: a, vip: 192.0.2.1, port: 1, load: \"memory:web\"}\n"))
	const want = `load "memory:web" is not complete; write memory: and the absolute path of the ` +
		"file, like memory:/dev/shm/web.load\n"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error\n%v\nwant in it %s", err, want)
	}
}
