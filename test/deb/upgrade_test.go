//go:build packaging

package deb_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The smallest network: a client, an edge, a server. The edge is the router of both.
const (
	clientSetUp = `ip link set eth0 up; ip address add 2001:db8:c::1/64 dev eth0 nodad; ip route add default via 2001:db8:c::e`
	edgeSetUp   = `ip link set eth0 up; ip address add 2001:db8:c::e/64 dev eth0 nodad
		ip link set eth1 up; ip address add fd00:5e::e1/64 dev eth1 nodad
		sysctl -qw net.ipv6.conf.all.forwarding=1; ip route add fcbb:bb00:1::/48 via fd00:5e::1`
	serverSetUp = `ip link set eth0 up; ip address add fd00:5e::1/64 dev eth0 nodad; ip route add default via fd00:5e::e1
		ip address add 2001:db8:80::80/128 dev lo; sysctl -qw net.ipv6.conf.all.forwarding=1`

	common = "domain: {block: \"fcbb:bb00::/32\", infrastructure: [\"fd00:5e::/48\"]}\nsecret: " +
		"00112233445566778899aabbccddeeff\n"
	edgeFile = "node: edge\n" + common + `edge:
  interfaces: [{name: eth0, side: external}, {name: eth1, side: internal}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      backends: [{name: server, sid: "fcbb:bb00:1::"}]
`
	serverFile = "node: server\n" + common + `host:
  interfaces: [{name: eth0}]
  sids: [{prefix: "fcbb:bb00:1::/48", behavior: End.OFFER}]
  services:
    - {name: web, vip: "2001:db8:80::80", port: 80}
`
	sourceFile = "node: source\n" + common + `subflows:
  keyFile: /etc/sextant/cflb.key
  ipv4: {fields: source-port, radix: 4}
  rules: [{name: near, destination: 10.9.0.2/32, nextHops: "2,2"}]
`
)

// network is the machines, with the package on them, and the agents running under systemd.
func network(t *testing.T, deb string) (client, edge, server *machine) {
	t.Helper()
	machines := boot(t, "client", "edge", "server")
	client, edge, server = machines["client"], machines["edge"], machines["server"]
	connect(t, client, "eth0", edge, "eth0")
	client.receive("eth0")
	connect(t, edge, "eth1", server, "eth0")
	client.run(clientSetUp)
	edge.run(edgeSetUp)
	server.run(serverSetUp)
	for _, m := range machines {
		m.give(deb, "/root/sextant.deb")
		m.run("dpkg -i sextant.deb")
		// Without a node file there is nothing to start.
		m.run("! systemctl is-active sextant && systemctl is-enabled sextant")
	}
	for m, file := range map[*machine]string{edge: edgeFile, server: serverFile} {
		m.run("cat > /etc/sextant/node.yaml <<'EOF'\n" + file + "EOF\nsystemctl start sextant")
	}
	server.run("systemd-run --quiet --unit=web sextant emulate --name server --listen " +
		"'[2001:db8:80::80]:80' --cores 2 --workers 32")
	client.wait("curl -sf --max-time 2 'http://[2001:db8:80::80]/?ms=1'")
	return client, edge, server
}

// traffic is under way until its end is waited for. Of the requests none may fail, and of the
// echoes none may be missing.
func traffic(client *machine) (wait func()) {
	t := client.t
	var said bytes.Buffer
	cmd := client.command(t.Context(), `ping -i 0.01 -w 600 2001:db8:80::80 > ping.txt & ping=$!
sextant loadgen 'http://[2001:db8:80::80]/' --rate 100 --service 1ms --duration 10m & load=$!
while [ ! -e stop ]; do sleep 0.1; done
kill -INT $load; wait $load; kill -INT $ping; wait $ping; rm stop`)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		client.run("sleep 1; touch stop")
		if err := cmd.Wait(); err != nil {
			t.Errorf("traffic: %v", err)
		}
		if !strings.Contains(said.String(), ", 0 failed") {
			t.Errorf("requests failed: %s", &said)
		}
		t.Logf("%s%d echoes", &said, echoes(t, client.run("cat ping.txt")))
	}
}

// echoes is how many there were, without a gap. What is under way at the end is not told.
func echoes(t *testing.T, said string) (last int) {
	t.Helper()
	for _, found := range regexp.MustCompile(`icmp_seq=(\d+) ttl`).FindAllStringSubmatch(said, -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil || n != last+1 {
			t.Errorf("after echo %d came %s", last, found[1])
		}
		last = n
	}
	if last < 100 {
		t.Errorf("%d echoes in some seconds at 100 per second", last)
	}
	return last
}

// A package's life on three machines: installed, upgraded, reloaded, removed, purged.
func TestLife(t *testing.T) {
	client, edge, server := network(t, pack(t, "1"))
	upgrade(t, client, edge, server)
	reload(t, edge)
	hang(edge)
	late(edge)
	remove(t, server)
	// nobody can say by such a file what is loaded
	edge.run("echo 'nodee: edge' >> /etc/sextant/node.yaml")
	remove(t, edge)
}

