package datapath

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// roomlessPaths are paths to the only backend of a service that is served and to others that its
// chains never name, so many that an array of them is full. They begin with a mark.
func roomlessPaths(capacity Capacity, mark uint16) map[uint16][][]uint16 {
	paths := map[uint16][][]uint16{}
	for id := range capacity.orCompiled().Paths/2 - 1 {
		paths[uint16(1+id)] = [][]uint16{{mark, 0xa1}}
	}
	return paths
}

// setLed brings paths of the service of fillEdge into force.
func setLed(e *Edge, paths map[uint16][][]uint16) error {
	if err := e.SetPaths(1, paths); err != nil {
		return err
	}
	return e.SetService(ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, 1, tableBuckets)
}

// TestEdgeMakesPathRoom: while frames run, the array of paths is full again and again, and programs
// with a larger one take over, as when an agent has more backends to lead to. No frame is lost or
// goes without its path, also not while the change is refused, and counters run on.
func TestEdgeMakesPathRoom(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	config := takeoverConfig(t)
	config.Paths = true
	const firstMark, generations = 0xb0, 6
	open := func(mark uint16) (*Edge, error) {
		e, err := OpenEdge(w.dir, config)
		if err != nil {
			return nil, err
		}
		return e, errors.Join(fillEdge(e, 1), setLed(e, roomlessPaths(config.Capacity, mark)),
			commit(e))
	}
	e, err := open(firstMark)
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	c := newCrossing(t)
	c.send(t, unchanged)
	w.besides(t, func() error {
		for mark := uint16(firstMark + 1); mark < firstMark+generations; mark++ {
			if err := setLed(e, roomlessPaths(config.Capacity, mark)); !errors.Is(err, ErrNoRoom) {
				return fmt.Errorf("a second set of paths beside the first one: %w", err)
			}
			more := false
			if config.Capacity, more = config.Capacity.WithMorePaths(); !more {
				return fmt.Errorf("there is no larger capacity than %+v", config.Capacity)
			}
			next, err := open(mark)
			if err != nil {
				return err
			}
			e.Close()
			e = next
		}
		return nil
	}, func() { c.send(t, unchanged) })
	t.Cleanup(e.Close)
	c.send(t, unchanged)
	marks := map[string]bool{}
	for to := range c.to {
		mark, led := strings.CutPrefix(to, "fcbb:bb00:b")
		if !led || !strings.HasSuffix(to, ":a1:1::") {
			t.Errorf("%d frames went to %s, without their path", c.to[to], to)
		}
		marks[mark] = true
	}
	if last := fmt.Sprintf("fcbb:bb00:%x:a1:1::", firstMark+generations-1); c.to[last] == 0 ||
		len(marks) < 2 {
		t.Errorf("frames took %d sets of paths, and the last of all %d times", len(marks),
			c.to[last])
	}
	traffic, err := e.ServiceTraffic(1)
	must(t, err)
	if traffic.All.Packets != uint64(c.sent) {
		t.Errorf("%d frames were sent, and %d are counted", c.sent, traffic.All.Packets)
	}
}
