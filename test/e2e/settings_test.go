package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sextant/agent/api"
)

const (
	manyServers = 9 // more than a chain has places

	firstSecret  = "6d1b0c8f4e2a97d35c80f1ba2e497d06" // of health.yaml
	secondSecret = "6d1b0c8f4e2a97d35c80f1ba2e497d07"
	thirdSecret  = "6d1b0c8f4e2a97d35c80f1ba2e497d08"
)

// upMany is the lab of health.yaml with more servers, and without checks.
func upMany(t *testing.T) *checkedLab {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile(filepath.Join("testdata", "health.yaml"))
	must(t, err)
	var backends strings.Builder
	for i := 5; i <= manyServers; i++ {
		fmt.Fprintf(&backends, "                - {name: web%d, sid: \"fcbb:bb00:%d::\", agent: "+
			"\"[fd00:5e::1:%d]:9477\"}\n", i, i, i)
	}
	many := regexp.MustCompile(` *check: .*\n| *slowStart: .*\n`).ReplaceAllString(string(text), "")
	many = strings.Replace(many, "            # By the backends'",
		backends.String()+"            # By the backends'", 1)
	c := &checkedLab{agents: upText(t, "health.yaml",
		strings.Replace(many, "count: 4", fmt.Sprintf("count: %d", manyServers), 1))}
	for i := 1; i <= manyServers; i++ {
		serveWords(t, c.lab, server(i), echoAddress, func(net.Conn) {})
	}
	return c
}

// newSecret gives a node the cluster's next secret.
func (c *checkedLab) newSecret(node string) {
	c.t.Helper()
	file, err := os.ReadFile(fileOf(c.t, c.lab, node))
	must(c.t, err)
	next := strings.Replace(string(file), firstSecret, secondSecret, 1)
	_, err = c.client(node).Apply(c.t.Context(), "node.yaml", []byte(next), false)
	must(c.t, err)
}

// Settings that change whose buckets are, or how many there are, end no connection under traffic;
// one that would is refused with how many those are, and ends them only when that is said.
func TestSettingsUnderConnections(t *testing.T) {
	c := upMany(t)
	file, err := os.ReadFile(fileOf(t, c.lab, "edge"))
	must(t, err)
	text := string(file)
	set := func(client *api.Client, pattern, value string) error {
		t.Helper()
		next := regexp.MustCompile(pattern).ReplaceAllString(text, value)
		if next == text {
			t.Fatalf("%q is not in\n%s", pattern, text)
		}
		_, err := client.Apply(t.Context(), "node.yaml", []byte(next), false)
		if err == nil {
			text = next
		}
		return err
	}
	var all []*talkers
	begin := func() { all = append(all, talk(t, c.dial(60))) }
	end := func() {
		t.Helper()
		for stage, k := range all {
			if broken := k.stop(); broken > 0 {
				t.Errorf("stage %d: %d of %d connections are broken, one by: %v", stage, broken,
					len(k.rounds), *k.first.Load())
			}
		}
		all = nil
	}
	edge := c.client("edge")
	begin()
	must(t, set(edge, `(?m)^( *)source: "?fd00:5e::e1"?$`, "${0}\n${1}buckets: 131071"))
	begin()
	end()
	// A chain has room for the owners by two tables before that of now,
	begin()
	must(t, set(edge, `(?m)^( *)- name: tcp$`, "${0}\n${1}  table: exact"))
	begin()
	must(t, set(edge, "table: exact", "table: rendezvous"))
	begin()
	end()
	// or for those of the former table and of one before that of now.
	begin()
	must(t, set(edge, firstSecret, secondSecret))
	for i := 1; i <= manyServers; i++ { // they tell it their connections
		c.newSecret(server(i))
	}
	begin()
	must(t, set(edge, "table: rendezvous", "table: exact"))
	begin()
	err = set(edge, "buckets: 131071", "buckets: 2039")
	if err == nil || !regexp.MustCompile(
		`about \d+ % of those of service tcp, about \d+ of \d+ now`).MatchString(err.Error()) {
		t.Errorf("fewer buckets while another change of that kind is under way: %v", err)
	}
	begin()
	end()
	last := talk(t, c.dial(100))
	must(t, set(edge, `(?m)^( *)buckets: 131071$`, "${0}\n${1}formerTime: 0s"))
	must(t, set(edge.BreakingConnections(), secondSecret, thirdSecret))
	if broken := last.stop(); broken == 0 {
		t.Error("another secret breaks no connection: the test does nothing that would")
	} else {
		t.Logf("another secret broke %d of 100 connections", broken)
	}
}
