package lab

import (
	"cmp"
	"errors"
	"fmt"

	"sextant/lab/linkemu"
	"sextant/lab/netem"
	"sextant/linux"
)

// WireKind is what delays, loses and limits the packets of a link.
type WireKind string

// The kinds of wires. On a kernel wire, packets that an XDP program sends are not impaired, since
// they bypass queueing disciplines.
const (
	WireAuto   WireKind = "auto"   // kernel if that can do all that is asked, else user
	WireKernel WireKind = "kernel" // the queueing discipline netem, at both ends
	WireUser   WireKind = "user"   // a process of the lab, package wire
)

// Known says whether the kind is one, or none.
func (k WireKind) Known() bool {
	return k == "" || k == WireAuto || k == WireKernel || k == WireUser
}

var errNoNetem = errors.New("this kernel has no netem")

// chooseWires settles what impairs each link. The preference is that of the caller; what a link
// itself says counts more.
func chooseWires(f *fabric, preference WireKind, hasNetem func() (bool, error)) error {
	users := 0
	for i := range f.links {
		link := &f.links[i]
		if !link.impaired() {
			continue
		}
		kind, err := chooseWire(f, link, preference, hasNetem)
		if err != nil {
			return fmt.Errorf("the link %s - %s: %w", link.Ends[0], link.Ends[1], err)
		}
		link.wire = kind
		profiles := link.profiles()
		for side, end := range link.ends {
			port := f.port(end)
			port.wire, port.profile = kind, profiles[side]
		}
		if kind == WireUser {
			link.number = users
			users++
		}
	}
	return nil
}

func chooseWire(f *fabric, link *fabricLink, preference WireKind,
	hasNetem func() (bool, error)) (WireKind, error) {
	kind := link.Wire
	if kind == "" || kind == WireAuto {
		kind = preference
	}
	beyond := beyondNetem(link.profiles())
	if kind == "" || kind == WireAuto {
		if beyond != "" || f.sendsByXDP(link) {
			return WireUser, nil
		}
		has, err := hasNetem()
		if err != nil || !has {
			return WireUser, err
		}
		return WireKernel, nil
	}
	if kind == WireKernel {
		if beyond != "" {
			return "", fmt.Errorf("netem has no %s; write wire: user", beyond)
		}
		has, err := hasNetem()
		if err == nil && !has {
			err = fmt.Errorf("%w; write wire: user, or load its module (sch_netem)", errNoNetem)
		}
		return kind, err
	}
	return kind, nil
}

// beyondNetem names what of the profiles netem can't do, "" for nothing.
func beyondNetem(profiles [2]netem.Profile) string {
	for _, p := range profiles {
		switch {
		case p.LossBurst > 1:
			return "lossBurst in the form that is known here"
		case p.BurstBytes > 0:
			return "burst"
		}
	}
	return ""
}

// sendsByXDP tells that one of a link's nodes has XDP programs of a Sextant agent, which may send
// on all its ports.
func (f *fabric) sendsByXDP(link *fabricLink) bool {
	for _, end := range link.ends {
		for _, port := range f.nodes[end.node].ports {
			if port.claimed {
				return true
			}
		}
	}
	return false
}

// wires are the links of the lab's wire process, in the order of their numbers.
func (f *fabric) wires() []linkemu.Link {
	var links []linkemu.Link
	for _, link := range f.links {
		if link.wire != WireUser {
			continue
		}
		w := linkemu.Link{MTU: link.MTU, Seed: max(1, link.Seed), Profiles: link.profiles()}
		w.MTU = cmp.Or(w.MTU, defaultMTU)
		for side, end := range link.Ends {
			w.Ends[side], w.Interfaces[side] = end.String(), wireInterface(link.number, side)
		}
		links = append(links, w)
	}
	return links
}

// wireInterface is the name of the wire's own end of a veth pair.
func wireInterface(number, side int) string { return fmt.Sprintf("w%d%c", number, 'a'+side) }

func kernelHasNetem() func() (bool, error) {
	var asked, has bool
	return func() (bool, error) {
		if asked {
			return has, nil
		}
		var err error
		has, err = linux.HasNetem()
		asked = err == nil
		return has, err
	}
}
