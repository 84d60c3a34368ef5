package flow_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sextant/packet/flow"
)

// countingOctets returns 00 01 02 ... of the length n.
func countingOctets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// readLines returns the lines of a file in testdata that are not comments.
func readLines(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The core with 2 and 4 rounds gives the outputs that the authors published.
func TestSipHash24PublishedVectors(t *testing.T) {
	key := flow.Secret(countingOctets(16))
	lines := readLines(t, "siphash24.txt")
	if len(lines) != 64 {
		t.Fatalf("%d vectors, want 64", len(lines))
	}
	for n, want := range lines {
		got := binary.LittleEndian.AppendUint64(nil, flow.SipHash(2, 4, key, countingOctets(n)))
		if hex.EncodeToString(got) != want {
			t.Errorf("message of %d octets: got %x, want %s", n, got, want)
		}
	}
}

// SipHash13 gives the outputs of an independent implementation, CPython's.
func TestSipHash13AgreesWithCPython(t *testing.T) {
	lines := readLines(t, "siphash13.txt")
	if len(lines) != 64 {
		t.Fatalf("%d vectors, want 64", len(lines))
	}
	for i, line := range lines {
		want, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := flow.SipHash13(flow.Secret{}, countingOctets(i+1)); got != want {
			t.Errorf("message of %d octets: got %d, want %d", i+1, got, want)
		}
	}
}
