package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sextant/packet/lists"
)

// Lab and node names become parts of file names, cgroups and namespaces;
// iproute2 takes names of up to 255 characters.
var (
	nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	// IFNAMSIZ is 16 with the final zero
	interfaceRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)
)

// agentProcess is the name of the process that runs a node's Sextant agent.
const agentProcess = "sextant"

// nodeFile is where a node's Sextant configuration is written.
const nodeFile = "node.yaml"

const (
	minMTU = 1280  // RFC 8200 section 5
	maxMTU = 65535 // of a veth
)

// validate reports what is wrong between the values of a Spec.
func validate(r *report, spec *Spec) {
	v := validator{report: r, spec: spec, nodes: map[string]*NodeSpec{},
		interfaces: map[Endpoint]bool{}, owners: map[netip.Addr]string{}}
	if !nameRule.MatchString(spec.Name) {
		r.add("name", "write lower-case letters, digits, - and _, at most 63",
			"%q can't be the name of a lab", spec.Name)
	}
	if len(spec.Nodes) == 0 && len(r.faults) == 0 {
		r.add("topology.nodes", "add a node", "the lab has no nodes")
	}
	for i := range spec.Nodes {
		v.name(&spec.Nodes[i])
	}
	for i := range spec.Links {
		v.link(&spec.Links[i], fmt.Sprintf("topology.links[%d]", i))
	}
	for i := range spec.Nodes {
		v.node(&spec.Nodes[i])
	}
	for i, step := range spec.Run {
		v.known(fmt.Sprintf("run[%d].node", i), step.Node)
	}
}

// validator is validate at work.
type validator struct {
	*report
	spec       *Spec
	nodes      map[string]*NodeSpec
	interfaces map[Endpoint]bool
	owners     map[netip.Addr]string // node of each address
}

func (v *validator) name(node *NodeSpec) {
	if node.place == "" {
		node.place = join("topology.nodes", node.Name)
	}
	if !nameRule.MatchString(node.Name) {
		v.add(node.place, "write lower-case letters, digits, - and _, at most 63",
			"%q can't be the name of a node", node.Name)
	}
	if v.nodes[node.Name] != nil {
		v.add(node.place, "rename one of the two", "there are two nodes %s", node.Name)
	}
	v.nodes[node.Name] = node
}

// known reports a node that is not there.
func (v *validator) known(path, name string) {
	if v.nodes[name] != nil {
		return
	}
	if v.nodes[name+"1"] != nil {
		v.add(path, fmt.Sprintf("write %s1 for the first, or in links %s{i} for each", name, name),
			"node %s is replicated", name)
		return
	}
	names := lists.Map(v.spec.Nodes, func(node NodeSpec) string { return node.Name })
	v.add(path, "there are "+enumerate(names), "there is no node %q", name)
}

func (v *validator) link(link *LinkSpec, place string) {
	link.place = cmp.Or(link.place, place)
	for i, end := range link.Ends {
		if end.Node != "" && end.Interface != "" { // else reported already
			v.endpoint(fmt.Sprintf("%s.endpoints[%d]", link.place, i), end)
		}
	}
	if end := link.Ends[0]; end.Node != "" && end.Node == link.Ends[1].Node {
		v.add(link.place+".endpoints", "join two different nodes", "both ends are on node %s",
			end.Node)
	}
	if link.MTU != 0 && (link.MTU < minMTU || link.MTU > maxMTU) {
		v.add(link.place+".mtu", fmt.Sprintf("write a number from %d, the least of IPv6, to %d",
			minMTU, maxMTU),
			"the MTU can't be %d", link.MTU)
	}
	profiles := link.profiles()
	if profiles[0].RateBits == 0 && profiles[1].RateBits == 0 &&
		(link.BurstBytes != 0 || link.Latency != 0) {
		v.add(link.place, "add a rate", "burst and latency belong to a rate")
	}
	for _, profile := range profiles {
		if text, mend := profile.Fault(); text != "" {
			v.add(link.place, mend, "%s", text)
		}
	}
	if !link.Wire.Known() {
		v.add(link.place+".wire", "write auto, kernel or user", "%q is no wire", link.Wire)
	}
}

