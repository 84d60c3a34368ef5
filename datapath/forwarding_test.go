package datapath

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
	"sextant/lb/pool"
)

// forwardingFrames are sent through each device of the bench, each from another flow.
const forwardingFrames = 1000

// TestForwardingBench: each device of the bench forwards all frames, in their order, as the model
// says or, where the kernel forwards, as its documentation does.
func TestForwardingBench(t *testing.T) {
	f := newForwarding(t, nil)
	if !f.hasIPVS(t) {
		t.Log("without IPVS: this kernel has none, or there is no ipvsadm")
	}
	for _, d := range f.devices(t) {
		f.run(t, d.name, func(t *testing.T) {
			oneCPU(t) // the receiver counts by processor
			d.frame.flows, d.arrives.Keeps = forwardingFrames, 1
			f.checkEach(t, d)
		})
	}
}

// checkEach compares each frame with what the device should have made of it.
func (f *forwarding) checkEach(t *testing.T, d device) {
	t.Helper()
	f.enter(t, d)
	f.send(t, d.frame, forwardingFrames) // finds neighbours and routes
	f.leave(t, d)
	f.forget(t)
	if _, right := f.pass(t, d, forwardingFrames); right != forwardingFrames {
		t.Fatalf("%d of %d frames arrived as they should", right, forwardingFrames)
	}
	number := uint32(0)
	for flow := range visits(d.frame, forwardingFrames) {
		var kept [192]byte
		must(t, f.objects.Maps["kept"].Lookup(number, &kept))
		if number++; t.Failed() {
			return
		}
		d.want(t, flowFrame(d.frame, flow), kept[:d.arrives.Length])
	}
}

// forget lets the receiver count from zero.
func (f *forwarding) forget(t testing.TB) {
	t.Helper()
	processors, err := ebpf.PossibleCPU()
	must(t, err)
	must(t, f.objects.Maps["arrivals"].Put(uint32(0), make([]arrivals, processors)))
}

// visits are the flows in the order in which the driver visits them.
func visits(frame benchFrame, count int) func(yield func(flow int) bool) {
	return func(yield func(flow int) bool) {
		stride := int(frame.settings().Stride)
		for i := range count {
			if !yield(i * stride % frame.flows) {
				return
			}
		}
	}
}

// flowFrame is the frame that the driver makes of a flow.
func flowFrame(frame benchFrame, flow int) []byte {
	octets := bytes.Clone(frame.octets)
	port := octets[frame.ports:]
	binary.BigEndian.PutUint16(port, binary.BigEndian.Uint16(port)+uint16(flow%portsPerClient))
	source := octets[frame.source:]
	binary.BigEndian.PutUint32(source,
		binary.BigEndian.Uint32(source)+uint32(flow/portsPerClient))
	return octets
}

// edgeModel is the twin of the bench's edge.
func (f *forwarding) edgeModel(t testing.TB, config EdgeConfig) *model.Edge {
	t.Helper()
	generation := benchGeneration(t)
	return &model.Edge{
		Sides: map[uint32]model.Side{uint32(f.near): model.External,
			uint32(f.far): model.Internal},
		Block: config.Block, Locators: config.Locators, Infrastructure: config.Infrastructure,
		Services: map[model.ServiceKey]uint32{{Addr: hostVIPv6, Port: hostPort,
			Protocol: 6}: 0},
		VIPs:   map[netip.Addr]struct{}{hostVIPv6: {}},
		Secret: config.Secret, FlowHash: config.FlowHash,
		Buckets:       func(uint32) uint32 { return benchBuckets },
		Chains:        func(_, bucket uint32) pool.Chain { return generation.Chain(int(bucket)) },
		Encapsulation: config.Encapsulation, Source: config.Source, EdgeOuter: config.EdgeOuter,
		Shadow: config.Shadow, LastOffer: config.LastOffer,
		SID: func(id uint16) netip.Addr { return sidOf(t, config.Block, id) },
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Interface: uint32(f.far), SrcMAC: [6]byte(farMAC),
				DstMAC: [6]byte(farRouterMAC), MTU: 1500}
		},
	}
}
