package doctor

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/linux/facts"
)

// cacheAnswers says what the kernel of an edge with a flow cache would do with SYN-ACKs that come
// to End.LEARN.
func cacheAnswers(_ *config.Node, f *facts.Facts, _ string) []Finding {
	const lost = "hosts send SYN-ACKs by way of an edge with a flow cache, whose kernel routes " +
		"them on; " +
		"each connection waits for the second one, which goes straight"
	var list []Finding
	for _, a := range f.Answers {
		switch what := fmt.Sprintf("SYN-ACKs of %s", a.VIP); a.Passage.Fate {
		case facts.NotForwarding:
			list = append(list, Finding{"sysctl_forwarding", Broken, a.Interface,
				what + " are not forwarded: " + a.Passage.Off + " is 0", lost,
				forwardBoth})
		case facts.ReversePath:
			list = append(list, Finding{"rp_filter", Broken, a.Interface,
				"the reverse path filter drops " + what, lost,
				withoutReversePath(a.Interface)})
		case facts.NoRoute:
			list = append(list, Finding{"client_route", Notable, a.VIP.String(),
				fmt.Sprintf("%s have no route to clients (tried: %s)", what, a.Client), lost,
				"give this edge a route to all clients, as a default"})
		case facts.Refused:
			list = append(list, Finding{"client_route", Risk, a.VIP.String(),
				fmt.Sprintf("the kernel refuses %s to clients (tried: %s)", what, a.Client),
				lost + "; it refuses them by a blackhole or its like, and IPv4 packets from an " +
					"address that is this machine's own",
				"correct the route; where this machine has the VIP: sysctl -w " +
					perInterface("ipv4", a.Interface, "accept_local") + "=1"})
		}
	}
	return list
}

// learners looks for a host that would not tell the edge on the same machine.
func learners(n *config.Node, _ *facts.Facts, _ string) []Finding {
	if n.Edge == nil || n.Host == nil || n.Edge.FlowCache.Entries == 0 {
		return nil
	}
	sid := n.Edge.FlowCache.SID
	if slices.ContainsFunc(n.Host.Learners, func(p netip.Prefix) bool { return p.Contains(sid) }) {
		return nil
	}
	return []Finding{{"learner_missing", Risk, sid.String(),
		"the edge has a flow cache, and host.learners does not name its SID",
		"the host of this node does not tell it who has a connection",
		"add the prefix of the edges' flowCache.sid to host.learners, on all hosts"}}
}

// tellingAtLeast is how many packets are needed to judge by counters.
const tellingAtLeast = 100

// cacheTraffic judges a flow cache by what it did.
func cacheTraffic(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Edge == nil || n.Edge.FlowCache.Entries == 0 || f.Running == nil {
		return nil
	}
	events := f.Running.FlowCache
	sid := n.Edge.FlowCache.SID.String()
	asked := events["hit"] + events["miss"] + events["stale"]
	refused := events["refused_stranger"] + events["refused_unnamed"]
	switch {
	case refused >= tellingAtLeast && refused > events["stored"]:
		return []Finding{{"cache_refuses", Risk, sid,
			fmt.Sprintf("of the SYN-ACKs that came, %d named an owner who is not in the flow's "+
				"chain, or none", refused),
			"hosts have SIDs other than those in this edge's configuration, or the SYNs of " +
				"another edge are answered here",
			"compare sextant backend list here with sextant sid list on the hosts; each edge " +
				"needs a flowCache.sid of its own"}}
	case asked >= tellingAtLeast && events["stored"]+refused == 0:
		return []Finding{{"cache_silent", Risk, sid,
			fmt.Sprintf("the flow cache was asked %d times, and no SYN-ACK has come to it", asked),
			"hosts don't name the SID in host.learners, it is not routed to an interface of this " +
				"edge, or nobody has opened a connection",
			"see on a host: ip -6 route get " + sid + ", and sextant doctor"}}
	case events["miss"] >= tellingAtLeast && events["miss"] > events["hit"]:
		return []Finding{{"cache_misses", Notable, sid,
			fmt.Sprintf("%d packets found nothing in the flow cache, %d did", events["miss"],
				events["hit"]),
			"it is too small, some hosts don't name its SID in host.learners, or connections are " +
				"older than it",
			"if it goes on: raise edge.flowCache.entries, and see sextant doctor on the hosts"}}
	}
	return nil
}

// learningTraffic judges by its SYN-ACKs what a host with learners tells.
func learningTraffic(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Host == nil || len(n.Host.Learners) == 0 || f.Running == nil {
		return nil
	}
	l := f.Running.Learning
	switch {
	case l.NotRouted > 0:
		return []Finding{{"learner_unrouted", Risk, "host.learners",
			fmt.Sprintf("%d SYN-ACKs that an edge asked for went straight to the client: there "+
				"is no route to its SID", l.NotRouted),
			"the edge's flow cache learns nothing from this host",
			"route the edges' flowCache.sid to them, as their other SIDs; see: " +
				"ip -6 route get SID"}}
	case l.ByEdge == 0 && l.Opened >= tellingAtLeast:
		return []Finding{{"learner_silent", Notable, "host.learners",
			fmt.Sprintf("%d connections were opened, and no edge has asked to be told of one",
				l.Opened),
			"no edge has a flow cache, its SID lies in none of the prefixes, or the servers are " +
				"in network namespaces of their own",
			"compare host.learners with edge.flowCache.sid of the edges"}}
	}
	return nil
}
