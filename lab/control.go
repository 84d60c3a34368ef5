package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/lab/linkemu"
	"sextant/lab/netem"
	"sextant/linux"
	"sextant/packet/lists"
)

// LinkState is a link of a lab that is up, and what happens to its packets now.
type LinkState struct {
	Link
	// of what each end sends; none without a wire
	Directions []linkemu.DirectionStatus `json:"directions,omitempty"`
}

// LinkChange is a change of what happens to packets that come from now on.
type LinkChange struct {
	Profile func(*netem.Profile) error
	// Carrier takes the carrier of the nodes' interfaces away, or gives it back; nil leaves it. On
	// user-space wires only.
	Carrier *bool
}

// LinkStates tells of all links.
func (l *Lab) LinkStates(ctx context.Context) ([]LinkState, error) {
	var user []linkemu.LinkStatus
	if l.Wire != nil {
		var err error
		if user, err = linkemu.NewClient(l.Wire.Socket).Links(ctx); err != nil {
			return nil, err
		}
	}
	states := make([]LinkState, len(l.Links))
	for i, link := range l.Links {
		states[i].Link = link
		switch {
		case link.Wire == WireUser && link.Number < len(user):
			states[i].Directions = user[link.Number].Directions[:]
		case link.Wire == WireKernel:
			for side := range link.Ends {
				status, err := l.netemStatus(link, side)
				if err != nil {
					return nil, err
				}
				states[i].Directions = append(states[i].Directions, status)
			}
		}
	}
	return states, nil
}

// ChangeLinks changes what happens to packets. The name is that of an end, "edge1:eth0", for what
// this end sends; or of links, by their ends or nodes, "edge1--router", for both directions.
func (l *Lab) ChangeLinks(ctx context.Context, name string, change LinkChange) error {
	chosen, err := l.choose(name)
	if err != nil {
		return err
	}
	states, err := l.LinkStates(ctx)
	if err != nil {
		return err
	}
	for _, c := range chosen {
		if err := l.changeLink(ctx, states[c.link], c.side, change); err != nil {
			return fmt.Errorf("change what %s sends: %w", states[c.link].Ends[c.side], err)
		}
	}
	return nil
}

type linkSide struct{ link, side int }

// choose finds the directions of a name.
func (l *Lab) choose(name string) ([]linkSide, error) {
	var chosen []linkSide
	from, to, both := strings.Cut(name, "--")
	for i, link := range l.Links {
		a, b := link.Ends[0], link.Ends[1]
		switch {
		case both && (isEnd(from, a) && isEnd(to, b) || isEnd(from, b) && isEnd(to, a)):
			chosen = append(chosen, linkSide{i, 0}, linkSide{i, 1})
		case !both && slices.Contains(link.Ends[:], name):
			chosen = append(chosen, linkSide{i, slices.Index(link.Ends[:], name)})
		}
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	names := lists.Map(l.Links, func(l Link) string { return l.Ends[0] + "--" + l.Ends[1] })
	return nil, absent(fmt.Sprintf("lab %s has no link or end %q; it has %s", l.Name, name,
		enumerate(names)))
}

// absent is an error about what a lab does not have. It is [os.ErrNotExist] without its words,
// which are of files.
type absent string

func (a absent) Error() string { return string(a) }

// Is is of package errors.
func (absent) Is(target error) bool { return target == os.ErrNotExist }

// isEnd tells that a name is that of an end, or of its node.
func isEnd(name, end string) bool {
	node, _, _ := strings.Cut(end, ":")
	return name == end || name == node
}

var errNoWire = errors.New(
	`nothing impairs this link; write "wire: auto" beside its endpoints in the lab's file`)

func (l *Lab) changeLink(ctx context.Context, state LinkState, side int, change LinkChange) error {
	if state.Wire == "" {
		return errNoWire
	}
	profile := state.Directions[side].Profile
	if err := change.Profile(&profile); err != nil {
		return err
	}
	if text, mend := profile.Fault(); text != "" {
		return fmt.Errorf("%s; %s", text, mend)
	}
	if state.Wire == WireUser {
		return linkemu.NewClient(l.Wire.Socket).Set(ctx, state.Number, side, profile,
			change.Carrier)
	}
	if change.Carrier != nil && !*change.Carrier {
		return errors.New(
			`a kernel wire can't take the carrier away; write "wire: user" beside the link's endpoints`)
	}
	if beyond := beyondNetem([2]netem.Profile{profile}); beyond != "" {
		return fmt.Errorf("netem has no %s; write wire: user in the lab's file", beyond)
	}
	return l.onPort(state.Ends[side], func(handle *netlink.Handle, link netlink.Link) error {
		return linux.Failed(handle.QdiscReplace(netemQdisc(link.Attrs().Index, profile)),
			"change netem")
	})
}

// onPort calls f with an end of a link, inside its node.
func (l *Lab) onPort(end string, f func(*netlink.Handle, netlink.Link) error) error {
	name, iface, _ := strings.Cut(end, ":")
	node, err := l.Node(name)
	if err != nil {
		return err
	}
	ns, err := linux.OpenNetns(node.Namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	handle, err := ns.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	link, err := handle.LinkByName(iface)
	if err != nil {
		return linux.Failed(err, "find interface %s", end)
	}
	return f(handle, link)
}

// netemStatus reads back what an end's netem does. A loss of everything is a cut.
func (l *Lab) netemStatus(link Link, side int) (linkemu.DirectionStatus, error) {
	status := linkemu.DirectionStatus{From: link.Ends[side], To: link.Ends[1-side]}
	err := l.onPort(link.Ends[side], func(handle *netlink.Handle, port netlink.Link) error {
		qdiscs, err := handle.QdiscList(port)
		if err != nil {
			return linux.Failed(err, "read the queueing disciplines of %s", link.Ends[side])
		}
		for _, q := range qdiscs {
			if q, ok := q.(*netlink.Netem); ok {
				status.Profile = profileOfNetem(q)
			}
		}
		return nil
	})
	return status, err
}

func profileOfNetem(q *netlink.Netem) netem.Profile {
	share := func(x uint32) float64 { return math.Round(float64(x)/math.MaxUint32*1e6) / 1e6 }
	ticks := func(x uint32) time.Duration {
		return (time.Duration(float64(x)/netlink.TickInUsec()*1e3) * time.Nanosecond).Round(
			time.Microsecond)
	}
	p := netem.Profile{
		Delay: ticks(q.Latency), Jitter: ticks(q.Jitter), Loss: share(q.Loss),
		Duplicate: share(q.Duplicate), Reorder: share(q.ReorderProb),
		RateBits: q.Rate64 * 8,
	}
	if p.Loss >= 1 {
		p.Loss, p.Cut = 0, true
	}
	return p
}
