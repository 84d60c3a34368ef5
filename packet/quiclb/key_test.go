package quiclb_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"sextant/packet/quiclb"
)

// No way of printing a key shows it, alone, in its configuration, or in what was made of that.
func TestKeyDoesNotPrint(t *testing.T) {
	config := quiclb.Config{Rotation: 1, ServerIDLength: 2, NonceLength: 6,
		Key: bytes.Repeat([]byte{0xbb}, quiclb.KeyLength)}
	codec, err := quiclb.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", config.Key, config, []quiclb.Config{config})
	}
	address := regexp.MustCompile(`\b0x[0-9a-f]{9,12}\b`) // its digits may be those looked for
	out.WriteString(address.ReplaceAllString(fmt.Sprintf("%v %+v\n", codec, codec), "pointer"))
	fmt.Fprintln(&out, config.Key.String())
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{} // its digits may be those that are looked for
		}
		return a
	}}
	slog.New(slog.NewTextHandler(&out, options)).Info("text", "key", config.Key, "config", config)
	slog.New(slog.NewJSONHandler(&out, options)).Info("json", "key", config.Key, "config", config)
	for name, marshal := range map[string]func(any) (
		[]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
		text, err := marshal(map[string]any{"key": config.Key, "config": config})
		if err != nil || !strings.Contains(string(text), "(secret)") {
			t.Errorf("as %s: %s, %v", name, text, err)
		}
		out.Write(text)
	}
	// The octet 0xbb in all of these spellings, and as base64.
	for _, leak := range []string{"bb", "BB", "187", "10111011", "u7u7", "\xbb"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("output shows the key (%q):\n%s", leak, out.String())
		}
	}
}
