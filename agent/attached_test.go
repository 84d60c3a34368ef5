package agent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// A program that is taken off its interface by someone else is attached again, whatever took it
// off, and the tables behind it are the former ones.
func TestProgramsAreAttachedAgain(t *testing.T) {
	for name, takeOff := range map[string]func(m *machine) error{
		"interface made anew": func(m *machine) error {
			return m.ns.Do(
				func() error { return remakeLink("edge0") })
		},
		"host's made anew": func(m *machine) error {
			return m.ns.Do(
				func() error { return remakeLink("host0") })
		},
		"link detached": func(m *machine) error {
			return detachLink(m, "edge",
				"link_edge_xdp_edge0")
		},
		"TC link detached": func(m *machine) error {
			return detachLink(m, "host",
				"link_host_leave_tc_host0")
		},
		"sockets detached": func(m *machine) error {
			return detachLink(m, "host",
				"link_host_sockets")
		},
		"pins removed": removePins,
		"a table's pin": func(m *machine) error {
			return os.Remove(filepath.Join(m.pins,
				"edge", "services"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			r := m.start(nodeText)
			defer r.stop()
			services := m.pinnedServices()
			must(t, takeOff(m))
			m.awaitAttached(r)
			if after := m.pinnedServices(); len(services) == 0 || !slices.Equal(after, services) {
				t.Errorf("services %q, before %q", after, services)
			}
			if changes, err := r.apply(m.text(nodeText), false); err != nil || len(changes) > 0 {
				t.Errorf("apply says %v, %v", changes, err)
			}
		})
	}
}

// removePins removes all pins of an agent at once: it makes them anew as it finds some gone.
func removePins(m *machine) error {
	away := m.pins + "-away"
	return errors.Join(os.Rename(m.pins, away), os.RemoveAll(away))
}

// Head-end and egress are attached again, too.
func TestPoliciesAreAttachedAgain(t *testing.T) {
	for name, takeOff := range map[string]func(m *machine) error{
		"head-end's interface made anew": func(
			m *machine) error {
			return m.ns.Do(func() error { return remakeLink("edge0") })
		},
		"egress's made anew": func(
			m *machine) error {
			return m.ns.Do(func() error { return remakeLink("host0") })
		},
		"pins removed": removePins,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			r := m.start(routerText)
			defer r.stop()
			must(t, takeOff(m))
			r.await("programs on both interfaces", func(s api.Status) bool {
				missing := m.ns.Do(func() error { return hasXDP("edge0", "host0") })
				for _, pin := range []string{"headend/link_headend_xdp_edge0",
					"merge/link_merge_xdp_host0"} {
					_, err := os.Stat(filepath.Join(m.pins, pin))
					missing = errors.Join(missing, err)
				}
				return missing == nil && faultOf(s, "edge0")+faultOf(s, "host0") == ""
			})
		})
	}
}

// While an edge has no interface, everything says so, and routing is not told of its VIPs.
func TestEdgeWithoutItsInterface(t *testing.T) {
	m := newMachine(t)
	r := m.start(nodeText)
	defer r.stop()
	if got := m.vipRoutes(); len(got) != 2 {
		t.Fatalf("routes %v", got)
	}
	must(t, m.ns.Do(func() error { return removeLink("edge0") }))
	r.await("a fault of edge0", func(s api.Status) bool { return faultOf(s, "edge0") != "" })
	if got := m.vipRoutes(); len(got) != 0 {
		t.Errorf("routes %v while nothing processes packets", got)
	}
	if got := m.blackholesOf(unix.RTPROT_KERNEL); len(got) != 2 {
		t.Errorf("of what comes for VIPs all the same, %v is dropped", got)
	}
	status, err := r.Status(t.Context())
	must(t, err)
	if !slices.ContainsFunc(status.Warnings,
		func(w string) bool { return strings.Contains(w, "edge0 does not exist") }) {
		t.Errorf("warnings %q", status.Warnings)
	}
	if got := r.metric(`sextant_program_attached{interface="edge0",name="edge"}`); got != "0" {
		t.Errorf("metric %q", got)
	}
	for _, dryRun := range []bool{true, false} {
		if _, err := r.apply(m.text(nodeText), dryRun); err == nil || !strings.Contains(err.Error(),
			"edge0") {
			t.Errorf("apply of what should run, dry %v: %v", dryRun, err)
		}
	}
	must(t, m.ns.Do(func() error { return addLink("edge0") }))
	m.awaitAttached(r)
	if got := m.vipRoutes(); len(got) != 2 {
		t.Errorf("routes %v after the interface came back", got)
	}
	if got := m.blackholesOf(unix.RTPROT_KERNEL); len(got) != 0 {
		t.Errorf("routes %v are left", got)
	}
	if got := r.metric(`sextant_program_attached{interface="edge0",name="edge"}`); got != "1" {
		t.Errorf("metric %q", got)
	}
}

