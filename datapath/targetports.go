package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// A TargetPort is a port of a service whose sockets listen on another one.
type TargetPort struct {
	ServiceKey
	// Address is the one to which the socket is bound, if it is to one of this host, in the
	// family of the service.
	Address netip.Addr
	Target  uint16 // where the socket listens
}

func (k ServiceKey) target(port uint16) targetKey {
	key := targetKey{Address: addressOf(k.VIP), Port: bigEndian(port), Protocol: k.Protocol}
	if k.VIP.Is4() {
		key.IPv4 = 1
	}
	return key
}

// lookupPin is the pinned link to the network namespace.
const lookupPin = "target_lookup"

// SetTargetPorts lets sockets of a network namespace take connections and datagrams that come by
// an interface to ports of services: these ports, and no others of earlier calls. It pins what it
// attaches in dir, a directory of its own on the bpf file system. Where several UDP ports of an
// address lead to one socket, name one that is the target itself, too: a client's answers come from
// the port that it asked last.
func SetTargetPorts(ns *linux.Netns, dir, iface string, list []TargetPort) error {
	wanted, sources := targetsOf(list)
	c, err := newCollection(dir, loadTargetPort)
	if err != nil {
		return err
	}
	defer func() { c.close() }()
	spec, err := loadTargetPort()
	if err != nil {
		return err
	}
	programs, err := c.load(spec, "targets", "target_sources", "target_asked", "target_listeners")
	if err != nil {
		return err
	}
	err = errors.Join(fill(c.maps["targets"], wanted), fill(c.maps["target_sources"], sources))
	if err != nil {
		return fmt.Errorf("write target ports: %w", err)
	}
	if err := ns.Do(func() error {
		_, err := c.commit([]place{{name: "target_arrive", program: programs["target_arrive"],
			on: iface, kind: onArriving}, {name: "target_leave",
			program: programs["target_leave"], on: iface, kind: onLeaving}})
		return err
	}); err != nil {
		return err
	}
	return attachLookup(filepath.Join(dir, lookupPin), programs["target_lookup"], ns)
}

// targetsOf is what the programs are told of ports.
func targetsOf(list []TargetPort) (map[targetKey]targetValue, map[targetKey]targetSource) {
	wanted, sources := map[targetKey]targetValue{}, map[targetKey]targetSource{}
	for _, t := range list {
		if t.Protocol != unix.IPPROTO_UDP {
			continue
		}
		from := t.target(t.Target)
		source, ok := sources[from]
		if ok && source.Port != bigEndian(t.Port) {
			source.Shared = 1
		} else {
			source.Port = bigEndian(t.Port)
		}
		sources[from] = source
	}
	for _, t := range list {
		value := targetValue{Address: addressOf(t.Address), Port: bigEndian(t.Target)}
		if t.Protocol == unix.IPPROTO_UDP {
			value.Shared = sources[t.target(t.Target)].Shared
		}
		wanted[t.target(t.Port)] = value
	}
	return wanted, sources
}

// UnsetTargetPorts ends what SetTargetPorts began; a nil namespace has ended.
func UnsetTargetPorts(ns *linux.Netns, dir string) error {
	if l, err := link.LoadPinnedLink(filepath.Join(dir, lookupPin), nil); err == nil {
		_ = l.Detach() // it fails if the namespace has ended
		l.Close()
	}
	if ns == nil {
		return os.RemoveAll(dir)
	}
	return ns.Do(func() error { return Unload(dir) })
}

// fill gives a hash the entries that are wanted, and no others.
func fill[V any](m *ebpf.Map, wanted map[targetKey]V) error {
	var key targetKey
	var value V
	var gone []targetKey
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		if _, ok := wanted[key]; !ok {
			gone = append(gone, key)
		}
	}
	if err := entries.Err(); err != nil {
		return err
	}
	for _, key := range gone {
		if err := m.Delete(key); err != nil {
			return err
		}
	}
	for key, value := range wanted {
		if err := m.Put(key, value); err != nil {
			return err
		}
	}
	return nil
}

// attachLookup puts a program where a network namespace looks for listeners.
func attachLookup(path string, program *ebpf.Program, ns *linux.Netns) error {
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		defer l.Close()
		if l.Update(program) == nil {
			return nil
		}
		os.Remove(path) // it is of a namespace that has ended
	}
	l, err := link.AttachNetNs(ns.FD(), program)
	if err != nil {
		return fmt.Errorf("attach target_lookup to the network namespace: %w", err)
	}
	defer l.Close()
	if err := l.Pin(path); err != nil {
		return fmt.Errorf("pin link at %s: %w", path, err)
	}
	return nil
}
