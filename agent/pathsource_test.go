package agent_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

const pathSourceText = `
node: source1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
pathSource:
  keyFile: DIR/cflb.key
  ipv4: {fields: source-port, radix: 4}
  addresses: [10.9.0.1]
  rules:
    - {name: near, destination: 10.9.8.0/24, protocol: udp, via: "NEAR,2"}
    - {name: rest, via: any}
`

// connectedChoices connects UDP sockets, as an application that knows of no paths, and returns
// which next hops the first two routers take.
func connectedChoices(t *testing.T, m *machine, codec *cflb.Codec, to string) (all [][2]int) {
	t.Helper()
	must(t, m.ns.Do(func() error {
		for range 8 {
			socket, err := net.Dial("udp4", to)
			if err != nil {
				return err
			}
			defer socket.Close()
			own := socket.LocalAddr().(*net.UDPAddr).AddrPort()
			end := netip.MustParseAddrPort(to)
			p := cflb.Packet{Src: own.Addr(), Dst: end.Addr(), Protocol: 17, HasPorts: true,
				SrcPort: own.Port(), DstPort: end.Port()}
			var choices [2]int
			for i := range choices {
				p.HopLimit = uint8(64 - i)
				choices[i], _, _ = codec.Digit(p, 1)
			}
			all = append(all, choices)
		}
		return nil
	}))
	return all
}

// A node's rules steer applications that know nothing of paths: a rule that changes is followed,
// connections of other rules take any path, the rules hold while no agent runs, and unloading ends
// them.
func TestPathSource(t *testing.T) {
	m := newMachine(t)
	key := [cflb.KeyLength]byte{5}
	must(t, os.WriteFile(m.dir+"/cflb.key", fmt.Appendf(nil, "%x\n", key[:]), 0o600))
	codec, err := cflb.New(cflb.Parameters{Fields: cflb.SourcePort, Radix: 4, Key: key})
	must(t, err)
	must(t, m.ns.Do(func() error {
		return linuxtest.IP("addr add 10.9.0.1/16 dev edge0\nlink set lo up")
	}))
	check := func(to string, index int, steered bool) {
		t.Helper()
		same := 0
		for _, choices := range connectedChoices(t, m, codec, to) {
			if choices == [2]int{index, 2} {
				same++
			}
		}
		if (same == 8) != steered {
			t.Errorf("%d of 8 sockets to %s take %d, 2", same, to, index)
		}
	}
	a := m.start(m.text(pathSourceText, "NEAR", "1"))
	check("10.9.8.1:7", 1, true)
	check("10.9.7.1:7", 1, false)
	counters, err := a.Counters(t.Context())
	must(t, err)
	if want := (api.PathSourceCounters{Steered: 8, Unmatched: 8}); len(counters) != 1 ||
		*counters[0].PathSource != want {
		t.Errorf("counters %+v, want %+v", counters, want)
	}
	_, err = a.apply(m.text(pathSourceText, "NEAR", "3"), false)
	must(t, err)
	check("10.9.8.1:7", 3, true)
	a.stop()
	check("10.9.8.1:7", 3, true)
	must(t, m.unload())
	check("10.9.8.1:7", 3, false)
}

// A rule follows its cgroup, which a service manager makes anew with each start; while there is
// none, the status says so.
func TestPathSourceFollowsCgroup(t *testing.T) {
	m := newMachine(t)
	key := [cflb.KeyLength]byte{5}
	must(t, os.WriteFile(m.dir+"/cflb.key", fmt.Appendf(nil, "%x\n", key[:]), 0o600))
	codec, err := cflb.New(cflb.Parameters{Fields: cflb.SourcePort, Radix: 4, Key: key})
	must(t, err)
	must(t, m.ns.Do(func() error {
		return linuxtest.IP("addr add 10.9.0.1/16 dev edge0\nlink set lo up")
	}))
	own := linuxtest.OwnCgroup(t)
	service := filepath.Join(own, "sextant-test.service")
	defer func() { must(t, errors.Join(linuxtest.MoveTo(own), os.Remove(service))) }()
	text := strings.Replace(m.text(pathSourceText, "NEAR", "1"), "{name: near, ",
		"{name: near, cgroup: "+service+", ", 1)
	a := m.start(text)
	defer a.stop()
	a.await("a warning", func(s api.Status) bool {
		return slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.Contains(w, "no cgroup "+service) })
	})
	for _, when := range []string{"made", "made again"} {
		must(t, errors.Join(os.Mkdir(service, 0o755), linuxtest.MoveTo(service)))
		a.await("its sockets are steered: "+when, func(api.Status) bool {
			for _, choices := range connectedChoices(t, m, codec, "10.9.8.1:7") {
				if choices != [2]int{1, 2} {
					return false
				}
			}
			return true
		})
		if s, err := a.Status(t.Context()); err != nil || len(s.Warnings) > 0 {
			t.Errorf("%s: %v, warnings %q", when, err, s.Warnings)
		}
		must(t, errors.Join(linuxtest.MoveTo(own), os.Remove(service)))
	}
	must(t, os.Mkdir(service, 0o755)) // for the end
}