// A foreign program in place of ours is named, and stays.
func TestForeignProgramIsNamed(t *testing.T) {
	m := newMachine(t)
	r := m.start(nodeText)
	defer r.stop()
	m.foreignProgram("fresh")
	must(t, m.ns.Do(func() error {
		return errors.Join(removeLink("edge0"),
			renameLink("fresh", "edge0"))
	}))
	r.await("the foreign program", func(s api.Status) bool {
		return strings.Contains(faultOf(s, "edge0"), "foreign program") ||
			strings.Contains(faultOf(s, "edge0"), "another XDP program")
	})
	must(t, m.ns.Do(func() error { return remakeLink("edge0") }))
	m.awaitAttached(r)
}

func faultOf(s api.Status, on string) string {
	for _, p := range s.Programs {
		if p.Interface == on && p.Fault != "" {
			return p.Fault
		}
	}
	return ""
}

// await waits until the status is as wanted.
func (r *running) await(what string, wanted func(api.Status) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := r.Status(r.t.Context())
		must(r.t, err)
		if wanted(s) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("no %s: %+v", what, s)
		}
	}
}

// awaitAttached waits until the kernel itself, asked by another way than the agent's, has all
// programs and pins.
func (m *machine) awaitAttached(r *running) {
	m.t.Helper()
	var missing error
	r.await("program on its interface", func(s api.Status) bool {
		missing = m.ns.Do(func() error { return m.missing(s) })
		return missing == nil
	})
}

func (m *machine) missing(s api.Status) error {
	var faults []error
	for _, p := range s.Programs {
		if p.Fault != "" {
			faults = append(faults, errors.New(p.Fault))
		}
	}
	for _, pin := range []string{
		"edge/link_edge_xdp_edge0", "edge/services", "edge/tables", "host/link_host_xdp_host0",
		"host/link_host_leave_tc_host0",
		"host/link_host_sockets",
	} {
		l, err := link.LoadPinnedLink(filepath.Join(m.pins, pin), nil)
		if !strings.Contains(pin, "link_") {
			_, err = os.Stat(filepath.Join(m.pins, pin))
		}
		faults = append(faults, err)
		if l == nil {
			continue
		}
		info, err := l.Info()
		faults = append(faults, err, l.Close())
		if err == nil && (info.XDP() != nil && info.XDP().Ifindex == 0 || info.TCX() != nil &&
			info.TCX().Ifindex == 0 ||
			info.Cgroup() != nil && info.Cgroup().CgroupId == 0) {
			faults = append(faults, fmt.Errorf("%s leads nowhere", pin))
		}
	}
	return errors.Join(append(faults, hasXDP("edge0", "host0"))...)
}

// hasXDP asks the kernel whether interfaces have an XDP program.
func hasXDP(names ...string) error {
	for _, name := range names {
		device, err := netlink.LinkByName(name)
		if err != nil || device.Attrs().Xdp == nil || !device.Attrs().Xdp.Attached {
			return fmt.Errorf("%s has no XDP program (%v)", name, err)
		}
	}
	return nil
}

// vipRoutes lists the destinations of the routes for VIPs that routing daemons may redistribute:
// those of the agent's protocol.
func (m *machine) vipRoutes() []string { return m.blackholesOf(94) }

// blackholesOf lists the destinations of the blackhole routes of a protocol.
func (m *machine) blackholesOf(protocol netlink.RouteProtocol) (list []string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL,
			&netlink.Route{Type: unix.RTN_BLACKHOLE, Table: unix.RT_TABLE_MAIN},
			netlink.RT_FILTER_TYPE|netlink.RT_FILTER_TABLE)
		for _, r := range routes {
			if r.Protocol == protocol {
				list = append(list, r.Dst.String())
			}
		}
		return err
	}))
	return list
}

func removeLink(name string) error {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkDel(device)
}

func remakeLink(name string) error { return errors.Join(removeLink(name), addLink(name)) }

func renameLink(from, to string) error {
	device, err := netlink.LinkByName(from)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetDown(device), netlink.LinkSetName(device, to),
		netlink.LinkSetUp(device))
}

func detachLink(m *machine, role, pin string) error {
	l, err := link.LoadPinnedLink(filepath.Join(m.pins, role, pin), nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Detach(), l.Close())
}

// pinnedServices are the keys of the table of services.
func (m *machine) pinnedServices() (keys []string) {
	m.t.Helper()
	table, err := ebpf.LoadPinnedMap(filepath.Join(m.pins, "edge", "services"), nil)
	must(m.t, err)
	defer table.Close()
	var key, value []byte
	for entries := table.Iterate(); entries.Next(&key, &value); {
		keys = append(keys, fmt.Sprintf("%x %x", key, value))
	}
	slices.Sort(keys)
	return keys
}
