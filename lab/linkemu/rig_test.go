package linkemu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/lab/netem"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// rig is a wire between two interfaces in namespaces of their own.
type rig struct {
	near, far *linux.Netns // each with an interface eth0
	client    *Client
}

const rigMTU = 1500

// patience is when a test that waits gives up.
const patience = 30 * time.Second

// newRig runs a wire until the end of the test.
func newRig(t testing.TB, profiles [2]netem.Profile) rig {
	t.Helper()
	r := rig{near: newNamespace(t), far: newNamespace(t)}
	middle := newNamespace(t)
	addPair(t, r.near, middle, "w0a")
	addPair(t, r.far, middle, "w0b")
	dir := t.TempDir()
	config := Config{Socket: filepath.Join(dir, "wire.sock"), Links: []Link{{
		Ends: [2]string{"near", "far"}, Interfaces: [2]string{"w0a", "w0b"}, MTU: rigMTU, Seed: 1,
		Profiles: profiles,
	}}}
	file := filepath.Join(dir, "wire.json")
	if err := config.Write(file); err != nil {
		t.Fatal(err)
	}
	runWire(t, middle, file)
	r.client = NewClient(config.Socket)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, err := r.client.Links(t.Context())
		if err == nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// runWire runs a process of its own, as a lab does.
func runWire(t testing.TB, inside *linux.Netns, file string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "wire", file)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS=4")
	if err := linux.Start(cmd, inside, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the wire: %v", err)
		}
	})
}

// TestMain lets the test program be the wire: "wire FILE".
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != "wire" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := Run(ctx, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newNamespace(t testing.TB) *linux.Netns {
	t.Helper()
	ns, _ := linuxtest.Netns(t)
	// so that only tests speak
	err := ns.Do(func() error {
		return linux.WriteSysctl("net.ipv6.conf.default.disable_ipv6",
			"1")
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// addPair joins eth0 of a node with an interface of the wire.
func addPair(t testing.TB, node, middle *linux.Netns, name string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	home, err := node.Netlink()
	must(err)
	defer home.Close()
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.PeerName, veth.PeerNamespace = "eth0", name, netlink.NsFd(middle.FD())
	must(home.LinkAdd(veth))
	must(home.LinkSetUp(veth))
	away, err := middle.Netlink()
	must(err)
	defer away.Close()
	end, err := away.LinkByName(name)
	must(err)
	must(away.LinkSetUp(end))
}

// open opens a packet socket on eth0 of a node.
func open(t testing.TB, node *linux.Netns) (fd int) {
	t.Helper()
	err := node.Do(func() (err error) {
		fd, err = openPacket("eth0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
