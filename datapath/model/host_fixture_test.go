package model_test

import (
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The host's SIDs.
var (
	offerSID   = packettest.OfferSID
	classicSID = packettest.ClassicSID
	dt4SID     = packettest.DT4SID
	dt6SID     = packettest.DT6SID
	dt46SID    = packettest.DT46SID

	to = packettest.To
)

const hostMSS = 1380

// newHost returns a host with the web services, which refuse, and without a socket. Its
// routes go by one interface.
func newHost(egress uint32) *model.Host {
	service := &model.HostService{Policy: acceptance.Policy{Kind: acceptance.Static, Threshold: 4},
		MSS: hostMSS}
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		panic(err)
	}
	return &model.Host{
		Interfaces: map[uint32]struct{}{external: {}, internal: {}},
		SIDs: []model.LocalSID{
			{Prefix: netip.PrefixFrom(dt4SID, 64), Behavior: srv6.EndDT4},
			{Prefix: netip.PrefixFrom(offerSID, 48), Behavior: srv6.EndOFFER},
			{Prefix: netip.PrefixFrom(dt6SID, 64), Behavior: srv6.EndDT6},
			{Prefix: netip.PrefixFrom(dt46SID, 64), Behavior: srv6.EndDT46},
			{Prefix: netip.PrefixFrom(classicSID, 128), Behavior: srv6.EndOFFER},
		},
		Refusal:        10 * time.Second,
		Block:          block,
		Locators:       []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")},
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
		Services: map[model.ServiceKey]*model.HostService{
			{Addr: vip4, Port: 80, Protocol: 6}: service,
			{Addr: vip6, Protocol: 6}:           service, // any port
		},
		Sockets: func(flow.Tuple) model.Socket { return model.Socket{} },
		Busy:    func(model.ServiceKey) uint32 { return 4 },
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{
				Interface: egress, SrcMAC: [6]byte(egressMAC), DstMAC: [6]byte(gatewayMAC),
				MTU: 9000,
			}
		},
	}
}

// processHost gives the host a packet that came in as frames do by default.
func processHost(t testing.TB, host *model.Host, ip []byte) model.Result {
	t.Helper()
	return host.Process(external, time.Minute, fromClient().Frame(t, ip))
}
