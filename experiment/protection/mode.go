package protection

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"sextant/datapath"
	"sextant/linux"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// mode is what the routers do with traffic between the hosts.
type mode string

// The modes.
const (
	onL1       mode = "L1"         // over the first path
	onL2       mode = "L2"         // over the second path
	duplicated mode = "duplicated" // over both, and both copies go on to the host, as in the paper
	eliminated mode = "eliminated" // over both, and the first copy goes on
)

// edge is a router in front of a host, and what it does with what goes to the other one.
type edge struct {
	name, source string // the router and its address
	far          string // the host behind the other router
	decapsulates string // SID of the other router, the kernel's: a copy goes on
	merges       string // SID of the other router: a packet goes on once
	own          string // the router's own of the same kind, with its length
}

var edges = [2]edge{
	{"ingress", "fd00:5e::1", serverAddress, "fcbb:bb00:2:d6::", "fcbb:bb00:2:0:f::",
		"fcbb:bb00:1:0:f::/80"},
	{"egress", "fd00:5e::2", clientAddress, "fcbb:bb00:1:d6::", "fcbb:bb00:1:0:f::",
		"fcbb:bb00:2:0:f::/80"},
}

var infrastructure = netip.MustParsePrefix("fd00:5e::/48")

// The history tells apart what 100 Mbit/s of the smallest packets send in the paper's greatest
// difference in delay, 90 ms.
var recovery = frer.Settings{HistoryLog2: 15, Bits: frer.BitsTLV, Reset: frer.DefaultReset}

// steer sets the routers up, calls body, and removes what it has set up; the rest goes with the
// lab.
func (a *arena) steer(s setting, body func() error) error {
	if s.Mode == onL1 || s.Mode == onL2 {
		return body() // by the routes of the lab
	}
	for _, e := range edges {
		loaded, err := a.protect(e, s.Mode)
		defer loaded.close()
		if err != nil {
			return fmt.Errorf("set up %s: %w", e.name, err)
		}
	}
	return body()
}

// loaded is what runs on a router.
type loaded struct {
	headend *datapath.Headend
	merge   *datapath.Merge
}

func (l *loaded) close() {
	if l.headend != nil {
		l.headend.Close()
	}
	if l.merge != nil {
		l.merge.Close()
	}
}

// protect sends what goes to the far host over both paths.
func (a *arena) protect(e edge, m mode) (*loaded, error) {
	l := &loaded{}
	node, err := a.Node(e.name)
	if err != nil {
		return l, err
	}
	return l, a.Spaces[e.name].Do(func() error {
		if m == eliminated {
			if err := l.openMerge(filepath.Join(node.BPF, "merge"), e); err != nil {
				return err
			}
		}
		return l.openHeadend(filepath.Join(node.BPF, "headend"), e, m)
	})
}

func (l *loaded) openMerge(dir string, e edge) error {
	own := netip.MustParsePrefix(e.own)
	config := datapath.MergeConfig{
		Domain: datapath.Domain{
			Infrastructure: []netip.Prefix{infrastructure},
		},
		SIDs: []datapath.MergeSID{{Prefix: own}},
	}
	for _, p := range paths {
		if err := detach(p.link); err != nil {
			return err
		}
		config.Interfaces = append(config.Interfaces,
			datapath.MergeInterface{Name: p.link, Mode: datapath.Native})
	}
	var err error
	if l.merge, err = datapath.OpenMerge(dir, config); err != nil {
		return err
	}
	if err := l.merge.SetInstance(0, datapath.Instance{SID: own, Flows: []uint32{1, 2},
		Rules: recovery}); err != nil {
		return err
	}
	_, err = l.merge.Commit()
	return err
}

func (l *loaded) openHeadend(dir string, e edge, m mode) error {
	if err := detach("host"); err != nil {
		return err
	}
	config := datapath.HeadendConfig{
		Domain: datapath.Domain{
			Source: netip.MustParseAddr(e.source),
		},
		HopLimit:   64,
		Epoch:      datapath.EpochOf(time.Now()),
		Interfaces: []datapath.HeadendInterface{{Name: "host", Mode: datapath.Native}},
	}
	policy := srpolicy.Policy{Name: "both",
		Paths: []srpolicy.CandidatePath{{Name: "both", Action: srpolicy.Mirror}}}
	for i, p := range paths {
		config.Uplinks = append(config.Uplinks, p.link)
		list := srpolicy.List{Name: p.link, Segments: []netip.Addr{netip.MustParseAddr(p.sid),
			netip.MustParseAddr(e.decapsulates)}}
		if m == eliminated {
			list.Segments[1], list.Redundancy, list.Flow = netip.MustParseAddr(e.merges),
				srpolicy.TLV, uint32(i+1)
		}
		policy.Paths[0].Lists = append(policy.Paths[0].Lists, list)
	}
	var err error
	if l.headend, err = datapath.OpenHeadend(dir, config); err != nil {
		return err
	}
	far := netip.MustParseAddr(e.far)
	rules := []srpolicy.Rule{{Match: srpolicy.Match{Destination: netip.PrefixFrom(far,
		far.BitLen())}, Policy: policy.Name}}
	table, err := srpolicy.Compile(rules, []srpolicy.Policy{policy}, l.headend.Source(), nil)
	if err == nil {
		err = l.headend.SetTable(table)
	}
	if err == nil {
		_, err = l.headend.Commit()
	}
	return err
}

// detach takes away the lab's own XDP program, in the current namespace, so that another can be
// attached.
func detach(iface string) error {
	link, err := netlink.LinkByName(iface)
	if err == nil {
		err = netlink.LinkSetXdpFdWithFlags(link, -1, nl.XDP_FLAGS_DRV_MODE)
	}
	return linux.Failed(err, "take the XDP program off interface %s", iface)
}
