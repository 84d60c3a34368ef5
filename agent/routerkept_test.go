package agent_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/linux/linuxtest"
)

// forwardedText is a router whose kernel forwards by a table that FRRouting, say, fills.
const forwardedText = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
routing:
  vrfs:
    - name: blue
      source: kernel
      table: 10
      datapath: kernel
      install: 100
      interfaces: [edge0]
      shadow: {table: 101, sid: "fcbb:bb00:d0::"}
`

// numbersOfHops are those of next hop objects, which are others when these are made again.
var numbersOfHops = regexp.MustCompile(`nhid \d+ ?`)

// forwarding is what ip(8) shows of a router's tables, shadow SID and rules.
func (m *machine) forwarding() string {
	m.t.Helper()
	var all strings.Builder
	must(m.t, m.ns.Do(func() error {
		for _, question := range []string{"-6 route show table 100", "-6 route show table 101",
			"-6 route show fcbb:bb00:d0::", "rule show pref 930", "-6 rule show pref 930"} {
			out, _ := exec.Command("ip", strings.Fields(question)...).Output() // no table: nothing
			fmt.Fprintf(&all, "%s:\n%s", question, numbersOfHops.ReplaceAll(out, nil))
		}
		return nil
	}))
	return all.String()
}

// What a router wrote into the kernel comes back, with the shadow that only it knows, whatever took
// it: systemd-networkd flushes all that its files do not name.
func TestForwardingThatGoesComesBack(t *testing.T) {
	m := newMachine(t)
	m.ip("link set lo up\nlink set edge0-peer up")
	for id := range 2 {
		m.ip(fmt.Sprintf("-6 nexthop add id %d encap seg6 mode encap segs fcbb:bb00:%d:: dev edge0",
			id+1, id+1))
	}
	m.ip("nexthop add id 9 group 1/2\n-6 route add 2001:db8:80::80 table 10 nhid 9\n" +
		"-6 route add 2001:db8:80::81 table 10 nhid 9")
	r := m.start(forwardedText)
	defer r.stop()
	awaitText := func(table, words string) {
		t.Helper()
		await(t, "there", func() string {
			_, text, _ := strings.Cut(m.forwarding(), table+":\n")
			if text, _, _ = strings.Cut(text, ":\n"); strings.Contains(text, words) {
				return "there"
			}
			return text
		})
	}
	awaitText("table 100", "fcbb:bb00:2::")
	m.ip("nexthop replace id 9 group 1")
	awaitText("table 101", "fcbb:bb00:2::")
	before := m.forwarding()
	for what, commands := range map[string]string{
		"the table": "-6 route del 2001:db8:80::80 table 100\n" +
			"-6 route del 2001:db8:80::81 table 100",
		"the shadow":                  "-6 route del 2001:db8:80::80 table 101",
		"the shadow SID":              "-6 route del fcbb:bb00:d0::",
		"the rule of IPv4":            "rule del pref 930",
		"the rule of IPv6":            "-6 rule del pref 930",
		"all next hops of the router": "nexthop flush proto 95",
		"the loopback interface":      "link set lo down\nlink set lo up",
	} {
		t.Run(what, func(t *testing.T) {
			must(t, m.ns.Do(func() error { return linuxtest.IP(commands) }))
			await(t, before, m.forwarding)
		})
	}
	t.Run("while the loopback interface is down", func(t *testing.T) {
		must(t, m.ns.Do(func() error { return linuxtest.IP("link set lo down") }))
		r.await("a warning", func(s api.Status) bool {
			return strings.Contains(strings.Join(s.Warnings, "\n"), "can't be written again yet")
		})
		must(t, m.ns.Do(func() error { return linuxtest.IP("link set lo up") }))
		await(t, before, m.forwarding)
		r.await("no warning", func(s api.Status) bool { return len(s.Warnings) == 0 })
	})
	// What the router deletes itself is no reason to look.
	m.ip("nexthop replace id 9 group 2")
	awaitText("table 101", "fcbb:bb00:1::")
	m.ip("-6 route del 2001:db8:80::80 table 10\n-6 route del 2001:db8:80::81 table 10")
	await(t, "gone", func() string {
		if !strings.Contains(m.forwarding(), "table 100:\n-6") {
			return m.forwarding()
		}
		return "gone"
	})
	time.Sleep(2 * time.Second) // two ticks
	if got := m.forwarding(); !strings.Contains(got, "table 100:\n-6") {
		t.Errorf("routes that are withdrawn are written again:\n%s", got)
	}
}
