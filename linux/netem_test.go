package linux_test

import (
	"errors"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// What is said of netem holds in a namespace of its own, and asking leaves nothing in the caller's.
func TestHasNetem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	has, err := linux.HasNetem()
	if err != nil {
		t.Fatal(err)
	}
	ns := newNetns(t)
	err = ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		at := netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
			Parent: netlink.HANDLE_ROOT}
		return netlink.QdiscAdd(netlink.NewNetem(at, netlink.NetemQdiscAttrs{}))
	})
	if has && err != nil || !has && !errors.Is(err, unix.ENOENT) {
		t.Errorf("the kernel has netem: %v, but adding it gives %v", has, err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	qdiscs, err := netlink.QdiscList(lo)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qdiscs {
		if q.Type() == "netem" {
			t.Error("the caller's loopback interface has netem")
		}
	}
}
