package agent_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
)

// A flow keeps its path when its agent ends, and the next agent knows of it; a node file without
// the table has none.
func TestFlowPathsOutliveTheAgent(t *testing.T) {
	m := newMachine(t)
	without := m.start(routerText)
	flow := api.Flow{Source: netip.MustParseAddrPort("[2001:db8:a::1]:4000"),
		Destination: netip.MustParseAddrPort("[2001:db8:b::1]:443"), Protocol: "tcp"}
	segments := []netip.Addr{netip.MustParseAddr("fcbb:bb00:11::"),
		netip.MustParseAddr("fcbb:bb00:2:d6::")}
	path := api.FlowPath{Flow: flow, Segments: segments, Seconds: 3600}
	if err := without.SetFlowPath(t.Context(), path); !isConflict(err) {
		t.Errorf("without a table: %v", err)
	}
	without.stop()
	text := strings.Replace(routerText, "  source: fd00:5e::1\n",
		"  source: fd00:5e::1\n  flows: 1000\n", 1)
	a := m.start(text)
	must(t, a.SetFlowPath(t.Context(), path))
	for what, spoil := range map[string]func(*api.FlowPath){
		"no segments": func(p *api.FlowPath) { p.Segments = nil },
		"no time":     func(p *api.FlowPath) { p.Seconds = 0 },
		"two days":    func(p *api.FlowPath) { p.Seconds = 2 * 24 * 3600 },
		"protocol":    func(p *api.FlowPath) { p.Flow.Protocol = "sctp" },
		"two versions": func(p *api.FlowPath) {
			p.Flow.Source = netip.MustParseAddrPort("192.0.2.1:1")
		},
	} {
		bad := path
		spoil(&bad)
		if err := a.SetFlowPath(t.Context(), bad); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	a.stop()
	a = m.start(text)
	defer a.stop()
	paths, err := a.FlowPaths(t.Context())
	must(t, err)
	if len(paths) != 1 || paths[0].Flow != flow || !slices.Equal(paths[0].Segments, segments) ||
		paths[0].Seconds <= 0 || paths[0].Seconds > 3600 {
		t.Errorf("after a restart: %+v", paths)
	}
	explained, err := a.Explain(t.Context(), api.Question{Flow: &flow})
	must(t, err)
	if len(explained) != 2 || explained[0].Policy != nil ||
		!slices.Equal(explained[0].Path, segments) {
		t.Errorf("explained as %+v", explained)
	}
	if why := explained[0].Why; !strings.HasPrefix(why,
		"sent along the path that its flow was given, in front of all rules") {
		t.Errorf("explained by %q", why)
	}
	must(t, a.RemoveFlowPath(t.Context(), flow))
	if paths, err := a.FlowPaths(t.Context()); err != nil || len(paths) != 0 {
		t.Errorf("after it was removed: %+v, %v", paths, err)
	}
}

func isConflict(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.Conflict
}
