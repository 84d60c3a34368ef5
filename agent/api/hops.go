package api

import "sextant/packet/telemetry"

// CarriedTelemetry is what nodes wrote into a packet, in one format.
type CarriedTelemetry struct {
	Format string `json:"format"` // int-md, int-mx, ioam-trace, ioam-direct-export, path-tracing
	Hops   []Hop  `json:"hops"`   // none of int-mx and ioam-direct-export: their nodes report
}

// Hop is what one node said about a packet. What it did not say is null.
type Hop struct {
	Hop            uint8   `json:"hop"` // 0 is the first that wrote
	Node           *uint64 `json:"node"`
	Ingress        *uint32 `json:"ingress"`
	Egress         *uint32 `json:"egress"`
	QueueID        *uint8  `json:"queueId"`
	QueueBytes     *uint32 `json:"queueBytes"`
	LatencyNs      *uint32 `json:"latencyNs"`
	UtilizationPPM *uint32 `json:"utilizationPpm"`
	TimeNs         *uint64 `json:"timeNs"` // of the node's clock
}

const unknownInterface = ^uint32(0)

// HopsOf are samples in the order of the way.
func HopsOf(samples []telemetry.Sample) []Hop {
	out := make([]Hop, 0, len(samples))
	for _, s := range samples {
		has := func(f telemetry.Field) bool { return s.Known&f != 0 }
		interfaces := has(telemetry.FieldInterfaces)
		out = append(out, Hop{
			Hop: s.Hop, Node: known(has(telemetry.FieldNode), s.Node),
			Ingress:        known(interfaces && s.Ingress != unknownInterface, s.Ingress),
			Egress:         known(interfaces && s.Egress != unknownInterface, s.Egress),
			QueueID:        known(has(telemetry.FieldQueue), s.QueueID),
			QueueBytes:     known(has(telemetry.FieldQueue), s.QueueBytes),
			LatencyNs:      known(has(telemetry.FieldDelay), s.DelayNS),
			UtilizationPPM: known(has(telemetry.FieldUtilization), s.UtilizationPPM),
			TimeNs:         known(has(telemetry.FieldTime), s.TimeNS),
		})
	}
	return out
}

func known[T any](is bool, v T) *T {
	if !is {
		return nil
	}
	return &v
}

// TelemetryOf is what in-band telemetry in a frame says, whole or cut off: INT behind the UDP port
// of telemetry.DefaultINTPort, IOAM and Path Tracing in hop-by-hop options. It has no times of Path
// Tracing, which are parts of a time that is not in the frame.
func TelemetryOf(frame []byte) (all []CarriedTelemetry) {
	// what the packet has before it breaks off counts
	p, _ := telemetry.ParsePacket(frame, telemetry.InEthernet, telemetry.DefaultINTPort)
	add := func(of telemetry.Carried, format string, samples []telemetry.Sample) {
		if p.Has&of != 0 {
			all = append(all, CarriedTelemetry{Format: format, Hops: HopsOf(samples)})
		}
	}
	traced, _ := p.Trace.AppendSamples(nil, 0)
	interfaces := p.PathTrace.AppendSamples(nil, 0, 0, telemetry.PathTracing{})
	for i := range interfaces {
		interfaces[i].Known &^= telemetry.FieldTime
	}
	add(telemetry.HasMD, "int-md", p.MD.AppendSamples(nil, 0))
	add(telemetry.HasMX, "int-mx", nil)
	add(telemetry.HasTrace, "ioam-trace", traced)
	add(telemetry.HasDirectExport, "ioam-direct-export", nil)
	add(telemetry.HasPathTrace, "path-tracing", interfaces)
	return all
}
