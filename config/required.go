package config

import "reflect"

const (
	nameOfInterface = `"name: " and the name of a network interface`
	ownAddress      = `"source: " and an address of this machine that lies inside infrastructure`
	namesWanted     = `"interfaces:" and a list of names`
)

var endpointWanted = hints{
	"name": `"name: " and a name for the service`,
	"vip":  `"vip: " and the address that clients connect to`,
	"port": `"port: " and a port, or any`,
}

var networkWanted = hints{
	"topology": `"topology: " and the absolute path of a topology's file, or bgp, ospf6 or isis`,
	"node":     `"node: " and this node's name in the topology`,
}

// hints are what an error says to add for each key that must be there. WORDS are those that are
// valid.
type hints map[string]string

// required are the keys that must be there, by type of object.
var required = map[reflect.Type]hints{
	reflect.TypeFor[Node](): {"node": `"node: NAME"`,
		"domain": `"domain:" with block and infrastructure`},
	reflect.TypeFor[Domain](): {
		"block":          `"block: " and the SID block, like fcbb:bb00::/32`,
		"infrastructure": `"infrastructure: " and the list of prefixes from which SRv6 is accepted`,
	},
	reflect.TypeFor[Edge]():          {"interfaces": namesWanted + ` and sides`, "source": ownAddress},
	reflect.TypeFor[EdgeInterface](): {"name": nameOfInterface},
	reflect.TypeFor[HostInterface](): {"name": nameOfInterface},
	reflect.TypeFor[XDPInterface]():  {"name": nameOfInterface},
	reflect.TypeFor[Service]():       endpointWanted,
	reflect.TypeFor[HostService]():   endpointWanted,
	reflect.TypeFor[Shadow](): {
		"sid": `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`,
	},
	reflect.TypeFor[FlowCache](): {
		"sid": `"sid: " and an address inside infrastructure that is routed to this edge, not its source`,
	},
	reflect.TypeFor[Etcd](): {"endpoints": `"endpoints:" and a list like ["http://[fd00:5e::3]:2379"]`},
	reflect.TypeFor[NewConnections](): {
		"rate":  `"rate: " and how many new connections per second the service may get`,
		"burst": `"burst: " and how many of them at once`,
	},
	reflect.TypeFor[Backend](): {
		"name": `"name: " and a name for the backend`,
		"sid":  `"sid: " and the SID at which the backend is offered connections`,
	},
	reflect.TypeFor[Learned](): {"sid": `"sid: " and the SID of a backend that BGP tells of`},
	reflect.TypeFor[Check]():   {"kind": `"kind: " and WORDS`},
	reflect.TypeFor[QUICConfigs](): {
		"configs": `"configs:" and a list like "- {rotation: 0, serverIDLength: 2, nonceLength: 6}"`,
	},
	reflect.TypeFor[QUIC](): {
		"rotation":       `"rotation: " and the first three bits of the connection IDs, 0 to 6`,
		"serverIDLength": `"serverIDLength: " and how many bytes server IDs have`,
		"nonceLength":    `"nonceLength: " and how many bytes nonces have`,
	},
	reflect.TypeFor[HMACKey](): {
		"id":      `"id: " and the number by which packets name the key`,
		"keyFile": `"keyFile: " and the path of a file with the key`,
	},
	reflect.TypeFor[HMAC](): {
		"keys": `"keys:" and a list like "- {id: 7, keyFile: /etc/sextant/hmac.7}"`,
	},
	reflect.TypeFor[Host](): {
		"interfaces": namesWanted, "sids": `"sids:" and a list of prefixes with behavior`,
	},
	reflect.TypeFor[SID](): {
		"prefix":   `"prefix: " and an IPv6 prefix like "fcbb:bb00:1::/48"`,
		"behavior": `"behavior: " and ` + alternatives(hostBehaviors),
	},
	reflect.TypeFor[Accept]():  {"policy": `"policy: " and WORDS`},
	reflect.TypeFor[Headend](): {"source": ownAddress},
	reflect.TypeFor[SRPolicy](): {
		"name":  `"name: " and a name for the policy`,
		"paths": `"paths:" and a list of name, action and lists`,
	},
	reflect.TypeFor[CandidatePath](): {
		"name":   `"name: " and a name for the path`,
		"action": `"action: " and WORDS`,
		"lists":  `"lists:" and a list of name and segments`,
	},
	reflect.TypeFor[SegmentList](): {
		"name":     `"name: " and a name for the segment list`,
		"segments": `"segments: " and SIDs in the order of travel, the last of which decapsulates`,
	},
	reflect.TypeFor[SteeringRule](): {"policy": `"policy: " and the name of a policy`},
	reflect.TypeFor[Merge](): {
		"interfaces": namesWanted, "sids": `"sids:" and a list of prefix and flows`,
	},
	reflect.TypeFor[MergeSID](): {
		"prefix": `"prefix: " and the SID's prefix, like "fcbb:bb00:2:f::/80"`,
		"flows": `"flows: " and the flow ids of the paths, ` +
			`which "sextant policy show" tells at the head-end`,
	},
	reflect.TypeFor[Strays](): {"interfaces": namesWanted,
		"vrfs": `"vrfs:" and a list of vrf and backup`},
	reflect.TypeFor[StrayVRF](): {
		"backup": `"backup: " and the device on which strays are received, ` +
			`like a VRF with a route to the shadow`,
	},
	reflect.TypeFor[Protect]():     networkWanted,
	reflect.TypeFor[EdgeNetwork](): networkWanted,
	reflect.TypeFor[LocalLink](): {
		"interface": `"interface: " and the name of a network interface`,
		"link":      `"link: " and a link of the topology, like "R1>R2"`,
	},
	reflect.TypeFor[Protection](): {
		"name":   `"name: " and a name for the protection`,
		"to":     `"to: " and the node of the topology at which the traffic leaves`,
		"egress": `"egress: " and the SID there that merges copies`,
		"match":  `"match:" and a list of destination, protocol and so on`,
	},
	reflect.TypeFor[Routing](): {"vrfs": `"vrfs:" and a list of names with source and table`},
	reflect.TypeFor[VRF](): {
		"name":   `"name: " and a name for the VRF`,
		"source": `"source: " and WORDS`,
	},
	reflect.TypeFor[ShadowVRF](): {
		"table": `"table: " and the number of the shadow's table`,
		"sid":   `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`,
	},
	reflect.TypeFor[BGP](): {
		"asn":      `"asn: " and the number of the autonomous system, like 64512`,
		"routerID": `"routerID: " and an IPv4 address of this machine`,
	},
	reflect.TypeFor[Neighbor](): {
		"address": `"address: " and the neighbor's address`,
		"asn":     `"asn: " and the number of the neighbor's autonomous system`,
	},
	reflect.TypeFor[CFLB](): {
		"interfaces": namesWanted,
		"router":     `"router: " and a number that no other router of the network has`,
		"keyFile":    `"keyFile: " and the path of a file with the network's key`,
	},
	reflect.TypeFor[PathSource](): {
		"keyFile": `"keyFile: " and the path of a file with the network's key`,
		"rules":   `"rules:" and a list of connections with name and via`,
	},
	reflect.TypeFor[PathRule](): {
		"name": `"name: " and a name for these connections`,
		"via":  `"via: " and the index of a next hop for each router, like "1,0"`,
	},
	reflect.TypeFor[Selector]():        {"fields": `"fields: " and WORDS`},
	reflect.TypeFor[Telemetry]():       {"node": `"node: " and a number that no other node of the domain has`},
	reflect.TypeFor[TelemetrySource](): {"interfaces": namesWanted},
	reflect.TypeFor[TelemetryLink](): {"interface": `"interface: " and its name`,
		"rate": `"rate: " and what the link behind it carries, like 1Gbit`},
	reflect.TypeFor[TelemetryWatch](): {"name": `"name: " and a name for these packets`},
	reflect.TypeFor[TelemetrySink](): {
		"interfaces": namesWanted,
		"sids":       `"sids:" and the prefixes of this machine's decapsulating SIDs`,
		"collector":  `"collector: " and where reports go, like "[2001:db8::9]:32766"`,
	},
	reflect.TypeFor[Flowlets](): {
		"interfaces": namesWanted,
		"source":     `"source: " and an address of this machine`,
		"groups":     `"groups:" and a list of name, destinations and paths`,
	},
	reflect.TypeFor[FlowletGroup](): {
		"name":         `"name: " and a name for these destinations`,
		"destinations": `"destinations:" and a list of prefixes`,
		"paths":        `"paths:" and a list of name and sid`,
	},
	reflect.TypeFor[FlowletPath](): {
		"name": `"name: " and a name for the path`,
		"sid":  `"sid: " and the segments in one address, like "fcbb:bb00:1:2:d6::"`,
	},
	reflect.TypeFor[Subflows](): {
		"rules": `"rules:" and a list of destinations with name and nextHops or scheduled`,
	},
	reflect.TypeFor[SubflowRule](): {"name": `"name: " and a name for these connections`},
}
