package e2e_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"sextant/lab"
)

// A segment list can begin with a SID of the head-end itself, such as the End.X that names the
// first link: the kernel executes it, for forwarded packets and for those of this machine itself,
// which go through the loop.
func TestListsThatBeginWithAnOwnSID(t *testing.T) {
	p := newProtectedBy(t, func(s *lab.Spec) {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if n.Name != "r1" {
				continue
			}
			n.Exec = append(n.Exec, lab.Command{
				Args: strings.Fields("ip -6 route add fcbb:bb00:1:e001::/128 encap seg6local " +
					"action End.X nh6 fd00:5e::b:1 dev b1"),
			})
			n.Sextant = strings.Replace(n.Sextant, "uplinks: [b1, b2, b3, b4]", `uplinks: [b1, b2, b3, b4]
  local: [b1, b2, b3, b4, back]
  policies:
    - name: first
      paths:
        - name: only
          action: path
          lists: [{name: a, segments: ["fcbb:bb00:1:e001::", "fcbb:bb00:c1::", "fcbb:bb00:7:f::"], redundancy: tlv, flow: 32768}]
  rules: [{policy: first, destination: "2001:db8:b::/64", protocol: udp}]`, 1)
		}
	})
	const count = 50
	var in net.PacketConn
	inside(t, p.lab, "hostb", func() (err error) {
		in, err = net.ListenPacket("udp", protectedAddress)
		return err
	})
	defer in.Close()
	for i, node := range []string{"hosta", "r1"} {
		var out net.Conn
		inside(t, p.lab, node, func() (err error) {
			out, err = net.Dial("udp", protectedAddress)
			return err
		})
		for range count {
			_, err := out.Write([]byte(node))
			must(t, err)
		}
		out.Close()
		must(t, in.SetReadDeadline(time.Now().Add(patience)))
		for n := range count {
			buffer := make([]byte, 16)
			if got, _, err := in.ReadFrom(buffer); err != nil || string(buffer[:got]) != node {
				t.Fatalf("from %s, after %d datagrams: %q, %v", node, n, buffer, err)
			}
		}
		flows, err := p.client("r7").Merge(t.Context())
		must(t, err)
		if path := flows[0].Paths[0]; path.Flow != 32768 || path.Packets != uint64(count*(i+1)) {
			t.Errorf("from %s: the egress has counted %+v", node, path)
		}
	}
}
