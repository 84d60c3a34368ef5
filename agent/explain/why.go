package explain

import (
	"fmt"
	"strings"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/linux/facts"
	"sextant/packet/lists"
)

// Why says in one sentence what an explanation says in fields.
func Why(e *api.Explanation) string {
	if text := steeredWhy(e); text != "" {
		return text
	}
	switch e.Role {
	case api.Strays:
		return straysWhy(e)
	case api.Flowlets:
		return flowletWhy(e)
	}
	switch {
	case e.Dropped():
		return "dropped: " + model.Meaning(e.Reason)
	case e.Reason != "":
		return "given to the kernel, which answers: " + model.Meaning(e.Reason)
	case e.Verdict == model.Pass.String():
		return passedWhy(e)
	case e.Role == api.Host:
		return hostWhy(e)
	}
	text := sentWhy(e)
	if e.OtherCopy != nil {
		return text + "; twice, over two paths, by way of the kernel"
	}
	if e.Verdict == model.HandToKernel.String() {
		text += "; the kernel sends it, since the next hop's neighbour is not resolved, or its " +
			"interface runs no native XDP program here"
	}
	return text
}

// steeredWhy says what a policy or an egress did; "" if neither did anything.
func steeredWhy(e *api.Explanation) string {
	switch {
	case e.Policy != nil && len(e.Copies) > 0:
		return policyWhy(e)
	case e.Policy != nil && e.Dropped():
		return fmt.Sprintf("dropped: %s (policy %s)", model.Meaning(e.Reason), e.Policy.Name)
	case e.Policy != nil:
		return fmt.Sprintf("policy %s: answered (%s)", e.Policy.Name, e.Outcome)
	case e.Copy != nil && e.Copy.First && e.Copy.Waits:
		return fmt.Sprintf("the first copy of packet %d, by flow %d: decapsulated, and put in "+
			"order with the others",
			e.Copy.Number, e.Copy.Flow)
	case e.Copy != nil && e.Copy.First:
		return fmt.Sprintf("the first copy of packet %d, by flow %d: decapsulated, for the "+
			"kernel to route", e.Copy.Number, e.Copy.Flow)
	case e.Copy != nil:
		return fmt.Sprintf("packet %d by flow %d is dropped: %s", e.Copy.Number, e.Copy.Flow,
			model.Meaning(e.Reason))
	case e.Role == api.Merge && e.SID != nil && !e.Dropped():
		return "decapsulated, for the kernel to route; it has no number, so copies are not told " +
			"apart"
	}
	return ""
}

// flowletWhy says over which path a host sends a packet, and why over this one.
func flowletWhy(e *api.Explanation) string {
	c := e.Flowlet
	if c == nil {
		return "leaves as it is, by the kernel's route: its destination is in no group of paths"
	}
	if c.Path == "" {
		return "leaves by the kernel's route: " + map[string]string{
			"too_long": "with the outer header it is longer than what the paths of group " +
				c.Group + " carry",
			"pathless": "all paths of group " + c.Group + " are down"}[e.Outcome]
	}
	text := fmt.Sprintf("sent over path %s of group %s, ", c.Path, c.Group)
	switch {
	case c.Choice == config.OfFlow:
		return text + "which the flow's hash names"
	case c.Before == c.Path:
		return text + "which its flow has"
	case c.Choice == config.Random:
		return text + "drawn at random for this flowlet"
	case c.Before != "":
		return text + "the one of least cost now, as its flow may leave path " + c.Before
	}
	return text + "the one of least cost now"
}

func policyWhy(e *api.Explanation) string {
	var lists []string
	for _, c := range e.Copies {
		text := c.List
		if c.Reason != "" {
			text += " (dropped: " + c.Reason + ")"
		}
		lists = append(lists, text)
	}
	how := map[config.SteeringAction]string{
		"path": "its only list", "split-flow": "its flow's list",
		"split-packet": "the list whose turn it is",
		"mirror":       "a copy by each list",
	}[e.Policy.Action]
	return fmt.Sprintf("policy %s, path %s: %s, %s", e.Policy.Name, e.Policy.Path, how,
		strings.Join(lists, ", "))
}

func passedWhy(e *api.Explanation) string {
	switch e.Role {
	case api.Host:
		return "passed to the kernel as it came: its destination is no SID of this host"
	case api.Headend:
		return "passed to the kernel as it came: no rule chooses it"
	case api.Merge:
		return "passed to the kernel as it came: its destination is no SID of this egress"
	}
	return "passed to the kernel as it came: its destination is no VIP of this edge, or it is " +
		"not the edge's to answer"
}

// sentWhy says where an edge or a head-end without a policy sends a packet.
func sentWhy(e *api.Explanation) string {
	switch {
	case e.Role != api.Headend:
		return edgeWhy(e)
	case len(e.Path) > 0:
		return "sent along the path that its flow was given, in front of all rules"
	}
	return "answered by the head-end (" + e.Outcome + ")"
}

// edgeWhy names those to whom the packet is offered.
func edgeWhy(e *api.Explanation) string {
	switch len(e.OfferedTo) {
	case 0:
		if e.FlowCache != "" {
			return "a SYN-ACK on its way through End.LEARN, given to the kernel to be routed: " +
				cacheTexts[e.FlowCache]
		}
		return "answered or rewritten by the edge (" + e.Outcome + ")"
	case 1:
		return ledWhy(e) + "sent to " + described(e, e.OfferedTo[0]) +
			", the only one that it is offered to"
	}
	names := lists.Map(e.OfferedTo, func(name string) string { return described(e, name) })
	text := ledWhy(e) + "offered to " + strings.Join(names, ", then ") +
		": the first that accepts or has the connection takes it, the last must"
	if e.FlowCache != "" {
		text += "; " + cacheTexts[e.FlowCache]
	}
	return text
}

