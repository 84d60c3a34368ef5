package linuxtest

import "strings"

// namespaceVRF makes the namespace WEB a VRF.
const namespaceVRF = `
link add toweb type veth peer name eth0 netns WEB
link set toweb up
addr add 10.99.0.1/30 dev toweb
addr add fd99::1/64 dev toweb nodad
link add back type veth peer name backpeer
link set back up
link set backpeer up
rule add iif back lookup 20 priority 100
-6 rule add iif back lookup 20 priority 100
-6 route add fcbb:bb00:1:4::/128 encap seg6local action End.DX4 nh4 10.99.0.2 dev toweb
-6 route add fcbb:bb00:1:6::/128 encap seg6local action End.DX6 nh6 fd99::2 dev toweb
-n WEB link set lo up
-n WEB link set eth0 up
-n WEB addr add 10.99.0.2/30 dev eth0
-n WEB addr add fd99::2/64 dev eth0 nodad
-n WEB addr add 10.80.0.1/32 dev lo
-n WEB addr add 2001:db8:80::1/128 dev lo nodad
-n WEB -4 route add default via 10.99.0.1
-n WEB -6 route add default via fd99::1
`

// NamespaceVRF makes the namespace of a name a VRF beside the router in the current one: with the
// addresses 10.80.0.1 and 2001:db8:80::1, to which the kernel's SIDs fcbb:bb00:1:4:: (IPv4) and
// fcbb:bb00:1:6:: lead. The backup device is back, whose packets go by table 20.
func NamespaceVRF(web string) error { return IP(strings.ReplaceAll(namespaceVRF, "WEB", web)) }
