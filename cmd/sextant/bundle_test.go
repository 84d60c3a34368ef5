package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpacked reads an archive.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return content
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		content[name] = string(text)
	}
}

// A bundle has what it says, and no secret in whatever way somebody wrote it.
func TestSupportBundle(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("hunter2-of-the-bgp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "00112233445566778899aabbccddeeff"
	w := newWorld(t, fakeNode+fmt.Sprintf("bgp: {asn: 64512, routerID: 192.0.2.1, neighbors: "+
		"[{address: 192.0.2.2, asn: 64512, passwordFile: %s}]}\n", password))
	w.parts = []part{
		{Name: "agent.log", Text: []byte("secret is " + secret + " or " + strings.ToUpper(secret) +
			"; password hunter2-of-the-bgp")},
		{Name: "raw.bin", Text: w.agent.node.Secret[:]},
		{Name: "encoded.txt", Text: []byte("ABEiM0RVZneImaq7zN3u/w==")},
		{Name: "broken.txt", Err: errors.New("the secret " + secret + " is in the way")},
	}
	file := filepath.Join(dir, "bundle.tar.gz")
	text := w.run("support-bundle", "-f", file)
	content := unpacked(t, file)
	for name, got := range content {
		for _, hidden := range []string{secret, strings.ToUpper(secret), "hunter2",
			string(w.agent.node.Secret[:]), "ABEiM0RVZneImaq7zN3u"} {
			if strings.Contains(got, hidden) {
				t.Errorf("%s holds the secret as %q:\n%s", name, hidden, got)
			}
		}
		if name != "manifest.txt" && (!strings.Contains(text, "\n"+name+" ") &&
			!strings.Contains(text, "]\n"+name) || !strings.Contains(content["manifest.txt"],
			name)) {
			t.Errorf("%s is not listed:\n%s", name, text)
		}
	}
	for name, want := range map[string]string{
		"agent.log":   "secret is REDACTED or REDACTED; password REDACTED",
		"config.yaml": "node: both1", "doctor.json": `"listener_missing"`,
		"status.json": `"version": "v1.2.3"`, "services.json": `"name": "web"`,
		"version.txt": "sextant ", "facts.json": `"release": "6.12.1"`,
		"manifest.txt": "missing or in part: the secret REDACTED is in the way",
	} {
		if !strings.Contains(content[name], want) {
			t.Errorf("%s is\n%s\nwant %q in it", name, content[name], want)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive is readable by others: %v, %v", info.Mode(), err)
	}
}

// What was computed, learned and installed is in a bundle as the commands of these tell it, of a
// head-end with protections and of a node with routes of other routing software.
func TestSupportBundleHasPathsAndRoutes(t *testing.T) {
	for _, test := range []struct {
		node  string
		files map[string]string // name to command
	}{
		{fakeHeadend, map[string]string{"protections.json": "protect list",
			"policies.json": "policy list"}},
		{fakeNode, map[string]string{"routes.json": "route list",
			"route-sources.json": "route sources", "bgp-routes.json": "bgp routes",
			"bgp-peers.json": "bgp peers"}},
	} {
		w := newWorld(t, test.node)
		file := filepath.Join(t.TempDir(), "bundle.tar.gz")
		if text := w.run("support-bundle", "-f", file); !strings.HasSuffix(text, "[exit 0]\n") {
			t.Fatal(text)
		}
		content := unpacked(t, file)
		for name, command := range test.files {
			w.run(append(strings.Fields(command), "-o", "json")...)
			var want struct{ Items []any }
			var got []any
			if err := errors.Join(json.Unmarshal(w.stdout.Bytes(), &want),
				json.Unmarshal([]byte(content[name]), &got)); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, content[name])
			}
			if diff := cmp.Diff(want.Items, got); diff != "" || len(got) == 0 {
				t.Errorf("%s has %d items, and differs from sextant %s (-want +got):\n%s", name,
					len(got), command, diff)
			}
		}
		if name := "topology.json"; !strings.Contains(content[name],
			"/etc/sextant/abilene.graph") || !strings.Contains(content[name], "Seattle") {
			t.Errorf("%s is %s", name, content[name])
		}
	}
}

