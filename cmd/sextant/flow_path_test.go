package main

import (
	"context"
	"slices"
	"testing"

	"sextant/agent/api"
)

func (f *fakeAgent) FlowPaths(context.Context) ([]api.FlowPath, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flows, nil
}

func (f *fakeAgent) SetFlowPath(_ context.Context, p api.FlowPath) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows = append(f.flows, p)
	return nil
}

func (f *fakeAgent) RemoveFlowPath(_ context.Context, flow api.Flow) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows = slices.DeleteFunc(f.flows, func(p api.FlowPath) bool { return p.Flow == flow })
	return nil
}

func TestFlowPathSession(t *testing.T) {
	const flow = "[2001:db8:1::1]:40000 [2001:db8:2::1]:443"
	newWorld(t, fakeNode).script("flow-path", []string{
		"flow list", "flow set " + flow + " --segments fcbb:bb00:12::,fcbb:bb00:2:d6::",
		"flow set 192.0.2.1:1 192.0.2.2:2 --protocol udp --segments fcbb:bb00:12:: --for 90s -q",
		"flow list", "flow list -o json", "flow list -o name", "flow clear " + flow,
		"flow list -o name", "flow set " + flow + " --segments 1.2.3",
		"flow set [2001:db8:1::1] [2001:db8:2::1]:443", "flow clear a b",
	})
}
