package model_test

import (
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/srv6"
)

// TestHostCases gives frames of all kinds, broken ones too, to a host with routes by another
// interface.
func TestHostCases(t *testing.T) {
	for _, test := range packettest.HostCases(t) {
		t.Run(test.Name, func(t *testing.T) {
			got := outcome(checkHost(t, newHost(internal), external, time.Minute, test.Frame))
			if got != test.Want {
				t.Errorf("got %s, want %s", got, test.Want)
			}
		})
	}
}

// TestHostForeignInterface: an interface that is not the host's.
func TestHostForeignInterface(t *testing.T) {
	got := checkHost(t, newHost(internal), mixed, time.Minute,
		fromClient().Frame(t, to(offerSID).Around(t, web4("S").Bytes(t))))
	if got.Verdict != model.Pass {
		t.Errorf("got %v, %v; want it to pass", got.Verdict, got.Reason)
	}
}

// TestHostForeignBehavior: a SID of a behavior that hosts do not have decapsulates nothing.
func TestHostForeignBehavior(t *testing.T) {
	host := newHost(internal)
	host.SIDs = []model.LocalSID{{Prefix: netip.PrefixFrom(classicSID, 128), Behavior: srv6.End}}
	got := processHost(t, host, to(classicSID).Around(t, web4("A").Bytes(t)))
	if got.Verdict != model.Drop || got.Reason != model.ReasonUpperLayer {
		t.Errorf("got %v, %v; want a drop for upper_layer", got.Verdict, got.Reason)
	}
}

// TestHostCut cuts packets everywhere.
func TestHostCut(t *testing.T) {
	for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
		t.Run(kind, func(t *testing.T) {
			host := newHost(internal)
			for _, test := range packettest.HostCuts(t, packet) {
				if got := outcome(host.Process(external, 0, test.Frame)); got != test.Want {
					t.Errorf("%s: %s, want %s", test.Name, got, test.Want)
				}
			}
		})
	}
}
