package headend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/agent/southbound"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// maxFlowPath bounds for how long a flow can keep a path that nobody renews.
const maxFlowPath = southbound.MaxHold

// FlowPaths is what api.Agent says.
func (h *Room) FlowPaths(ctx context.Context) ([]api.FlowPath, error) {
	return role.Ask(ctx, &h.Loop, h.flowPaths)
}

func (h *Room) flowPaths() ([]api.FlowPath, error) {
	if h.Runs == nil {
		return nil, nil
	}
	var paths []api.FlowPath
	flows, err := h.Runs.Program.Flows()
	for _, f := range flows {
		if named := explain.FlowOf(f.Flow); f.Left > 0 && named != nil {
			paths = append(paths, api.FlowPath{Flow: *named, Segments: f.Header.Segments(),
				Seconds: f.Left.Seconds()})
		}
	}
	slices.SortFunc(paths, func(x, y api.FlowPath) int {
		return cmp.Or(x.Flow.Source.Compare(y.Flow.Source),
			x.Flow.Destination.Compare(y.Flow.Destination))
	})
	return paths, err
}

// SetFlowPath is what api.Agent says.
func (h *Room) SetFlowPath(ctx context.Context, p api.FlowPath) (err error) {
	tuple, err := flowPathTuple(p.Flow)
	if err != nil {
		return err
	}
	during := time.Duration(p.Seconds * float64(time.Second))
	if !(p.Seconds > 0) || during > maxFlowPath {
		return &api.Error{Code: api.Invalid, Message: fmt.Sprintf(
			"seconds %v: write more than 0, and at most %v", p.Seconds, maxFlowPath.Seconds())}
	}
	doErr := h.Do(ctx, func() { err = h.setFlowPath(tuple, p.Segments, during) })
	return errors.Join(doErr, err)
}

func (h *Room) setFlowPath(t flow.Tuple, segments []netip.Addr, during time.Duration) error {
	if h.Runs == nil {
		return errNoHeadend
	}
	list := srpolicy.List{Segments: segments, Reduced: true}
	header, err := list.Header(h.Runs.Program.Source())
	if err != nil {
		return &api.Error{Code: api.Invalid, Message: err.Error()}
	}
	return flowPathError(h.Runs.Program.SetFlow(t, header, during))
}

// RemoveFlowPath is what api.Agent says.
func (h *Room) RemoveFlowPath(ctx context.Context, f api.Flow) error {
	t, err := flowPathTuple(f)
	if err != nil {
		return err
	}
	doErr := h.Do(ctx, func() { err = h.removeFlowPath(t) })
	return errors.Join(doErr, err)
}

func (h *Room) removeFlowPath(t flow.Tuple) error {
	if h.Runs == nil {
		return errNoHeadend
	}
	return flowPathError(h.Runs.Program.RemoveFlow(t))
}

var errNoHeadend = &api.Error{Code: api.Conflict,
	Message: "this node is no head-end; add \"headend:\" to its file"}

// flowPathError says what a head-end without a table of flows is refused by.
func flowPathError(err error) error {
	if errors.Is(err, datapath.ErrNoFlowPaths) || errors.Is(err, datapath.ErrNoFlowGroups) {
		return &api.Error{Code: api.Conflict, Message: err.Error()}
	}
	return err
}

func flowPathTuple(f api.Flow) (flow.Tuple, error) {
	number, ok := state.ProtocolNumbers[f.Protocol]
	source, destination := f.Source.Addr().Unmap(), f.Destination.Addr().Unmap()
	switch {
	case !ok:
		return flow.Tuple{}, &api.Error{Code: api.Invalid, Message: fmt.Sprintf(
			"protocol %q: write %s or %s", f.Protocol, config.TCP, config.UDP)}
	case !f.Source.IsValid() || !f.Destination.IsValid() || source.Is4() != destination.Is4():
		return flow.Tuple{}, &api.Error{Code: api.Invalid,
			Message: "a flow has a source and a destination of one IP version; write " +
				"ADDRESS:PORT each"}
	}
	return flow.Tuple{Src: source, Dst: destination, SrcPort: f.Source.Port(),
		DstPort: f.Destination.Port(), Protocol: number}, nil
}

// flowHeaders are the lists of flows that have paths of their own.
func (h *Role) flowHeaders() (map[flow.Tuple]srpolicy.Header, error) {
	flows, err := h.Program.Flows()
	headers := map[flow.Tuple]srpolicy.Header{}
	for _, f := range flows {
		if f.Left > 0 {
			headers[f.Flow] = f.Header
		}
	}
	return headers, err
}
