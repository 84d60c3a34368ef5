package agent_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/pool"
)

// An agent that starts again goes on where the last one was: the same links, chains, counters and
// changes of the configuration.
func TestTakeOver(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	ctx := t.Context()
	sid, err := config.ParseSID("fcbb:bb00:7::")
	must(t, err)
	_, err = a.PutBackend(ctx, api.Create, "web", "web7", api.BackendSpec{SID: &sid})
	must(t, err)
	draining := config.Draining
	_, err = a.PutBackend(ctx, api.Update, "web", "web1", api.BackendSpec{State: &draining})
	must(t, err)
	_, err = a.DeleteService(ctx, "rest", api.Host)
	must(t, err)
	m.count("edge", "service_traffic", 1, 4711)
	m.count("host", "served", 1, 815)
	chains, links, before := m.chains(), m.links(), m.numbers(a)
	a.stop()
	same(t, "links of a node without agent", links, m.links())

	a = m.start(nodeText)
	defer a.stop()
	after := m.numbers(a)
	if !slices.Equal(before, after) || !strings.Contains(strings.Join(before, " "), "web4711") {
		t.Errorf("services\n%q\nwere before\n%q", after, before)
	}
	same(t, "links after the take-over", links, m.links())
	for bucket, chain := range m.chains() {
		if chain.IDs[0] != chains[bucket].IDs[0] {
			t.Fatalf("bucket %d: first candidate %d, was %d", bucket, chain.IDs[0],
				chains[bucket].IDs[0])
		}
	}
	status, err := a.Status(ctx)
	must(t, err)
	if len(status.Programs) != 4 {
		t.Errorf("programs %+v", status.Programs)
	}
}

// count puts a number where the kernel counts.
func (m *machine) count(role, name string, index uint32, value uint64) {
	m.t.Helper()
	table, err := ebpf.LoadPinnedMap(filepath.Join(m.pins, role, name), nil)
	must(m.t, err)
	defer table.Close()
	cpus, err := ebpf.PossibleCPU()
	must(m.t, err)
	values := make([][]byte, cpus)
	for i := range values {
		values[i] = make([]byte, table.ValueSize())
	}
	binary.NativeEndian.PutUint64(values[0], value)
	must(m.t, table.Put(index, values))
}

// numbers are the counters of all services.
func (m *machine) numbers(a *running) []string {
	m.t.Helper()
	services, err := a.Services(m.t.Context(), "", "")
	must(m.t, err)
	var list []string
	for _, s := range services {
		text := fmt.Sprint(s.Name, s.Packets, s.Bytes)
		if s.Edge != nil {
			text += fmt.Sprint(s.Edge.Backends)
		} else {
			text += fmt.Sprint(s.Host.Offered, s.Host.Accepted, s.Host.Busy, s.Host.Threshold)
		}
		list = append(list, text)
	}
	return list
}

// chains of the first service of the edge.
func (m *machine) chains() []pool.Chain {
	m.t.Helper()
	chains := m.chainsOf(1)
	if len(chains) != config.DefaultBuckets {
		m.t.Fatalf("%d chains are pinned", len(chains))
	}
	return chains
}

// links is the part of the state that tells which links there are, not which program they hold.
func (m *machine) links() []string {
	var links []string
	for _, line := range m.state() {
		if link, _, ok := strings.Cut(line, ", program"); ok {
			links = append(links, link)
		}
	}
	return links
}

// A node file that names fewer roles than the last one takes the programs of the others away.
func TestRoleGoesWithTheFile(t *testing.T) {
	m := newMachine(t)
	m.start(nodeText).stop()
	m.breaks = true
	i, j := strings.Index(nodeText, "edge:\n"), strings.Index(nodeText, "host:\n")
	a := m.start(nodeText[:i] + nodeText[j:])
	defer a.stop()
	for _, line := range m.state() {
		if strings.HasPrefix(line, "edge/") || strings.HasPrefix(line, "edge0") &&
			line != "edge0: XDP program 0" {
			t.Errorf("without an edge there is %s", line)
		}
	}
}

