package config

// The keys that must be there, by type, each with what an error says to add.

const (
	nameOfInterface = `"name: " and the name of a network interface`
	ownAddress      = `"source: " and an address of this machine that lies inside infrastructure`
	namesWanted     = `"interfaces:" and a list of names`
)

func (*Node) required() map[string]string {
	return map[string]string{"node": `"node: NAME"`,
		"domain": `"domain:" with block and infrastructure`}
}

func (*Domain) required() map[string]string {
	return map[string]string{
		"block":          `"block: " and the SID block, like fcbb:bb00::/32`,
		"infrastructure": `"infrastructure: " and the list of prefixes from which SRv6 is accepted`,
	}
}

func (*Edge) required() map[string]string {
	return map[string]string{"interfaces": namesWanted + ` and sides`, "source": ownAddress}
}

func (*EdgeInterface) required() map[string]string {
	return map[string]string{"name": nameOfInterface}
}

func (*HostInterface) required() map[string]string {
	return map[string]string{"name": nameOfInterface}
}

func (*XDPInterface) required() map[string]string {
	return map[string]string{"name": nameOfInterface}
}

func (e *Endpoint) required() map[string]string {
	return map[string]string{
		"name": `"name: " and a name for the service`,
		"vip":  `"vip: " and the address that clients connect to`,
		"port": `"port: " and a port, or any`,
	}
}

func (*Shadow) required() map[string]string {
	return map[string]string{
		"sid": `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`,
	}
}

func (*FlowCache) required() map[string]string {
	return map[string]string{
		"sid": `"sid: " and an address inside infrastructure that is routed to this edge, not its source`,
	}
}

func (*Etcd) required() map[string]string {
	return map[string]string{"endpoints": `"endpoints:" and a list like ["http://[fd00:5e::3]:2379"]`}
}

func (*NewConnections) required() map[string]string {
	return map[string]string{
		"rate":  `"rate: " and how many new connections per second the service may get`,
		"burst": `"burst: " and how many of them at once`,
	}
}

func (*Backend) required() map[string]string {
	return map[string]string{
		"name": `"name: " and a name for the backend`,
		"sid":  `"sid: " and the SID at which the backend is offered connections`,
	}
}

func (*Learned) required() map[string]string {
	return map[string]string{"sid": `"sid: " and the SID of a backend that BGP tells of`}
}

func (*Check) required() map[string]string {
	return map[string]string{"kind": `"kind: " and ` + wordsOf[CheckKind]()}
}

func (*QUICConfigs) required() map[string]string {
	return map[string]string{
		"configs": `"configs:" and a list like "- {rotation: 0, serverIDLength: 2, nonceLength: 6}"`,
	}
}

func (*QUIC) required() map[string]string {
	return map[string]string{
		"rotation":       `"rotation: " and the first three bits of the connection IDs, 0 to 6`,
		"serverIDLength": `"serverIDLength: " and how many bytes server IDs have`,
		"nonceLength":    `"nonceLength: " and how many bytes nonces have`,
	}
}

func (*HMACKey) required() map[string]string {
	return map[string]string{
		"id":      `"id: " and the number by which packets name the key`,
		"keyFile": `"keyFile: " and the path of a file with the key`,
	}
}

func (*HMAC) required() map[string]string {
	return map[string]string{
		"keys": `"keys:" and a list like "- {id: 7, keyFile: /etc/sextant/hmac.7}"`,
	}
}

func (*Host) required() map[string]string {
	return map[string]string{
		"interfaces": namesWanted, "sids": `"sids:" and a list of prefixes with behavior`,
	}
}

func (*SID) required() map[string]string {
	return map[string]string{
		"prefix":   `"prefix: " and an IPv6 prefix like "fcbb:bb00:1::/48"`,
		"behavior": `"behavior: " and ` + alternatives(hostBehaviors),
	}
}

func (*Accept) required() map[string]string {
	return map[string]string{"policy": `"policy: " and ` + wordsOf[Policy]()}
}

func (*Headend) required() map[string]string { return map[string]string{"source": ownAddress} }

func (*SRPolicy) required() map[string]string {
	return map[string]string{
		"name":  `"name: " and a name for the policy`,
		"paths": `"paths:" and a list of name, action and lists`,
	}
}

func (*CandidatePath) required() map[string]string {
	return map[string]string{
		"name":   `"name: " and a name for the path`,
		"action": `"action: " and ` + wordsOf[SteeringAction](),
		"lists":  `"lists:" and a list of name and segments`,
	}
}