// Without an agent, the node file is enough; secrets of its files are known from there.
func TestSupportBundleWithoutAgent(t *testing.T) {
	w := newWorld(t, fakeNode)
	dir := t.TempDir()
	secretFile, nodeFile, file := filepath.Join(dir, "secret"), filepath.Join(dir, "node.yaml"),
		filepath.Join(dir, "bundle.tar.gz")
	const secret = "ffeeddccbbaa99887766554433221100"
	hmacFile, hmacKey := filepath.Join(dir, "hmac"), strings.Repeat("c3", 32)
	quicFile, quicKey := filepath.Join(dir, "quic"), strings.Repeat("d4", 16)
	tlsFile, tlsLine := filepath.Join(dir, "tls"), "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04f"
	tlsKey := "-----BEGIN EC PRIVATE KEY-----\n" + tlsLine +
		"\nAwEH\n-----END EC PRIVATE KEY-----\n"
	passwordFile, password := filepath.Join(dir, "password"), "hunter2-of-etcd"
	node := strings.Replace(fakeNode, "secret: 00112233445566778899aabbccddeeff",
		"secretFile: "+secretFile, 1)
	node = strings.Replace(node, "host:\n", "host:\n  hmac: {keys: [{id: 7, keyFile: "+hmacFile+
		"}]}\n", 1)
	node = strings.Replace(node, "  services:\n", fmt.Sprintf(`  etcd: {endpoints: ["https://[fd00:5e::3]:2379"], username: edge, passwordFile: %s, tls: {certificate: /cert, key: %s}}
  services:
    - {name: h3, vip: 2001:db8:80::83, port: 443, protocol: udp, quic: {configs: [{rotation: 3, serverIDLength: 2, nonceLength: 6, keyFile: %s}]}}
`, passwordFile, tlsFile, quicFile), 1)
	for name, text := range map[string]string{
		secretFile: secret + "\n", nodeFile: node, hmacFile: hmacKey, quicFile: quicKey + "\n",
		tlsFile: tlsKey, passwordFile: password + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.parts = []part{{Name: "agent.log",
		Text: []byte("secret " + secret + ", key " + strings.Repeat("\xc3", 32) + " or " +
			hmacKey)},
		{Name: "node.log", Text: fmt.Appendf(nil, "%x %s %+v %q %s", strings.Repeat("\xd4", 16),
			strings.Repeat("\xd4", 16), tlsLine, tlsKey, password)}}
	if text := w.run("support-bundle", "-f", file, "--node", nodeFile, "--socket",
		"/nonexistent"); !strings.HasSuffix(text, "[exit 0]\n") {
		t.Fatal(text)
	}
	content := unpacked(t, file)
	if content["agent.log"] != "secret REDACTED, key REDACTED or REDACTED" {
		t.Errorf("the log is %q", content["agent.log"])
	}
	if want := `REDACTED REDACTED REDACTED "-----BEGIN EC PRIVATE KEY-----\nREDACTED\nAwEH\n-----END EC PRIVATE KEY-----\n" REDACTED`; content["node.log"] != want {
		t.Errorf("other secrets: %q, want %q", content["node.log"], want)
	}
	if _, there := content["status.json"]; there {
		t.Error("nobody answers, and there is a status")
	}
	w.stdout.Reset()
	w.terminal = true
	if text := w.run("support-bundle", "-f", "-"); !strings.Contains(text,
		"would garble the terminal") || !strings.HasSuffix(text, "[exit 2]\n") {
		t.Error(text)
	}
}

// What is written is sorted, so that two bundles can be compared.
func TestBundleIsSorted(t *testing.T) {
	parts := scrub([]part{{Name: "b"}, {Name: "a"}, {Name: "c", Text: []byte("xyx")}},
		[][]byte{[]byte("y")})
	names := []string{}
	for _, p := range parts {
		names = append(names, p.Name)
	}
	if !slices.IsSorted(names) || !bytes.Equal(parts[2].Text, []byte("xREDACTEDx")) {
		t.Errorf("scrubbed %+v", parts)
	}
}
