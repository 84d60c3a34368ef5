package api

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sextant/config"
)

// What has no end, waits for others, or does something when it is opened is not read for a secret.
func TestSecretsAreFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, large, most := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"),
		filepath.Join(dir, "most")
	for _, err := range []error{
		unix.Mkfifo(pipe, 0o600),
		os.WriteFile(large, make([]byte, maxSecretFile+1), 0o600),
		os.WriteFile(most, make([]byte, maxSecretFile), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"/dev/null": "no regular file", pipe: "no regular file", dir: "no regular file",
		large: "more than 1048576 bytes", most: "",
		filepath.Join(dir, "none"): "no such file or directory",
	} {
		text, err := ReadSecretFile(name, anyUser)
		if want == "" {
			if err != nil || len(text) != maxSecretFile {
				t.Errorf("%s: %d bytes, %v", name, len(text), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// empty is an agent that runs nothing.
type empty struct{ Agent }

func (empty) Config(context.Context) (*config.Node, error) { return &config.Node{}, nil }

// A caller who may not apply a node file has no files read that the running node does not name, in
// whatever part of it they are named.
func TestDiffReadsFilesOfTheRunningNode(t *testing.T) {
	const file = "/etc/sextant/key"
	nodes := map[string]*config.Node{
		"Node.SecretFile":    {SecretFile: file},
		"CFLB.KeyFile":       {CFLB: &config.CFLB{KeyFile: file}},
		"PathSource.KeyFile": {PathSource: &config.PathSource{KeyFile: file}},
		"Subflows.KeyFile":   {Subflows: &config.Subflows{KeyFile: file}},
		"HMACKey.KeyFile":    {Edge: &config.Edge{HMAC: &config.HMACKey{KeyFile: file}}},
		"QUIC.KeyFile": {Edge: &config.Edge{Services: []config.Service{{
			QUIC: config.QUICConfigs{Configs: []config.QUIC{{KeyFile: file}}}}}}},
	}
	fields := map[string]bool{}
	fileFields(reflect.TypeFor[config.Node](), map[reflect.Type]bool{}, fields)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)),
		slices.Sorted(maps.Keys(nodes))); diff != "" {
		t.Errorf("fields that name files of secrets (-there +tested):\n%s", diff)
	}
	for field, next := range nodes {
		for may, other := range map[Permission]bool{Read: false, Operate: false, Admin: true,
			"": true} {
			for _, running := range []*config.Node{{}, next} {
				r := &http.Request{}
				if may != "" {
					r = r.WithContext(WithAccess(r.Context(), NewAccess(may)))
				}
				err := mayHaveRead(r.Context(), running, next)
				if want := other || running == next; want != (err == nil) {
					t.Errorf("%s by %q, named by what runs %v: %v", field, may, running == next,
						err)
				}
			}
		}
	}
	const text = `
node: e
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secretFile: /no/such/file
host:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services: [{name: web, vip: 192.0.2.80, port: 80, accept: {policy: static, threshold: 4}}]
`
	diff := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := (handler{agent: empty{}}).diff(r); err != nil {
			writeError(w, err)
		}
	})
	for may, want := range map[Permission]int{Read: http.StatusForbidden,
		Admin: http.StatusBadRequest} {
		if got := asked(t, diff, "POST", "/v1/diff", text, may); got != want {
			t.Errorf("diff by %s: status %d, not %d", may, got, want)
		}
	}
}

// fileFields are the fields of a type, and of those within, that name files of secrets.
func fileFields(of reflect.Type, seen map[reflect.Type]bool, fields map[string]bool) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, of.Kind()) {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return
	}
	seen[of] = true
	for f := range of.Fields() {
		if strings.HasSuffix(f.Name, "KeyFile") || strings.HasSuffix(f.Name, "SecretFile") {
			fields[of.Name()+"."+f.Name] = true
		}
		fileFields(f.Type, seen, fields)
	}
}
