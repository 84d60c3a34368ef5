package datapath

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

// Explainer opens one for the program that sends flows over paths. Close it.
func (f *Flowlets) Explainer() (*Explainer, error) {
	spec, err := f.spec()
	if err != nil {
		return nil, err
	}
	return newExplainer(f.collection, spec, "flowlet_send", f.programs["flowlet_send"])
}

// Leave gives the program of flowlets a frame that leaves the host. Its outcome is sent, too_long
// or pathless, or "" if its destination is in no group.
func (x *Explainer) Leave(frame []byte) (Explained, error) {
	if len(frame) < minFrame {
		return Explained{}, fmt.Errorf(
			"explain a frame of %d bytes: it has no whole Ethernet header; give %d bytes or more",
			len(frame), minFrame)
	}
	options := ebpf.RunOptions{Data: frame, DataOut: x.out}
	if _, err := x.program.Run(&options); err != nil {
		return Explained{}, fmt.Errorf("run the program on a frame of %d bytes: %w", len(frame),
			err)
	}
	counted, err := x.counted()
	if err != nil {
		return Explained{}, err
	}
	e := Explained{Verdict: model.Pass, Outcome: counted[1], Frame: options.DataOut}
	if e.Outcome == flowletOutcomes[0] {
		e.Verdict = model.HandToKernel // which finds the neighbour
	}
	return e, nil
}

// flowletOutcomes are the names of enum flowlet_outcome.
var flowletOutcomes = []string{"sent", "too_long", "pathless"}

// PathOf is the SID of the path that a flow has, if it is known.
func (f *Flowlets) PathOf(ends model.FlowletEnds) (sid netip.Addr, known bool) {
	var flow flowletFlow
	if f.maps["flowlet_flows"].Lookup(flowletKeyOf(ends), &flow) != nil {
		return netip.Addr{}, false // there is no such flow
	}
	for sid, number := range f.paths {
		if number == flow.Path {
			return sid, true
		}
	}
	return netip.Addr{}, false
}

// flowletKeyOf is how the programs know a flow.
func flowletKeyOf(ends model.FlowletEnds) flowletKey {
	return flowletKey{flowletWords(ends.Local), flowletWords(ends.Remote), ends.LocalPort,
		ends.RemotePort, uint32(ends.Protocol)}
}