// upgrade replaces both agents under traffic: no request fails, no echo is missing.
func upgrade(t *testing.T, client, edge, server *machine) {
	second := pack(t, "2")
	edge.run("echo 'SEXTANT_TIMEOUT=5s' >> /etc/default/sextant")
	wait := traffic(client)
	for _, m := range []*machine{server, edge} {
		before := m.run("systemctl show -p MainPID sextant")
		m.give(second, "/root/sextant.deb")
		m.run("dpkg -i sextant.deb && systemctl is-active sextant && sextant status")
		if after := m.run("systemctl show -p MainPID sextant"); after == before {
			t.Errorf("%s: the agent is still the old one, %s", m.name, after)
		}
		if version := m.run("dpkg-query -W -f '${Version}' sextant"); version != "2" {
			t.Errorf("%s: version %s is installed", m.name, version)
		}
		m.run("systemctl kill -s KILL sextant") // an agent that dies is started again
		m.wait("sextant status")
	}
	wait()
	// what the administrator wrote is kept
	edge.run("grep -q SEXTANT_TIMEOUT=5s /etc/default/sextant")
}

// hang stops the agent as a fault in it might: the watchdog sees to another.
func hang(edge *machine) {
	edge.run(`mkdir -p /etc/systemd/system/sextant.service.d
printf '[Service]\nWatchdogSec=1\n' > /etc/systemd/system/sextant.service.d/test.conf
systemctl daemon-reload && systemctl restart sextant`)
	pid := edge.run("systemctl show -p MainPID --value sextant")
	edge.run("systemctl kill -s STOP sextant")
	edge.wait("test $(systemctl show -p MainPID --value sextant) != " + strings.TrimSpace(pid) +
		" && sextant status")
}

// late has an address come long after the agent wants to listen on it, as at boot.
func late(edge *machine) {
	edge.run(`cp /etc/sextant/node.yaml node.yaml
echo 'api: {metrics: "[fd00:5e::e2]:9477"}' >> /etc/sextant/node.yaml
systemctl stop sextant; systemctl start --no-block sextant; sleep 12`)
	edge.run("ip address add fd00:5e::e2/64 dev eth1 nodad")
	edge.wait("systemctl is-active sextant && sextant status")
	edge.run("mv node.yaml /etc/sextant/node.yaml && systemctl restart sextant")
}

// reload refuses a file with a fault, and what runs runs on; and takes a right one.
func reload(t *testing.T, edge *machine) {
	before := edge.run("sextant service list -o json; systemctl show -p MainPID sextant")
	edge.run("sed -i 's/port: 80/prot: 80/' /etc/sextant/node.yaml")
	if said, err := edge.try("systemctl reload sextant"); err == nil {
		t.Errorf("a file with a fault was taken: %s", said)
	}
	if after := edge.run(
		"sextant service list -o json; systemctl show -p MainPID sextant"); withoutCounters(
		after) != withoutCounters(before) {
		t.Errorf("the node was\n%s\nand is\n%s", before, after)
	}
	edge.run("systemctl is-active sextant")
	if said, _ := edge.try("sextant check -f /etc/sextant/node.yaml"); !strings.Contains(said,
		"prot") {
		t.Errorf("the fault is not named: %s", said)
	}
	edge.run("sed -i 's/prot: 80/port: 80/; s/{name: server,/{name: server, weight: 7,/' " +
		"/etc/sextant/node.yaml && systemctl reload sextant")
	if after := edge.run("sextant backend list -o json"); !strings.Contains(after,
		`"weight": 7`) {
		t.Errorf("a right file was not taken:\n%s", after)
	}
}

// withoutCounters leaves out what moves by itself.
func withoutCounters(text string) string {
	return regexp.MustCompile(
		`(?m)^.*"(packets|bytes|connections|.*PerSecond)":.*$`).ReplaceAllString(text, "")
}

// remove ends forwarding, purge takes the state away.
func remove(t *testing.T, edge *machine) {
	if pins := edge.run("ls /sys/fs/bpf"); !strings.Contains(pins, "sextant") {
		t.Fatalf("nothing is pinned: %q", pins)
	}
	edge.run("dpkg -r sextant")
	if left := edge.run("find /sys/fs/bpf/sextant ! -type d; ip -d link show dev eth0 | grep xdp " +
		"|| true; ls /usr/bin/sextant 2>/dev/null || true"); left != "" {
		t.Errorf("removed, and left are %q", left)
	}
	edge.run("test -d /var/lib/sextant -a -e /etc/default/sextant") // until the purge
	edge.run("dpkg -P sextant")
	edge.run("test ! -e /var/lib/sextant -a ! -e /etc/default/sextant -a ! -e /run/sextant")
	edge.run("test -e /etc/sextant/node.yaml") // the operator's own
}

// The unit is what systemd takes without complaint, and gives the agent no more than it needs.
func TestUnit(t *testing.T) {
	m := boot(t, "edge")["edge"]
	m.give(pack(t, "1"), "/root/sextant.deb")
	m.run("dpkg -i sextant.deb && dpkg --verify sextant")
	unit := "/usr/lib/systemd/system/sextant.service"
	if said := m.run("systemd-analyze verify --man=no " + unit); said != "" {
		t.Errorf("systemd-analyze: %s", said)
	}
	m.run("systemd-analyze security --offline=yes --threshold=35 " + unit) // "OK" is below 50
	// a role that is a thread in a network namespace: the unit forbids to enter one
	m.run("printf %032d 5 > /etc/sextant/cflb.key && chmod 600 /etc/sextant/cflb.key; " +
		"cat > /etc/sextant/node.yaml <<'EOF'\n" + sourceFile + "EOF\n" +
		"systemctl start sextant; sleep 1")
	if said := m.run("sextant status"); strings.Contains(said, "Warning") {
		t.Errorf("role subflows under the unit: %s", said)
	}
}
