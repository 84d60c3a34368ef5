package api_test

import (
	"os"
	"strings"
	"testing"

	"sextant/agent/api"
)

// A secret that any user can read is refused.
func TestReadableSecretsAreRefused(t *testing.T) {
	write := files(t)
	secret := write("secret", "00112233445566778899aabbccddeeff\n")
	node := write("node.yaml", strings.Replace(nodeFile,
		"secret: 00112233445566778899aabbccddeeff", "secretFile: "+secret, 1))
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o644: false,
		0o602: false} {
		if err := os.Chmod(secret, mode); err != nil {
			t.Fatal(err)
		}
		_, err := api.LoadNode(node)
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "is no secret") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