// ledWhy says over which SIDs the packet travels to the first backend, "" if routing decides.
func ledWhy(e *api.Explanation) string {
	var sids []string
	for _, h := range e.Header {
		if h.Role == "path" {
			sids = append(sids, h.SID.String())
		}
	}
	if sids == nil {
		return ""
	}
	return "led over " + strings.Join(sids, ", then ") + "; "
}

// cacheTexts say what the flow cache did, by event.
var cacheTexts = map[string]string{
	model.CacheHit.String():  "the flow cache has named the first",
	model.CacheMiss.String(): "the flow cache has no entry for it",
	model.CacheStale.String(): "the flow cache names a backend that is not in the " +
		"chain any more, and is not believed",
	model.CacheStored.String():         "the flow cache has noted its owner",
	model.CacheRefusedUnnamed.String(): "it names no owner, so the flow cache has noted nothing",
	model.CacheRefusedStranger.String(): "the owner that it names is not in the flow's chain, so " +
		"the flow cache has noted nothing",
}

// described adds to a backend's name what is special about it.
func described(e *api.Explanation, name string) string {
	if e.Trace == nil {
		return name
	}
	for _, p := range e.Trace.Chain {
		switch {
		case p.Backend != name:
		case p.Role == string(pool.PastOwner):
			return name + " (owned the bucket before)"
		case p.Role == string(pool.Former):
			return name + " (owned the flow before the secret or the buckets changed)"
		case p.State != config.Up:
			return name + " (" + string(p.State) + ")"
		}
	}
	return name
}

// offers say what a host made of an offer.
var offers = map[model.Offer]string{
	model.OfferLast:          "taken: no host is left to pass it on to",
	model.OfferHere:          "taken: the connection is here",
	model.OfferAccepted:      "taken: a new connection, and the acceptance policy accepts it",
	model.OfferRefused:       "passed on: the acceptance policy refuses it",
	model.OfferRefusedBefore: "passed on: it was refused a moment ago",
	model.OfferNoService:     "passed on: a new connection to a service that is not on this host",
	model.OfferNotHere:       "passed on: the connection is not here",
	model.OfferNotTCP:        "passed on: nothing is known about it, and others are left",
	model.OfferPassedBefore:  "passed on: its other copy was, a moment ago",
	model.OfferStray:         "sent back to the edge: the connection is not here",
}

func hostWhy(e *api.Explanation) string {
	for offer, text := range offers {
		if offer.String() == e.Offer {
			return text
		}
	}
	return "taken: decapsulated for the local stack"
}

// straysWhy says what the programs do, and what is the kernel's to decide.
func straysWhy(e *api.Explanation) string {
	const asItCame = "passed to the kernel as it came"
	if e.VRF == nil {
		return asItCame + ": its destination is no SID of a VRF"
	}
	vrf := "VRF " + e.VRF.Name
	switch {
	case e.Offer == model.OfferHere.String() && e.Verdict == model.Pass.String():
		return fmt.Sprintf("%s, which decapsulates it: the connection is in %s", asItCame, vrf)
	case e.Offer == model.OfferHere.String():
		return fmt.Sprintf("the connection is in %s: decapsulated, and received there, where the "+
			"kernel delivers it", vrf)
	case e.Offer == model.OfferReturned.String():
		return fmt.Sprintf("left to the kernel: a stray that was one before, as its hop limit "+
			"says, and %s has no such connection; "+
			"it goes round no more, and is answered with a RST", vrf)
	case e.Offer == model.OfferStray.String():
		return fmt.Sprintf("a stray: %s has no such connection; decapsulated, and received on "+
			"%s, %s",
			vrf, e.VRF.Backup, wayText(e.VRF.Leaves))
	case e.Verdict != model.Pass.String():
		return fmt.Sprintf("decapsulated, and received by %s, where the kernel decides", vrf)
	case e.VRF.Left == LeftGone:
		return fmt.Sprintf("%s: %s or its backup device %s is not there now; see sextant doctor",
			asItCame, vrf, e.VRF.Backup)
	case e.VRF.Left == LeftOpening:
		return fmt.Sprintf("%s, which decapsulates it into %s: only a packet that continues a "+
			"TCP connection can be astray", asItCame, vrf)
	}
	return fmt.Sprintf("%s, to decide by itself: %s", asItCame, model.Meaning(e.VRF.Left))
}

// wayText is where the kernel's routes lead a stray.
func wayText(w *api.StrayWay) string {
	switch facts.Fate(w.Fate) {
	case facts.Forwarded:
		text := "from where the kernel's routes send it by " + w.Interface
		if len(w.Segments) == 0 {
			return text + " as it is"
		}
		var segments []string
		for _, s := range w.Segments {
			segments = append(segments, s.String())
		}
		return text + " to " + strings.Join(segments, ", ")
	case facts.Delivered:
		return "where the kernel delivers it on this machine, and answers with a RST"
	case "":
		return "where the kernel's routes decide"
	}
	return "where it ends (" + w.Fate + "); see sextant doctor"
}

// Why a packet to a SID of a VRF is left to the kernel, besides the reasons of package forward.
const (
	LeftGone    = "vrf_gone"
	LeftOpening = "continues_nothing"
)
