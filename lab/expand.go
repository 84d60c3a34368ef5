package lab

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// maxReplicas bounds how often a node is replicated; a namespace costs the
// kernel about a millisecond and a hundred kilobytes.
const maxReplicas = 1000

// expand makes the Spec of a document: nodes and links replicated, strings
// read. What can't be read is reported and left out.
func expand(r *report, src *source, doc *document) *Spec {
	spec := &Spec{Name: doc.Name, File: src.file}
	counts := counts{}
	for _, name := range namesInOrder(src, doc.Topology.Nodes) {
		node := doc.Topology.Nodes[name]
		if node == nil {
			node = &nodeDoc{}
		}
		place := join("topology.nodes", name)
		if node.Count == nil {
			spec.Nodes = append(spec.Nodes, readNode(r, place, name, *node, doc.Defaults))
			continue
		}
		if *node.Count < 1 || *node.Count > maxReplicas {
			r.add(place+".count", fmt.Sprintf("write a number from 1 to %d", maxReplicas),
				"a node can't be there %d times", *node.Count)
			continue
		}
		counts[name] = *node.Count
		for i := 1; i <= *node.Count; i++ {
			replica := node.rewrite(withIndex(i))
			spec.Nodes = append(spec.Nodes, readNode(r, place, fmt.Sprint(name, i), replica,
				doc.Defaults))
		}
	}
	for i, link := range doc.Topology.Links {
		spec.Links = append(spec.Links, replicateLink(r, fmt.Sprintf("topology.links[%d]", i), link,
			counts)...)
	}
	for i, step := range doc.Run {
		if step.Command.empty() {
			r.add(fmt.Sprintf("run[%d].command", i), "write what to run", "the step has no command")
		}
		spec.Run = append(spec.Run, Step(step))
	}
	return spec
}

// namesInOrder lists the nodes as they come in the file.
func namesInOrder(src *source, nodes map[string]*nodeDoc) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		x, y := src.at(join("topology.nodes", a)), src.at(join("topology.nodes", b))
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column),
			cmp.Compare(a, b))
	})
}

func readNode(r *report, place, name string, doc nodeDoc, defaults defaultsDoc) NodeSpec {
	node := NodeSpec{
		Name:      name,
		Addresses: readAddresses(r, place+".addresses", doc.Addresses),
		VIPs:      readAddresses(r, place+".vips", doc.VIPs),
		Announce:  readPrefixes(r, place+".announce", doc.Announce),
		Local:     readPrefixes(r, place+".local", doc.Local),
		Sysctls: append(readSysctls(r, "defaults.sysctls", defaults.Sysctls),
			readSysctls(r, place+".sysctls", doc.Sysctls)...),
		Exec:    doc.Exec,
		Sextant: string(doc.Sextant),
		place:   place,
	}
	for _, file := range slices.Sorted(maps.Keys(doc.Files)) {
		node.Files = append(node.Files, File{Name: file, Content: doc.Files[file]})
	}
	for i, process := range doc.Processes {
		node.Processes = append(node.Processes,
			readProcess(r, fmt.Sprintf("%s.processes[%d]", place, i), process))
	}
	return node
}

func readAddresses(r *report, path string, texts []string) []netip.Addr {
	var addresses []netip.Addr
	for i, text := range texts {
		prefix, err := parsePrefix(text)
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case err != nil:
			r.add(at, "write an IPv6 or IPv4 address, like fd00::1", "%q is no address", text)
		case !prefix.IsSingleIP():
			r.add(at, fmt.Sprintf("write %s; use \"local\" for a range", prefix.Addr()),
				"%q is a prefix, an address is wanted", text)
		}
		// a wrong one too, so that indices stay those of the file
		addresses = append(addresses, prefix.Addr())
	}
	return addresses
}

func readPrefixes(r *report, path string, texts []string) []netip.Prefix {
	var prefixes []netip.Prefix
	for i, text := range texts {
		prefix, err := parsePrefix(text)
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case err != nil:
			r.add(at, "write an IPv6 or IPv4 prefix, like 2001:db8::/32", "%q is no prefix", text)
		case prefix != prefix.Masked():
			r.add(at, fmt.Sprintf("write %s", prefix.Masked()), "%q has bits behind its length",
				text)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes
}

// parsePrefix reads a prefix; an address alone is one of full length.
func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is no address", text)
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}

func readSysctls(r *report, path string, values map[string]string) []Sysctl {
	var sysctls []Sysctl
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !strings.ContainsAny(name, "./") {
			r.add(join(path, name), "write its whole name, like net.ipv4.tcp_congestion_control",
				"%q is no sysctl", name)
		}
		sysctls = append(sysctls, Sysctl{name, values[name]})
	}
	return sysctls
}

func readProcess(r *report, place string, doc processDoc) ProcessSpec {
	process := ProcessSpec{Name: doc.Name, Command: doc.Command, Restart: doc.Restart}
	for _, name := range slices.Sorted(maps.Keys(doc.Env)) {
		process.Env = append(process.Env, name+"="+doc.Env[name])
	}
	ready, err := parseReady(doc.Ready)
	if err != nil {
		r.add(place+".ready", err.Error(), "%q is no ready condition", doc.Ready)
	}
	process.Ready = ready
	return process
}

// replicateLink makes the links of one entry: one, or one for each replica of
// the nodes it mentions as "NAME{i}".
func replicateLink(r *report, place string, doc linkDoc, counts counts) []LinkSpec {
	count, names := counts.of(doc.Endpoints)
	for _, name := range names {
		if counts[name] != count {
			r.add(place+".endpoints",
				"give the nodes the same count, or write the links one by one",
				"the link joins replicated nodes with different counts: %s",
				strings.Join(names, ", "))
			return nil
		}
	}
	if count == 0 {
		return []LinkSpec{readLink(r, place, doc)}
	}
	links := make([]LinkSpec, count)
	for i := range links {
		replica := doc
		replica.Endpoints = rewriteAll(doc.Endpoints, withIndex(i+1))
		links[i] = readLink(r, place, replica)
	}
	return links
}
