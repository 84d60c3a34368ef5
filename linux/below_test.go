package linux_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// Ports of a bridge are below it; the peer of a veth is not.
func TestBelow(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	err := ns.Do(func() error {
		if err := linuxtest.IP("link add over type bridge\n" +
			"link add port type veth peer name peer\nlink add alone type ifb\n" +
			"link set port master over"); err != nil {
			return err
		}
		for name, want := range map[string][]string{"over": {"port"}, "port": nil, "peer": nil,
			"alone": nil, "missing": nil} {
			got, elsewhere, err := linux.Below(name)
			if err != nil || elsewhere || !slices.Equal(got, want) {
				t.Errorf("below %s: %q, %v, %v; want %q", name, got, elsewhere, err, want)
			}
		}
		// Where the kernel has VLANs, their device is below, and so are its ports.
		over, err := netlink.LinkByName("over")
		if err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = "over.5", over.Attrs().Index
		err = netlink.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: 5})
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		got, _, below := linux.Below("over.5")
		if !slices.Equal(got, []string{"over", "port"}) {
			t.Errorf("below a VLAN of the bridge: %q", got)
		}
		return errors.Join(err, below)
	})
	if err != nil {
		t.Fatal(err)
	}
}
