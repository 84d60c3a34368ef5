package fabric

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/linux/linuxtest"
)

// A port counts packets: short and long ones take as much of its rate and of its queue, which holds
// so many, and drops the rest.
func TestPortCountsPackets(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	err := ns.Do(func() error {
		if err := linuxtest.IP(`link add port type veth peer name other
			link set port up
			link set other up
			-6 addr add 2001:db8::1/64 dev port nodad
			-6 neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev port`); err != nil {
			return err
		}
		tc := exec.Command("tc", strings.Fields("qdisc add dev port root "+port())...)
		if out, err := tc.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := net.Dial("udp", "[2001:db8::2]:9")
		if err != nil {
			return err
		}
		defer out.Close()
		for i := range 10 * portQueue {
			if _, err := out.Write(make([]byte, 1+i%2*1400)); err != nil {
				return err
			}
		}
		link, err := netlink.LinkByName("port")
		if err != nil {
			return err
		}
		list, err := netlink.QdiscList(link)
		if err != nil {
			return err
		}
		s := list[0].Attrs().Statistics
		if s.Basic.Bytes != uint64(s.Basic.Packets)*packetUnit ||
			s.Queue.Backlog != s.Queue.Qlen*packetUnit || s.Queue.Drops == 0 ||
			s.Queue.Qlen < 2 || s.Queue.Qlen > portQueue {
			t.Errorf("sent %+v, waiting %+v", *s.Basic, *s.Queue)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
