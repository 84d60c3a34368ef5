package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
)

// signing is the lab of hmac.yaml, whose nodes get keys while traffic runs.
type signing struct {
	*agents
	keys  string // directory
	hosts []string
}

// HMACs are introduced, and keys replaced, in the order that docs/howto/operate.md says: no
// connection notices, and not one datagram is lost. Then an edge signs with a key that hosts do not
// have: nothing is delivered, and the hosts say why.
func TestKeysRotateUnderLoad(t *testing.T) {
	s := &signing{agents: upFile(t, "hmac.yaml"), keys: t.TempDir(),
		hosts: []string{"web1", "web2", "web3"}}
	for _, node := range s.hosts {
		serveEcho(t, s.lab, node)
	}
	for id := range 4 {
		must(t, os.WriteFile(s.file(id+1),
			[]byte(strings.Repeat(fmt.Sprintf("%02x", id+1), 32)+"\n"), 0o600))
	}
	tr := startTraffic(t, s.lab)
	tr.flows("unsigned")
	s.host("none", s.key(1, "rfc8754"))
	tr.flows("hosts have a key")
	s.edge(s.key(1, "rfc8754"))
	tr.flows("the edge signs")
	s.host("srh", s.key(1, "rfc8754"))
	tr.flows("hosts insist")
	s.host("all", s.key(1, "rfc8754"))
	tr.flows("hosts insist on a header")
	before := s.key(1, "rfc8754")
	for _, now := range []string{s.key(2, "rfc8754"), s.key(3, "linux"), s.key(2, "rfc8754")} {
		s.host("all", before, now)
		s.edge(now)
		tr.flows("the edge has changed to " + now)
		time.Sleep(100 * time.Millisecond) // nothing that was signed before is on its way any more
		s.host("all", now)
		tr.flows("hosts have " + now + " alone")
		before = now
	}
	lost := tr.stop()
	if lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, tr.sent.Load())
	}
	t.Logf("%d datagrams, %d lost", tr.sent.Load(), lost)
	for _, reason := range []string{"hmac_missing", "hmac_key", "hmac_wrong"} {
		if n := s.drops(reason); n != 0 {
			t.Errorf("%d packets were dropped as %s", n, reason)
		}
	}

	s.edge(s.key(4, "rfc8754"))
	s.refused("hmac_key")
	s.edge(strings.Replace(s.key(2, "rfc8754"), s.file(2), s.file(4), 1))
	s.refused("hmac_wrong")
	s.edge()
	s.refused("hmac_missing")
	s.silent()
}

func (s *signing) file(id int) string { return filepath.Join(s.keys, fmt.Sprint(id)) }

func (s *signing) key(id int, form string) string {
	return fmt.Sprintf("{id: %d, keyFile: %q, form: %s}", id, s.file(id), form)
}

// hmacLines are what a node's file says about HMACs.
var hmacLines = regexp.MustCompile(`(?m)^  hmac:\n(    .*\n)*`)

// apply puts something in place of what a node's file says about HMACs, behind a line of its role.
func (s *signing) apply(node, behind, hmac string) {
	s.t.Helper()
	text, err := s.client(node).Config(s.t.Context(), true)
	must(s.t, err)
	if strings.Contains(string(text), "01010101") {
		s.t.Errorf("node %s shows a key", node)
	}
	changed := hmacLines.ReplaceAllString(string(text), "")
	changed = strings.Replace(changed, behind, behind+hmac, 1)
	changes, err := s.client(node).Apply(s.t.Context(), "node.yaml", []byte(changed), false)
	if err != nil || len(changes.Items) == 0 {
		s.t.Fatalf("node %s, %s: changed %v, error %v", node, hmac, changes.Items, err)
	}
}

// edge signs with a key, or with none.
func (s *signing) edge(key ...string) {
	s.t.Helper()
	hmac := ""
	if len(key) > 0 {
		hmac = "  hmac: " + key[0] + "\n"
	}
	s.apply("edge", "  encapsulation: srh\n", hmac)
}

// host makes all hosts accept keys.
func (s *signing) host(require string, keys ...string) {
	s.t.Helper()
	for _, node := range s.hosts {
		s.apply(node, "host:\n", fmt.Sprintf("  hmac: {require: %s, keys: [%s]}\n", require,
			strings.Join(keys, ", ")))
	}
}

func (s *signing) drops(reason string) (sum uint64) {
	s.t.Helper()
	for _, node := range s.hosts {
		sum += s.dropped(node, api.Host, reason)
	}
	return sum
}

// refused wants datagrams to be dropped for a reason.
func (s *signing) refused(reason string) {
	s.t.Helper()
	before := s.drops(reason)
	inside(s.t, s.lab, "client", func() error { return sendDatagrams(echoAddress, 10) })
	for deadline := time.Now().Add(patience); s.drops(reason) < before+
		10; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d packets were dropped as %s, want 10", s.drops(reason)-before, reason)
		}
	}
}

// silent wants no key in what the agents have logged.
func (s *signing) silent() {
	s.t.Helper()
	for _, node := range append([]string{"edge"}, s.hosts...) {
		log, err := os.ReadFile(s.lab.Log(node, "sextant"))
		must(s.t, err)
		for id := range 4 {
			if strings.Contains(string(log), strings.Repeat(fmt.Sprintf("%02x", id+1), 4)) {
				s.t.Errorf("the log of %s has key %d", node, id+1)
			}
		}
	}
}

// sendDatagrams sends so many to an address.
func sendDatagrams(address string, count int) error {
	socket, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer socket.Close()
	for range count {
		if _, err := socket.Write(make([]byte, 100)); err != nil {
			return err
		}
	}
	return nil
}
