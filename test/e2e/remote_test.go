package e2e_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
)

// remoteEdge is examples/quickstart.yaml with an edge whose API is served over TLS, and who has
// tokens for it. Pairs of texts are what the file has, and what it gets instead.
func remoteEdge(t *testing.T, pairs ...string) (a *agents, dir string,
	token map[api.Permission]string) {
	t.Helper()
	dir = t.TempDir()
	files := southboundtest.NewAuthority(t, dir).Leaf(t, "edge", netip.MustParseAddr("fd00:5e::e1"))
	tokens := filepath.Join(dir, "tokens")
	token = map[api.Permission]string{}
	for _, role := range access.Roles {
		one, secret, err := access.NewToken("of-"+string(role), role, time.Time{})
		must(t, err)
		token[role] = secret
		must(t, access.EditTokens(tokens, func(all []access.Token) ([]access.Token, error) {
			return append(all, one), nil
		}))
	}
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	must(t, err)
	listen := fmt.Sprintf(`api: {socket: "{dir}/agent.sock", metrics: "[fd00:5e::e1]:9477", `+
		`listen: {address: "[fd00:5e::e1]:9479", certificate: %s, key: %s, tokens: %s}}`,
		files.Certificate, files.Key, tokens)
	a = upText(t, "quickstart.yaml", strings.NewReplacer(append(pairs, "name: quickstart",
		"name: NAME", `api: {socket: "{dir}/agent.sock"}`, listen)...).Replace(string(text)))
	return a, dir, token
}

// status is what an address answers to a node: the status alone.
func status(a *agents, node string, args ...string) string {
	return string(a.on(node, append([]string{"curl", "-s", "-o", "/dev/null", "-m", "10", "-g",
		"-w", "%{http_code}"}, args...)...))
}

// Another machine uses the API of an edge as its tokens allow; the history says whose token it was,
// and clients that say nothing keep neither the agent nor its socket from work.
func TestRemoteAPI(t *testing.T) {
	needsRoot(t)
	a, dir, token := remoteEdge(t)
	ask := func(role api.Permission, args ...string) string {
		return status(a, "router", append([]string{"--cacert", filepath.Join(dir, "ca.pem"),
			"-H", "Authorization: Bearer " + token[role]}, args...)...)
	}
	const root = "https://[fd00:5e::e1]:9479"
	drain := []string{"-X", "PUT", "-H", "If-Match: *", "-d", `{"state":"draining"}`,
		root + "/v1/services/web/backends/web1"}
	create := []string{"-X", "PUT", "-d", `{"sid":"fcbb:bb00:9::"}`,
		root + "/v1/services/web/backends/web9"}
	for _, step := range []struct {
		role api.Permission
		args []string
		want string
	}{
		{"", []string{root + "/v1/status"}, "401"},
		{api.Read, []string{root + "/v1/status"}, "200"},
		{api.Read, []string{root + "/v1/config"}, "200"},
		{api.Admin, []string{root + "/v1/config?secrets=1"}, "200"},
		{api.Operate, []string{root + "/v1/config?secrets=1"}, "403"},
		{api.Read, drain, "403"},
		{api.Operate, drain, "200"},
		{api.Operate, create, "403"},
		{api.Admin, create, "200"},
		{"", []string{root + "/console/"}, "200"},
		{"", []string{root + "/console/console.js"}, "200"},
	} {
		if got := ask(step.role, step.args...); got != step.want {
			t.Errorf("%v by %q: %s, not %s", step.args, step.role, got, step.want)
		}
	}
	checkPython(t, a, filepath.Join(dir, "ca.pem"), token)
	client := a.client("edge")
	history, err := client.History(t.Context())
	must(t, err)
	var by []string
	for _, applied := range history {
		by = append(by, applied.By)
	}
	said := strings.Join(by, "; ")
	if !strings.Contains(said, "token of-operate ([") || !strings.Contains(said, "token of-admin") {
		t.Errorf("changes were made by %s", said)
	}
	inside(t, a.lab, "router", func() error {
		for range 16 {
			conn, err := net.Dial("tcp", "[fd00:5e::e1]:9479")
			if err != nil {
				return err
			}
			t.Cleanup(func() { conn.Close() })
		}
		return nil
	})
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("the socket beside clients that say nothing: %v", err)
	}
	checkMetricsPort(t, a)
}

// pythonCalls asks as a reader and as an operator: for what a token may not, and with a word that
// is none.
const pythonCalls = `
import sys
from sextant import Agent, APIError

ca, reader, operator = sys.argv[1:]
for token in reader, operator:
    agent = Agent(address="[fd00:5e::e1]:9479", token=token, ca=ca)
    print(agent.status()["node"], sorted(b["name"] for b in agent.backends("web"))[0])
    for state in "asleep", "up":
        try:
            changes = agent.put_backend("web", "web1", {"state": state})
            print([(c["from"], c["to"]) for c in changes["items"]])
        except APIError as error:
            print(error.status, error.code)
`

// checkPython has the Python package of this tree ask the edge over TLS.
func checkPython(t *testing.T, a *agents, ca string, token map[api.Permission]string) {
	t.Helper()
	folder, err := filepath.Abs("../../python")
	must(t, err)
	got := string(a.on("router", "env", "PYTHONPATH="+folder, "python3", "-c", pythonCalls, ca,
		token[api.Read], token[api.Operate]))
	const want = "edge web1\n403 forbidden\n403 forbidden\n" +
		"edge web1\n400 invalid\n[('draining', 'up')]\n"
	if got != want {
		t.Errorf("the Python client printed %q, not %q", got, want)
	}
}

// checkMetricsPort asks the metrics port of an edge for what it has, and for what it must not have:
// it needs no token, so that it only has metrics, probes, and what nodes ask each other.
func checkMetricsPort(t *testing.T, a *agents) {
	t.Helper()
	const root = "http://[fd00:5e::e1]:9477"
	for _, one := range []struct{ want, method, path string }{
		{"200", "GET", "/metrics"}, {"200", "GET", "/healthz"}, {"200", "GET", "/readyz"},
		// not signed with the cluster's secret
		{"426", "GET", "/v1/connections"}, {"426", "GET", "/v1/merge"},
		{"426", "GET", "/v1/chains?endpoint=tcp"},
		{"404", "GET", "/"}, {"404", "GET", "/console/"}, {"404", "GET", "/v1/status"},
		{"404", "GET", "/v1/config"}, {"404", "GET", "/v1/services"}, {"404", "GET", "/v1/monitor"},
		{"404", "GET", "/v1/caller"}, {"404", "GET", "/debug/pprof/"},
		{"404", "POST", "/v1/apply"}, {"404", "PUT", "/v1/services/web/backends/web1"},
		{"405", "PUT", "/v1/connections"}, {"405", "POST", "/v1/merge"},
	} {
		if got := status(a, "router", "-X", one.method, root+one.path); got != one.want {
			t.Errorf("the metrics port: %s %s: %s, not %s", one.method, one.path, got, one.want)
		}
	}
}
