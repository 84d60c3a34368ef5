package config

import "testing"

func TestParseController(t *testing.T) {
	for text, valid := range map[string]bool{
		"[fd00:5e::9]:9478": true, "192.0.2.1:1": true, "controller.example:65535": true,
		"": false, ":1": false, "a": false, "a:0": false, "a:65536": false, "fd00::1:9": false,
		"[fe80::1%eth0]:1": false, "https://a:1": false, "a:1/b": false, "u@a:1": false,
		"[fd00::1:9": false, "a b:1": false,
	} {
		if _, err := parseController(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
