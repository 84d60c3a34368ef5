package linux

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HasNetem says whether the kernel has the queueing discipline netem, which delays and loses
// packets (tc-netem(8)). It tries it in a network namespace without a name, of which nothing is
// left.
func HasNetem() (bool, error) {
	has := false
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return Failed(err, "make a network namespace to try netem in")
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return Failed(err, "find the loopback interface")
		}
		attributes := netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index,
			Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		err = netlink.QdiscAdd(netlink.NewNetem(attributes, netlink.NetemQdiscAttrs{}))
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		has = err == nil
		return Failed(err, "try netem on the loopback interface")
	})
	return has, err
}
