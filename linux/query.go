package linux

import (
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

// Query says what facts about the machine are wanted.
type Query struct {
	Interfaces []string
	VIPs       []netip.Addr // are they delivered here?
	SIDs       []netip.Addr // how are they reached?
	VRFs       []VRF        // what has the kernel of them?
	Learns     []string     // interfaces by which SYN-ACKs come to an edge with a flow cache,
	Learnt     []netip.Addr // from these VIPs
	Slow       bool         // sockets and processes too, which takes longer on large machines
}

// Those who stand for clients, whom the reverse path filter may shut out, or to whom there may be
// no route.
var (
	sampleClient  = netip.MustParseAddr("203.0.113.1")
	sampleClient6 = netip.MustParseAddr("2001:db8:cb00:7100::1")
)

// clientLike is a client of the family of an address.
func clientLike(a netip.Addr) netip.Addr {
	if a.Is4() {
		return sampleClient
	}
	return sampleClient6
}

// Facts gathers what package doctor wants to know, of the machine and of the current network
// namespace. What can't be found out stays unknown. Nothing is changed.
func Facts(q Query) facts.Facts {
	f := facts.Facts{
		Kernel: kernelFacts(), Interfaces: map[string]facts.Interface{},
		Local:  map[netip.Addr]bool{},
		Routes: map[netip.Addr]facts.Route{}, Returns: map[string]netip.Addr{},
	}
	for _, name := range q.Interfaces {
		if i, exists := interfaceFacts(name); exists {
			f.Interfaces[name] = i
			if !comesBack(name, sampleClient, i.RPFilter) {
				f.Returns[name] = sampleClient
			}
		}
	}
	routes := newRouteReader()
	defer routes.close()
	for _, vip := range q.VIPs {
		f.Local[vip] = routes.isLocal(vip)
	}
	for _, sid := range q.SIDs {
		f.Routes[sid] = routes.routeTo(sid)
	}
	for _, iface := range q.Learns {
		for _, vip := range q.Learnt {
			client := clientLike(vip)
			f.Answers = append(f.Answers, facts.Answer{Interface: iface, VIP: vip, Client: client,
				Passage: Passage(iface, vip, client)})
		}
	}
	if len(q.VRFs) > 0 {
		f.VRFs, f.StrictVRF = vrfs(q.VRFs), strictVRF()
	}
	if q.Slow {
		f.Listeners, f.Agents = listeners(), agents()
	}
	return f
}

const clockSourceFile = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

func kernelFacts() facts.Kernel {
	var k facts.Kernel
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		k.Release = unix.ByteSliceToString(name.Release[:])
	}
	bpffs, err := findMount("bpf", standardBPFFS)
	k.BPFFS = bpffs != "" || err != nil
	cgroup, err := findMount("cgroup2", firstMount)
	k.Cgroup2 = cgroup != "" || err != nil
	if text, err := os.ReadFile(clockSourceFile); err == nil {
		k.ClockSource = strings.TrimSpace(string(text))
	}
	return k
}

// sysctlNumber is 0 where there is no such sysctl.
func sysctlNumber(name string) int {
	text, err := ReadSysctl(name)
	number := 0
	for _, digit := range text {
		if err != nil || digit < '0' || digit > '9' {
			return 0
		}
		number = number*10 + int(digit-'0')
	}
	return number
}

func sysctls(iface string, i *facts.Interface) {
	own := func(name string) int { return sysctlNumber("net/ipv6/conf/" + iface + "/" + name) }
	i.Forwarding = own("forwarding") != 0
	i.RPFilter = reversePathFilter(iface)
	i.Seg6 = own("seg6_enabled") != 0 && sysctlNumber("net/ipv6/conf/all/seg6_enabled") != 0
	i.Seg6HMAC = own("seg6_require_hmac")
}

// reversePathFilter is the one in force: 0 off, 1 strict, 2 loose.
func reversePathFilter(iface string) int {
	return max(sysctlNumber("net/ipv4/conf/all/rp_filter"),
		sysctlNumber("net/ipv4/conf/"+iface+"/rp_filter"))
}
