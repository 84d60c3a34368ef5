package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/packet/lists"
)

// placeKind is the kind of hook that a program is attached to.
type placeKind uint8

const (
	onXDP placeKind = iota
	onLeaving
	onArriving
	onSockets
)

// place is where a program is to be attached.
type place struct {
	name    string // of the program
	program *ebpf.Program
	on      string // interface or cgroup directory
	kind    placeKind
	mode    Mode // XDP only
	side    Side // edge and head-end only
	sends   bool // frames may be sent by the interface
}

// link is the file name of the pinned link.
func (p place) link() string {
	switch p.kind {
	case onLeaving:
		return linkName(p.name, leaving.name, p.on)
	case onArriving:
		return linkName(p.name, arriving.name, p.on)
	case onSockets:
		return linkPrefix + p.name
	}
	return linkName(p.name, xdpHook, p.on)
}

func (p place) attach(dir string) (Attachment, error) {
	switch p.kind {
	case onLeaving:
		return attachTC(dir, p.name, p.program, p.on, leaving)
	case onArriving:
		return attachTC(dir, p.name, p.program, p.on, arriving)
	case onSockets:
		return attachSockets(dir, p.name, p.program, p.on)
	}
	return attachXDP(dir, p.name, p.program, p.on, p.mode)
}

// commit attaches programs to all places, releases what is attached elsewhere, and pins
// everything.
func (c *collection) commit(places []place) ([]Attachment, error) {
	for _, p := range places {
		if err := c.put(p); err != nil {
			return c.Attachments(), err
		}
	}
	attachments := c.Attachments()
	if err := releaseOthers(c.dir, attachments); err != nil {
		return attachments, err
	}
	return attachments, c.pin()
}

// put attaches a program to its place, and holds the link: a link that nothing but its pin holds
// ends with the bpf file system.
func (c *collection) put(p place) error {
	a, err := p.attach(c.dir)
	if err != nil {
		return err
	}
	a.Side = p.side
	if i := slices.IndexFunc(c.places,
		func(o place) bool { return o.link() == p.link() }); i >= 0 {
		c.places[i] = p
	} else {
		c.places = append(c.places, p)
	}
	c.attached[a.link] = a
	c.hold(a.link)
	if p.sends {
		return c.setPorts([]Attachment{a})
	}
	return nil
}

// hold keeps the link open that is pinned under a name; what an earlier link of that name was is
// let go. A clsact filter has no link: the kernel holds it.
func (c *collection) hold(name string) {
	l, err := link.LoadPinnedLink(filepath.Join(c.dir, name), nil)
	if err != nil {
		return
	}
	if before := c.links[name]; before != nil {
		before.Close()
	}
	c.links[name] = l
}

// setPorts tells the programs on which interfaces they can send: those that run one, since these
// have native XDP.
func (c *collection) setPorts(attachments []Attachment) error {
	for _, a := range attachments {
		if a.Mode != Native {
			continue
		}
		if err := c.maps["ports"].Put(uint32(a.Index), uint32(a.Index)); err != nil {
			return fmt.Errorf("allow sending on interface %s: %w", a.On, err)
		}
	}
	return nil
}

// Attachments lists where the programs were attached last. [collection.Look] says whether they
// are.
func (c *collection) Attachments() []Attachment {
	return lists.Map(c.places, func(p place) Attachment { return c.attached[p.link()] })
}

// Reattach attaches the programs again where they are not attached any more, and pins what is not
// pinned. The tables are as they were. What can't be attached keeps no other program from it.
func (c *collection) Reattach() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("create pin directory %s: %w", c.dir, err)
	}
	var failures []error
	for _, p := range slices.Clone(c.places) {
		failures = append(failures, c.repinLink(p.link()))
		s, err := c.attached[p.link()].look(c.dir)
		if err == nil && s.exists && c.attached[p.link()].fault(s) != "" {
			err = c.put(p)
		}
		failures = append(failures, err)
	}
	return errors.Join(append(failures, c.pin())...)
}

// Hold holds the links that are pinned now, after others were pinned in their place.
func (c *collection) Hold() {
	for _, p := range c.places {
		c.hold(p.link())
	}
}

// repinLink pins a held link, if it is not pinned.
func (c *collection) repinLink(name string) error {
	path := filepath.Join(c.dir, name)
	held := c.links[name]
	if _, err := os.Stat(path); err == nil || held == nil {
		return nil
	}
	info, err := held.Info()
	if err != nil {
		return fmt.Errorf("pin link at %s again: %w", path, err)
	}
	l, err := link.NewFromID(info.ID) // the held one counts as pinned
	if err != nil {
		return fmt.Errorf("pin link at %s again: %w", path, err)
	}
	defer l.Close()
	if err := l.Pin(path); err != nil {
		return fmt.Errorf("pin link at %s again: %w", path, err)
	}
	return nil
}
