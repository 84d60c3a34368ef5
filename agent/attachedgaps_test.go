package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// xdpOf is the number of the XDP program that the kernel runs on an interface, 0 if there is none.
func (m *machine) xdpOf(name string) (id uint32) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		device, err := netlink.LinkByName(name)
		if err == nil && device.Attrs().Xdp != nil {
			id = device.Attrs().Xdp.ProgId
		}
		return nil
	}))
	return id
}

// awaitXDP waits until the kernel runs a program, of a number if that is not 0.
func (m *machine) awaitXDP(name string, want uint32) {
	m.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		id := m.xdpOf(name)
		if id != 0 && (want == 0 || id == want) {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("on %s runs program %d, want %d (0: any)", name, id, want)
		}
	}
}

// An interface that is gone keeps no other one from having its program again.
func TestOneInterfaceGone(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(func() error { return addLink("edge1") }))
	a := m.start(strings.Replace(nodeText, "[{name: edge0}]", "[{name: edge0}, {name: edge1}]", 1))
	defer a.stop()
	before := m.xdpOf("edge1")
	must(t, m.ns.Do(func() error { return removeLink("edge0") }))
	must(t, m.ns.Do(func() error { return remakeLink("edge1") }))
	m.awaitXDP("edge1", before)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, err := a.Status(t.Context())
		must(t, err)
		wrong := ""
		for _, p := range s.Programs {
			if (p.Fault != "") != (p.Interface == "edge0") {
				wrong = p.Name + " on " + p.Interface + ": fault " + p.Fault
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
}

// The head-end's own interfaces are made anew, with programs that know them by number.
func TestLoopMadeAnew(t *testing.T) {
	m := newMachine(t)
	a := m.start(m.text(routerText))
	defer a.stop()
	must(t, m.ns.Do(func() error { return removeLink("srv6loop") }))
	m.awaitXDP("srv6loop-in", 0)
}

// An end of the loop that was taken down is up again.
func TestLoopIsBroughtUp(t *testing.T) {
	m := newMachine(t)
	a := m.start(m.text(routerText))
	defer a.stop()
	for _, end := range []string{"srv6loop", "srv6loop-in"} {
		m.ip("link set " + end + " down")
		await(t, "up", func() string {
			flags := ""
			must(t, m.ns.Do(func() error {
				device, err := net.InterfaceByName(end)
				if err == nil {
					flags, _, _ = strings.Cut(device.Flags.String(), "|")
				}
				return err
			}))
			return flags
		})
		m.awaitXDP("srv6loop-in", 0)
	}
}

// While the file system of the pins is unmounted, no program is off its interface: the agent holds
// the links. What was pinned is pinned again.
func TestPinsGoWithoutPrograms(t *testing.T) {
	m := newMachine(t)
	mount := filepath.Join(m.dir, "bpf")
	must(t, os.Mkdir(mount, 0o755))
	must(t, unix.Mount("bpf", mount, "bpf", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	t.Cleanup(func() { must(t, m.unload()) })
	m.pins = filepath.Join(mount, "node")
	a := m.start(nodeText)
	defer a.stop()
	before := m.linkIDs()
	must(t, unix.Unmount(mount, unix.MNT_DETACH))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(filepath.Join(m.pins, "host", "link_host_sockets"))
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the pins are not there again: %v", err)
		}
	}
	m.awaitAttached(a)
	if now := m.linkIDs(); now != before {
		t.Errorf("the links are %s, they were %s: programs were off in between", now, before)
	}
}

// linkIDs are the kernel's numbers of the links that are pinned; a link that went never comes
// back.
func (m *machine) linkIDs() string {
	m.t.Helper()
	var links []string
	for _, line := range m.state() {
		if strings.Contains(line, ": link ") {
			links = append(links, line)
		}
	}
	return strings.Join(links, "; ")
}
