// Package bgp is the node's BGP speaker: GoBGP, embedded, with the sessions of the node file.
//
// A host announces each VIP that it serves as a VPN route (RFC 4364, RFC 4659) with the SID at
// which it is offered connections, as an SRv6 L3 service (RFC 9252). The weight is the link
// bandwidth community, a drain the graceful shutdown community (RFC 8326), and large communities
// (RFC 8092) name the services of the VIP: ASN:protocol:port. An edge learns these routes, and
// announces its VIPs to routers as plain unicast routes.
//
// The speaker only carries: package membership decides what routes mean. Bytes of peers are decoded
// by GoBGP, which follows RFC 7606 (a malformed attribute costs the route, not the session); what
// remains is checked here, and what is refused is counted.
package bgp