func (v *validator) endpoint(path string, end Endpoint) {
	v.known(path, end.Node)
	if len(end.Interface) > 15 {
		v.add(path, "Linux takes at most 15", "the interface name %q has %d characters",
			end.Interface, len(end.Interface))
	}
	if !interfaceRule.MatchString(end.Interface) ||
		slices.Contains([]string{"lo", "all", "default"}, end.Interface) {
		v.add(path, `write letters, digits, "-", "_" and "."; lo, all and default are taken`,
			"%q can't be the name of an interface", end.Interface)
	}
	if v.interfaces[end] {
		v.add(path, "give each link of a node its own", "interface %s is used by two links", end)
	}
	v.interfaces[end] = true
}

func (v *validator) node(node *NodeSpec) {
	for i, address := range node.Addresses {
		v.address(fmt.Sprintf("%s.addresses[%d]", node.place, i), node, address)
	}
	for i, vip := range node.VIPs {
		at := fmt.Sprintf("%s.vips[%d]", node.place, i)
		v.usable(at, vip)
		if slices.Contains(node.Addresses, vip) {
			v.add(at, "leave it in one of the two", "%s is an address of the node too", vip)
		}
	}
	for _, file := range node.Files {
		if !filepath.IsLocal(file.Name) ||
			(node.Sextant != "" && filepath.Clean(file.Name) == nodeFile) {
			v.add(node.place+".files."+file.Name,
				"write a name inside the node's directory, other than "+nodeFile,
				"the file can't be %q", file.Name)
		}
	}
	for i, command := range node.Exec {
		if command.empty() {
			v.add(fmt.Sprintf("%s.exec[%d]", node.place, i), "write what to run",
				"the command is empty")
		}
	}
	v.processes(node)
	v.sextant(node)
}

func (v *validator) address(path string, node *NodeSpec, address netip.Addr) {
	v.usable(path, address)
	owner, taken := v.owners[address]
	switch {
	case taken && owner == node.Name:
		v.add(path, "delete one of the two", "%s is given twice", address)
	case taken && v.nodes[owner].place == node.place:
		v.add(path, "put {i}, the number of the node, into it", "all replicas have the address %s",
			address)
	case taken:
		v.add(path, `give each node its own; "announce" what several nodes answer for`,
			"%s is the address of node %s too", address, owner)
	}
	v.owners[address] = node.Name
}

// usable reports an address that no node can have on its loopback interface.
func (v *validator) usable(path string, address netip.Addr) {
	if !address.IsGlobalUnicast() || address.Is4In6() {
		v.add(path, "write a global or unique local one, like fd00::1",
			"a node can't have the address %s", address)
	}
}

func (v *validator) processes(node *NodeSpec) {
	seen := map[string]bool{agentProcess: node.Sextant != ""}
	for i, process := range node.Processes {
		at := fmt.Sprintf("%s.processes[%d]", node.place, i)
		if !nameRule.MatchString(process.Name) {
			v.add(at+".name", "write lower-case letters, digits, - and _, at most 63",
				"%q can't be the name of a process", process.Name)
		}
		if seen[process.Name] {
			v.add(at+".name", "rename one of the two", "node %s has two processes %s", node.Name,
				process.Name)
		}
		seen[process.Name] = true
		if process.Command.empty() {
			v.add(at+".command", "write what to run", "the process has no command")
		}
	}
}

// sextant checks the part of a node's configuration that the lab relies on.
func (v *validator) sextant(node *NodeSpec) {
	if node.Sextant == "" {
		return
	}
	at := node.place + ".sextant"
	c, err := readClaims(node.Sextant)
	if err != nil {
		v.add(at, "write a node configuration", "%v", err)
		return
	}
	if err := checkSocket(c.API.Socket); err != nil {
		v.add(at+".api", `write api: {socket: "{dir}/agent.sock"}, so that each node has its own`,
			"%v", err)
	}
	for _, iface := range c.interfaces() {
		if !v.interfaces[Endpoint{node.Name, iface}] {
			v.add(at, fmt.Sprintf("add a link with the endpoint %s:%s", node.Name, iface),
				"node %s has no interface %q", node.Name, iface)
		}
	}
}

// checkSocket refuses what can't be the path of a node's API socket: the
// agent's default is one path for the whole machine.
func checkSocket(path string) error {
	if path == "" {
		return errors.New("the configuration names no API socket")
	}
	if !strings.HasPrefix(path, "{dir}/") && !filepath.IsAbs(path) {
		return fmt.Errorf("the API socket %q is no absolute path", path)
	}
	return nil
}
