package linux

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Description is a part of what a machine is like, for support: a name like "routes-ipv6.txt", and
// its text or why there is none.
type Description struct {
	Name string
	Text []byte
	Err  error
}

// Describe tells how this machine and the current network namespace are set up: kernel, links,
// addresses, routes, rules, neighbours, sysctls of packet forwarding. It reads nothing that could
// be secret.
func Describe() []Description {
	parts := []Description{
		describe("kernel.txt", describeKernel), describe("links.json", describeLinks),
		describe("sysctls.txt", describeSysctls),
	}
	for _, family := range []struct {
		name   string
		number int
	}{{"ipv4", netlink.FAMILY_V4}, {"ipv6", netlink.FAMILY_V6}} {
		parts = append(parts,
			describe("addresses-"+family.name+".txt", func() (string, error) {
				list, err := netlink.AddrList(nil, family.number)
				return linesOf(list, func(a netlink.Addr) string {
					return fmt.Sprintf("%s dev %d", a, a.LinkIndex)
				}), err
			}),
			describe("routes-"+family.name+".txt", func() (string, error) {
				every := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
				list, err := netlink.RouteListFiltered(family.number, every,
					netlink.RT_FILTER_TABLE)
				return linesOf(list, func(r netlink.Route) string { return r.String() }), err
			}),
			describe("rules-"+family.name+".txt", func() (string, error) {
				list, err := netlink.RuleList(family.number)
				return linesOf(list, func(r netlink.Rule) string { return r.String() }), err
			}),
			describe("neighbours-"+family.name+".txt", func() (string, error) {
				list, err := netlink.NeighList(0, family.number)
				return linesOf(list, func(n netlink.Neigh) string {
					return fmt.Sprintf("%s lladdr %s dev %d state 0x%x", n.IP, n.HardwareAddr,
						n.LinkIndex, n.State)
				}), err
			}))
	}
	return parts
}

func describe(name string, text func() (string, error)) Description {
	content, err := text()
	return Description{name, []byte(content), err}
}

func linesOf[T any](list []T, line func(T) string) string {
	var text strings.Builder
	for _, item := range list {
		fmt.Fprintln(&text, line(item))
	}
	return text.String()
}

func describeKernel() (string, error) {
	var text strings.Builder
	for _, file := range []string{"/proc/version", "/etc/os-release", clockSourceFile,
		"/proc/loadavg", "/proc/uptime", "/proc/net/dev"} {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error() + "\n")
		}
		fmt.Fprintf(&text, "== %s\n%s\n", file, content)
	}
	return text.String(), nil
}

// link is what is told of an interface.
type link struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	Type     string `json:"type"`
	MTU      int    `json:"mtu"`
	Flags    string `json:"flags"`
	State    string `json:"state"`
	Address  string `json:"address"`
	Queues   [2]int `json:"queues"` // receive, transmit
	Master   int    `json:"master,omitempty"`
	Parent   int    `json:"parent,omitempty"`
	Facts    any    `json:"xdp"`
	Received uint64 `json:"receivedPackets"`
	Sent     uint64 `json:"sentPackets"`
	Dropped  uint64 `json:"receiveDroppedPackets"`
}

func describeLinks() (string, error) {
	devices, err := netlink.LinkList()
	if err != nil {
		return "", err
	}
	var list []link
	for _, device := range devices {
		a := device.Attrs()
		facts, _ := interfaceFacts(a.Name)
		l := link{
			Name: a.Name, Index: a.Index, Type: device.Type(), MTU: a.MTU, Flags: a.Flags.String(),
			State:   a.OperState.String(),
			Address: a.HardwareAddr.String(), Queues: [2]int{a.NumRxQueues, a.NumTxQueues},
			Master: a.MasterIndex, Parent: a.ParentIndex, Facts: facts,
		}
		if s := a.Statistics; s != nil {
			l.Received, l.Sent, l.Dropped = s.RxPackets, s.TxPackets, s.RxDropped
		}
		list = append(list, l)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return string(text) + "\n", err
}

// told are the sysctls that are described, with those of each interface.
var told = []string{
	"net/ipv6/conf/*/forwarding", "net/ipv6/conf/*/seg6_enabled",
	"net/ipv6/conf/*/seg6_require_hmac", "net/ipv6/conf/*/disable_ipv6",
	"net/ipv4/conf/*/rp_filter", "net/ipv4/conf/*/forwarding", "net/ipv4/ip_forward",
	"net/ipv6/fib_multipath_hash_policy",
	"net/ipv4/fib_multipath_hash_policy", "net/ipv6/seg6_flowlabel", "net/ipv4/tcp_syncookies",
	"net/ipv4/tcp_max_syn_backlog",
	"net/vrf/strict_mode", "net/core/somaxconn", "net/core/bpf_jit_enable",
	"kernel/unprivileged_bpf_disabled",
	"net/core/netdev_max_backlog",
}

func describeSysctls() (string, error) {
	var text strings.Builder
	for _, pattern := range told {
		files, err := filepath.Glob(filepath.Join("/proc/sys", pattern))
		if err != nil {
			return "", err
		}
		slices.Sort(files)
		for _, file := range files {
			name := strings.TrimPrefix(file, "/proc/sys/")
			value, err := ReadSysctl(name)
			if err != nil {
				value = err.Error()
			}
			fmt.Fprintf(&text, "%s = %s\n", name, value)
		}
	}
	return text.String(), nil
}
