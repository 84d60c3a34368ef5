package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/agent/southbound/southboundtest"
	"sextant/config"
)

// serveElsewhere serves the world's agent over TLS, and returns its address and files: of a token
// to read, of one to operate, and of the certificate's authority.
func (w *world) serveElsewhere() (address, read, operate, ca string) {
	w.t.Helper()
	dir := w.t.TempDir()
	at := netip.MustParseAddr("127.0.0.1")
	files := southboundtest.NewAuthority(w.t, dir).Leaf(w.t, "node", at)
	tokens := filepath.Join(dir, "tokens")
	file := func(role api.Permission) string {
		t, text, err := access.NewToken(string(role), role, time.Time{})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := access.EditTokens(tokens, func(all []access.Token) ([]access.Token, error) {
			return append(all, t), nil
		}); err != nil {
			w.t.Fatal(err)
		}
		name := filepath.Join(dir, string(role))
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return name
	}
	read, operate = file(api.Read), file(api.Operate)
	port := freePort(w.t)
	servers, err := httpserver.Listen("agent", "api.socket", filepath.Join(dir, "socket"),
		netip.AddrPort{}, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(servers.Stop)
	listen := &config.Listen{Address: netip.AddrPortFrom(at, port),
		Certificate: files.Certificate, Key: files.Key, Tokens: tokens}
	if err := servers.ListenTLS(listen); err != nil {
		w.t.Fatal(err)
	}
	servers.Serve(api.NewHandler(w.agent), nil)
	return listen.Address.String(), read, operate, files.CA
}

// Commands talk to an agent elsewhere: by its address, by a context, and by the current one. What
// the token does not allow, and commands that work on their own machine, are refused.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, fakeNode)
	address, read, operate, ca := w.serveElsewhere()
	delete(w.environ, "SEXTANT_SOCKET")
	w.environ["XDG_CONFIG_HOME"] = t.TempDir()
	contexts := filepath.Join(w.environ["XDG_CONFIG_HOME"], "sextant", "contexts.yaml")
	by := func(token string) string {
		return " --address " + address + " --ca " + ca + " --token-file " + token
	}
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"service list -o name" + by(read), 0, "web\n"},
		{"backend drain web web1" + by(read), exitConflict, "this needs the role operate"},
		{"backend drain web web1" + by(operate), 0, "backend web1"},
		{"status --address " + address, exitUsage, "no token is given"},
		{"status --address edge1 --token-file " + read, exitUsage, "is no address and port"},
		{"status --token-file " + read + " --address " + address, exitUnreachable,
			"its certificate is not trusted"},
		{"doctor" + by(read), exitUsage, "it looks at the kernel"},
		{"token list" + by(read), exitUsage, "it changes a file of this machine"},
		{"status --context edge1", exitNotFound, `there is no context "edge1"`},
		{"context add edge1" + by(ca), exitFailed, "does not hold one word"},
		{"context add edge1" + by(read), 0, ""},
		{"status --context edge1", 0, "Node"},
		{"controller status --context edge1", exitUsage, "is that of the agent"},
		{"context list", 0, "edge1  agent   " + address + "  -"},
		{"context use nowhere", exitNotFound, ""},
		{"context use edge1", 0, ""},
		{"service list -o name", 0, "web\n"},
		{"service list --socket /nowhere/s", exitUnreachable, "/nowhere/s"},
		{"context use --none", 0, ""},
		{"context remove edge1", 0, ""},
		{"context list -o name", 0, ""},
	} {
		text := w.run(strings.Fields(step.args)...)
		if !strings.HasSuffix(text, fmt.Sprintf("[exit %d]\n", step.code)) ||
			!strings.Contains(text, step.want) {
			t.Errorf("not %d with %q: %s", step.code, step.want, text)
		}
		if info, err := os.Stat(contexts); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the contexts have mode %v", step.args, info.Mode())
		}
	}
	if err := os.Chmod(contexts, 0o644); err != nil {
		t.Fatal(err)
	}
	if text := w.run("status"); !strings.Contains(text, "others can read or write it") {
		t.Errorf("contexts that others can read: %s", text)
	}
}

// freePort is a port of the loopback that nothing listens on.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// A daemon that the command line names counts more than one that the environment names.
func TestNamedDaemonCountsMore(t *testing.T) {
	w := newWorld(t, fakeNode)
	address, read, _, ca := w.serveElsewhere()
	delete(w.environ, "SEXTANT_SOCKET")
	w.environ["SEXTANT_CONTEXTS"] = filepath.Join(t.TempDir(), "contexts.yaml")
	w.environ["SEXTANT_CONTEXT"] = "nowhere"
	if out := w.run("status", "--brief"); !strings.Contains(out, `no context "nowhere"`) {
		t.Errorf("the environment alone: %s", out)
	}
	for _, named := range [][]string{{"--socket", w.socket},
		{"--address", address, "--token-file", read, "--ca", ca}} {
		if out := w.run(append([]string{"status", "--brief"}, named...)...); !strings.HasSuffix(out,
			"[exit 0]\n") {
			t.Errorf("%s: %s", named[0], out)
		}
	}
}
