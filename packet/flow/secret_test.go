package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sextant/packet/flow"
)

const secretText = "00112233445566778899aAbBcCdDeEfF"

func TestParseSecret(t *testing.T) {
	secret, err := flow.ParseSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	for i, octet := range secret {
		if octet != byte(i*0x11) {
			t.Errorf("octet %d is %#x, want %#x", i, octet, i*0x11)
		}
	}
}

func TestParseSecretRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":       {"", "0 characters"},
		"short":       {secretText[:31], "31 characters"},
		"long":        {secretText + "0", "33 characters"},
		"not hex":     {"zz112233445566778899aabbccddeeff", "not a hexadecimal digit"},
		"not ascii":   {strings.Repeat("é", 16), "not a hexadecimal digit"},
		"prefixed 0x": {"0x112233445566778899aabbccddeeff", "not a hexadecimal digit"},
		"zeros":       {strings.Repeat("0", 32), "all zeros"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := flow.ParseSecret(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if test.text != "" && strings.Contains(err.Error(), test.text) {
				t.Errorf("error repeats the secret: %v", err)
			}
		})
	}
}

// No way of printing a secret shows it, alone or as a part of something else.
func TestSecretDoesNotPrint(t *testing.T) {
	secret, err := flow.ParseSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	type node struct{ Secret flow.Secret }
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", secret, &secret, node{secret})
	}
	fmt.Fprintln(&out, secret.String())
	options := &slog.HandlerOptions{ReplaceAttr: withoutTime}
	slog.New(slog.NewTextHandler(&out, options)).Info("text", "secret", secret, "node",
		node{secret})
	slog.New(slog.NewJSONHandler(&out, options)).Info("json", "secret", secret, "node",
		node{secret})
	if err := json.NewEncoder(&out).Encode(map[string]any{"secret": secret,
		"node": node{secret}}); err != nil {
		t.Fatal(err)
	}
	// The octet 0xbb in all of these spellings.
	for _, leak := range []string{"bb", "BB", "187", "10111011"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("output shows the secret (%q):\n%s", leak, out.String())
		}
	}
}

// withoutTime leaves the time out of a log line: its digits may be those that the test looks for.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
