package datapath

import (
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
)

// flowletGeneration loads programs of flowlets with paths over what runs in a world.
func flowletGeneration(t *testing.T, w *world, config FlowletsConfig, paths ...string) *Flowlets {
	t.Helper()
	f, err := OpenFlowlets(w.dir, config)
	must(t, err)
	t.Cleanup(f.Close)
	setFlowletPaths(t, f, paths...)
	_, err = f.Commit()
	must(t, err)
	return f
}

// setFlowletPaths makes paths those of the only group.
func setFlowletPaths(t *testing.T, f *Flowlets, paths ...string) {
	t.Helper()
	g := model.FlowletGroup{Destinations: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}
	for _, sid := range paths {
		g.Paths = append(g.Paths, model.FlowletPath{SID: netip.MustParseAddr(sid), MTU: 1500,
			Down: sid == silentPath, Delay: time.Millisecond})
	}
	must(t, f.SetGroups([]model.FlowletGroup{g}))
}

const silentPath = "fcbb:bb00:3::"

// TestFlowletsTakeOver: programs that take over, also with other settings and other paths, go on
// with the counters and measures of the paths that stay, and with the paths of flows; a path that
// comes begins with none of what another one had.
func TestFlowletsTakeOver(t *testing.T) {
	w := newWorld(t)
	config := FlowletsConfig{Interfaces: []string{"near"}, Source: flowletSource, Flows: 64}
	first := flowletGeneration(t, w, config, "fcbb:bb00:1::", "fcbb:bb00:2::", silentPath)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	second := netip.MustParseAddr("fcbb:bb00:2::")
	for sid, number := range first.paths {
		measure := flowletMeasure{Packets: uint64(sid.As16()[5]), RoundTrip: 1000}
		must(t, first.maps["flowlet_measures"].Put(number, measure))
	}
	flow := model.FlowletEnds{Local: flowletSource, Remote: netip.MustParseAddr("2001:db8::1"),
		LocalPort: 4000, RemotePort: 80, Protocol: 6}
	must(t, first.maps["flowlet_flows"].Put(flowletKeyOf(flow),
		flowletFlow{Path: first.paths[second], Former: noFlowletPath}))
	first.Close()

	config.Gap = time.Second
	next := flowletGeneration(t, w, config, "fcbb:bb00:4::", "fcbb:bb00:2::")
	wantFlowletPackets(t, next, "fcbb:bb00:2::", 2)
	wantFlowletPackets(t, next, "fcbb:bb00:4::", 0)
	if sid, known := next.PathOf(flow); !known || sid != second {
		t.Errorf("the flow has path %s, %v; want %s", sid, known, second)
	}
	found := next.Found()
	if was := found[netip.MustParseAddr(silentPath)]; len(found) != 3 || !was.Down ||
		found[second].Down || found[second].Delay != time.Millisecond {
		t.Errorf("found of the paths before: %+v", found)
	}
	// Numbers of paths that left while programs ran are free for the next ones.
	setFlowletPaths(t, next, "fcbb:bb00:4::")
	must(t, next.maps["flowlet_measures"].Put(next.paths[netip.MustParseAddr("fcbb:bb00:4::")],
		flowletMeasure{Packets: 4}))
	config.Flows = 128 // others are not known
	last := flowletGeneration(t, w, config, "fcbb:bb00:2::", "fcbb:bb00:4::")
	wantFlowletPackets(t, last, "fcbb:bb00:2::", 0)
	wantFlowletPackets(t, last, "fcbb:bb00:4::", 4)
	if _, known := last.PathOf(flow); known || len(last.Found()) != 1 {
		t.Errorf("a larger table knows the flow: %v; found %+v", known, last.Found())
	}
}

func wantFlowletPackets(t *testing.T, f *Flowlets, sid string, packets uint64) {
	t.Helper()
	traffic, err := f.Traffic(netip.MustParseAddr(sid))
	must(t, err)
	if traffic.Packets != packets || (traffic.RoundTrip > 0) != (packets == 2) {
		t.Errorf("over %s went %+v, want %d packets", sid, traffic, packets)
	}
}