// Only unloading detaches.
func TestUnload(t *testing.T) {
	m := newMachine(t)
	nothing := m.state()
	m.start(nodeText).stop()
	if slices.Contains(m.state(), "edge0: XDP program 0") || slices.Contains(m.state(),
		"host0: XDP program 0") {
		t.Errorf("the end of the agent detached:\n%s", strings.Join(m.state(), "\n"))
	}
	must(t, m.unload())
	same(t, "after unloading", nothing, m.state())
	must(t, m.unload())
}

// An agent that can't run says so in one line with the mend, and changes nothing, whether an
// earlier one left programs or none did.
func TestRefusedStart(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(m *machine)
		pairs   []string // words of the node file
		want    string
	}{
		{"interface of the edge", nil, []string{"{name: edge0}", "{name: edge0}, {name: none0}"},
			"attach edge to interface none0: no such interface here; ip link lists them"},
		{"interface of the host", nil, []string{"name: host0", "name: none0"},
			"no such interface here; ip link lists them"},
		{"side of the edge too", nil, []string{"{name: host0}", "{name: host0}, {name: none0}",
			"{name: edge0}", "{name: edge0, side: external}"},
			"no such interface here; ip link lists them"},
		{"cgroup", nil, []string{"CGROUP", "/sys/fs/cgroup/none"},
			"name a directory of a cgroup2 file system"},
		{"foreign program", func(m *machine) { m.foreignProgram("foreign0") },
			[]string{"{name: edge0}", "{name: edge0}, {name: foreign0}"},
			"another XDP program is there: remove it"},
		{"no native XDP", nil, []string{"{name: edge0}", "{name: edge0}, {name: lo, mode: native}"},
			"the driver has no native XDP: use mode auto or generic"},
		{"no room for the socket", nil, []string{"DIR/agent.sock", "/proc/none/agent.sock"},
			"choose another api.socket"},
		{"taken port", func(m *machine) { m.listen("[::1]:9477") },
			[]string{"agent.sock}", "agent.sock, metrics: '[::1]:9477'}"},
			"choose another api.metrics"},
		{"no room for the state", nil, []string{"DIR/state", "/proc/none"},
			"name another one as state in the node file"},
	} {
		for _, before := range []string{"nothing", "an agent"} {
			t.Run(c.name+" after "+before, func(t *testing.T) {
				m := newMachine(t)
				if before == "an agent" {
					m.start(nodeText).stop()
				}
				if c.prepare != nil {
					c.prepare(m)
				}
				was := m.state()
				m.breaks = true // that is not what is refused here
				got := m.fails(m.text(nodeText, c.pairs...))
				if !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
					t.Errorf("error %q, want one line with %q", got, c.want)
				}
				same(t, "after the refusal", was, m.state())
				if _, err := os.Stat(m.pins); before == "nothing" && err == nil {
					t.Errorf("%s is there", m.pins)
				}
				m.start(nodeText).stop()
			})
		}
	}
}

// Without privileges the agent says which it lacks, in one line, and what an earlier agent left
// goes on.
func TestWithoutPrivileges(t *testing.T) {
	m := newMachine(t)
	m.start(nodeText).stop()
	was := m.state()
	file := filepath.Join(m.dir, "node.yaml")
	must(t, os.WriteFile(file, []byte(m.text(nodeText)), 0o600))
	var stderr strings.Builder
	cmd := exec.Command(os.Args[0], "helper", "powerless", file)
	cmd.Stderr = &stderr
	must(t, m.ns.Do(cmd.Start))
	const want = "missing privilege: this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, " +
		"CAP_SYS_ADMIN; start it as root, for example with sudo\n"
	if err := cmd.Wait(); err == nil || stderr.String() != want {
		t.Errorf("it ended with %v and said %q, want %q", err, stderr.String(), want)
	}
	same(t, "after the refusal", was, m.state())
}

// foreignProgram makes an interface on which somebody else's XDP program runs.
func (m *machine) foreignProgram(iface string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		if err := addLink(iface); err != nil {
			return err
		}
		device, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: passAll,
			License: "GPL"})
		if err != nil {
			return err
		}
		defer program.Close()
		return netlink.LinkSetXdpFd(device, program.FD())
	}))
}

// listen takes a port.
func (m *machine) listen(address string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			m.t.Cleanup(func() { l.Close() })
		}
		return err
	}))
}