func (*SegmentList) required() map[string]string {
	return map[string]string{
		"name":     `"name: " and a name for the segment list`,
		"segments": `"segments: " and SIDs in the order of travel, the last of which decapsulates`,
	}
}

func (*SteeringRule) required() map[string]string {
	return map[string]string{"policy": `"policy: " and the name of a policy`}
}

func (*Merge) required() map[string]string {
	return map[string]string{
		"interfaces": namesWanted, "sids": `"sids:" and a list of prefix and flows`,
	}
}

func (*MergeSID) required() map[string]string {
	return map[string]string{
		"prefix": `"prefix: " and the SID's prefix, like "fcbb:bb00:2:f::/80"`,
		"flows": `"flows: " and the flow ids of the paths, ` +
			`which "sextant policy show" tells at the head-end`,
	}
}

func (*Strays) required() map[string]string {
	return map[string]string{"interfaces": namesWanted,
		"vrfs": `"vrfs:" and a list of vrf and backup`}
}

func (*StrayVRF) required() map[string]string {
	return map[string]string{
		"backup": `"backup: " and the device on which strays are received, ` +
			`like a VRF with a route to the shadow`,
	}
}

func (*Protect) required() map[string]string { return networkWanted }

func (*EdgeNetwork) required() map[string]string { return networkWanted }

var networkWanted = map[string]string{
	"topology": `"topology: " and the absolute path of a topology's file, or bgp, ospf6 or isis`,
	"node":     `"node: " and this node's name in the topology`,
}

func (*LocalLink) required() map[string]string {
	return map[string]string{
		"interface": `"interface: " and the name of a network interface`,
		"link":      `"link: " and a link of the topology, like "R1>R2"`,
	}
}

func (*Protection) required() map[string]string {
	return map[string]string{
		"name":   `"name: " and a name for the protection`,
		"to":     `"to: " and the node of the topology at which the traffic leaves`,
		"egress": `"egress: " and the SID there that merges copies`,
		"match":  `"match:" and a list of destination, protocol and so on`,
	}
}

func (*Routing) required() map[string]string {
	return map[string]string{"vrfs": `"vrfs:" and a list of names with source and table`}
}

func (*VRF) required() map[string]string {
	return map[string]string{
		"name":   `"name: " and a name for the VRF`,
		"source": `"source: " and ` + wordsOf[RouteSource](),
	}
}

func (*ShadowVRF) required() map[string]string {
	return map[string]string{
		"table": `"table: " and the number of the shadow's table`,
		"sid":   `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`,
	}
}

func (*BGP) required() map[string]string {
	return map[string]string{
		"asn":      `"asn: " and the number of the autonomous system, like 64512`,
		"routerID": `"routerID: " and an IPv4 address of this machine`,
	}
}

func (*Neighbor) required() map[string]string {
	return map[string]string{
		"address": `"address: " and the neighbor's address`,
		"asn":     `"asn: " and the number of the neighbor's autonomous system`,
	}
}

func (*CFLB) required() map[string]string {
	return map[string]string{
		"interfaces": namesWanted,
		"router":     `"router: " and a number that no other router of the network has`,
		"keyFile":    `"keyFile: " and the path of a file with the network's key`,
	}
}

func (*PathSource) required() map[string]string {
	return map[string]string{
		"keyFile": `"keyFile: " and the path of a file with the network's key`,
		"rules":   `"rules:" and a list of connections with name and via`,
	}
}

func (*PathRule) required() map[string]string {
	return map[string]string{
		"name": `"name: " and a name for these connections`,
		"via":  `"via: " and the index of a next hop for each router, like "1,0"`,
	}
}

func (*Selector) required() map[string]string {
	return map[string]string{"fields": `"fields: " and ` + wordsOf[SelectorFields]()}
}

func (*Telemetry) required() map[string]string {
	return map[string]string{"node": `"node: " and a number that no other node of the domain has`}
}

func (*TelemetrySource) required() map[string]string {
	return map[string]string{"interfaces": namesWanted}
}

func (*TelemetryLink) required() map[string]string {
	return map[string]string{"interface": `"interface: " and its name`,
		"rate": `"rate: " and what the link behind it carries, like 1Gbit`}
}

func (*TelemetryWatch) required() map[string]string {
	return map[string]string{"name": `"name: " and a name for these packets`}
}

func (*TelemetrySink) required() map[string]string {
	return map[string]string{
		"interfaces": namesWanted,
		"sids":       `"sids:" and the prefixes of this machine's decapsulating SIDs`,
		"collector":  `"collector: " and where reports go, like "[2001:db8::9]:32766"`,
	}
}
