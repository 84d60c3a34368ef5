package datapath

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
)

// TestQueues: frames that arrive by several queues, on several CPUs at once, are all counted, and
// none is counted twice.
func TestQueues(t *testing.T) {
	w := newWorld(t)
	var cpus unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &cpus))
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "many", 4, 4
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "manypeer",
		PeerNumTxQueues: 4, PeerNumRxQueues: 4}))
	setUp(t, "manypeer")
	setUp(t, "many")
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "many", Side: External, Mode: Native}}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP6, Port: 80, Protocol: 6}, 1, testBuckets))
	must(t, commit(e))
	t.Cleanup(func() { must(t, Unload(w.dir)) })

	const frames = 5000
	packet := packettest.Web6("S").To(packettest.VIP6, 81) // of which the edge knows no service
	frame := packettest.FromClient().Frame(t, packet.Bytes(t))
	var senders sync.WaitGroup
	sent := 0
	for cpu := range 1024 {
		if !cpus.IsSet(cpu) || sent == 4*frames {
			continue
		}
		sent += frames
		senders.Go(func() { w.sendFrom(t, cpu, "manypeer", frame, frames) })
	}
	senders.Wait()

	var perCPU []uint64
	reason := uint32(slices.Index(reasonNames(), "no_service"))
	for deadline := time.Now().Add(wirePatience); ; time.Sleep(time.Millisecond) {
		must(t, e.maps["drops"].Lookup(reason, &perCPU))
		if total := sum(perCPU); total >= uint64(sent) || time.Now().After(deadline) {
			break
		}
	}
	busy := 0
	for _, count := range perCPU {
		if count > 0 {
			busy++
		}
	}
	drops, err := e.Drops()
	must(t, err)
	for _, d := range drops {
		if d.Name == "no_service" && d.Packets != uint64(sent) || sum(perCPU) != uint64(sent) {
			t.Errorf("of %d frames, %d are counted, by CPU %v", sent, d.Packets, perCPU)
		}
	}
	if cpus.Count() > 1 && busy < 2 {
		t.Errorf("frames were sent from %d CPUs, and counted on %d", cpus.Count(), busy)
	}
}

func sum(counts []uint64) (total uint64) {
	for _, c := range counts {
		total += c
	}
	return total
}

// sendFrom sends a frame many times from a CPU.
func (w *world) sendFrom(t *testing.T, cpu int, device string, frame []byte, count int) {
	runtime.LockOSThread() // never unlocked: it is bound to the CPU
	var only unix.CPUSet
	only.Set(cpu)
	if err := errors.Join(unix.Setns(w.netns, unix.CLONE_NEWNET),
		unix.SchedSetaffinity(0, &only)); err != nil {
		t.Error(err)
		return
	}
	out, to := openWireOn(t, device),
		&unix.SockaddrLinklayer{Ifindex: mustLink(t, device).Attrs().Index}
	for range count {
		for {
			err := unix.Sendto(out.fd, frame, 0, to)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.ENOBUFS) {
				t.Error(err)
				return
			}
		}
	}
}

// TestBond: on a bond, the program runs natively in the devices below, or the error says what to
// do.
func TestBond(t *testing.T) {
	w := newWorld(t)
	bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond"})
	bond.Mode = netlink.BOND_MODE_ACTIVE_BACKUP
	if err := netlink.LinkAdd(bond); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("missing kernel feature: bonding")
	} else {
		must(t, err)
	}
	for _, name := range []string{"near", "far"} {
		device, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.LinkSetDown(device))
		must(t, netlink.LinkSetMaster(device, bond))
	}
	setUp(t, "bond")
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "bond", Side: External, Mode: Native}}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	must(t, commit(e))
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	if got := modeOf(mustLink(t, "bond").Attrs().Index); got != Native {
		t.Errorf("attached in %s mode", got)
	}
}

// TestVLANDevice: a VLAN device has no native XDP; the operator is told, and frames are looked at
// all the same.
func TestVLANDevice(t *testing.T) {
	w := newWorld(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = "near.5", w.near
	if err := netlink.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: 5}); errors.Is(err,
		unix.EOPNOTSUPP) {
		t.Skip("missing kernel feature: 802.1Q VLAN devices")
	} else {
		must(t, err)
	}
	setUp(t, "near.5")
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "near.5", Side: External, Mode: Native}}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	if err := commit(e); err == nil || !strings.Contains(err.Error(), "near.5") ||
		!strings.Contains(err.Error(), "generic") {
		t.Errorf("natively: error %v", err)
	}
	config.Interfaces[0].Mode = Auto
	e, err = OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	attachments, err := e.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	if len(attachments) != 1 || attachments[0].Mode != Generic || attachments[0].Warning == "" {
		t.Errorf("attached as %+v", attachments)
	}
}

// TestNameWithADot: interfaces whose names have a dot, as those of VLANs do, are attached to, taken
// over and released as others are.
func TestNameWithADot(t *testing.T) {
	w := newWorld(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "uplink.7"
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "uplinkpeer"}))
	setUp(t, "uplink.7")
	index := mustLink(t, "uplink.7").Attrs().Index
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	attach := func(edgeOn, hostOn string) {
		t.Helper()
		config := edgeConfig(t)
		config.Interfaces = []EdgeInterface{{Name: edgeOn, Side: External}}
		e, err := OpenEdge(filepath.Join(w.dir, "edge"), config)
		must(t, err)
		defer e.Close()
		must(t, commit(e))
		h, err := OpenHost(filepath.Join(w.dir, "host"), hostConfigOn(t, hostOn))
		must(t, err)
		defer h.Close()
		_, err = h.Commit()
		must(t, err)
	}
	attach("uplink.7", "uplinkpeer")
	attach("uplink.7", "uplinkpeer")
	if modeOf(index) == Auto {
		t.Error("the edge is not attached")
	}
	attach("near", "uplink.7")
	attach("near", "nearpeer")
	if got := modeOf(index); got != Auto {
		t.Errorf("not released: attached in mode %v", got)
	}
}

// TestGenericModeBelow: where a program runs in generic mode on an interface that has its frames
// from others, GRO is off at those, which would join segments to packets that fit no path.
func TestGenericModeBelow(t *testing.T) {
	w := newWorld(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "over"
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	must(t, netlink.LinkSetMaster(mustLink(t, "near"), mustLink(t, "over")))
	must(t, linux.SetOffload("near", linux.GRO, true))
	setUp(t, "over")
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "over", Side: External}}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	_, err = e.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	said, err := exec.Command("ethtool", "-k", "near").CombinedOutput()
	must(t, err)
	if !strings.Contains(string(said), "generic-receive-offload: off") {
		t.Errorf("GRO is on below the program:\n%s", said)
	}
}
