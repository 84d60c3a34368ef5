package model_test

import (
	"testing"

	"sextant/datapath/model"
)

// BenchmarkEdge is a packet of a flow to a service, from frame to frame.
func BenchmarkEdge(b *testing.B) {
	for name, encapsulation := range encapsulations {
		for kind, packet := range map[string]inner{"IPv4": web4("A"), "IPv6": web6("A")} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				edge := newEdge(b, chain(1, 1, 2), internal)
				edge.Encapsulation = encapsulation
				frame := fromClient().Frame(b, packet.Bytes(b))
				b.ReportAllocs()
				for b.Loop() {
					if got := edge.Process(external, frame); got.Verdict != model.Redirect {
						b.Fatal(got.Verdict, got.Reason)
					}
				}
			})
		}
	}
}

// BenchmarkHost is an offer, from frame to frame.
func BenchmarkHost(b *testing.B) {
	for name, outer := range map[string]outer{"taken": to(offerSID),
		"passed on": to(addr("fcbb:bb00:1:2::"))} {
		for kind, packet := range map[string]inner{"IPv4": web4("A"), "IPv6": web6("A")} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				host := newHost(internal)
				frame := fromClient().Frame(b, outer.Around(b, packet.Bytes(b)))
				b.ReportAllocs()
				for b.Loop() {
					if got := host.Process(external, 0, frame); got.Frame == nil {
						b.Fatal(got.Verdict, got.Reason)
					}
				}
			})
		}
	}
}
