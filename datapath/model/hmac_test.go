package model_test

import (
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
	"sextant/packet/srv6"
)

var signings = map[string]packettest.Signing{
	"rfc8754": {ID: 7, Secret: "a secret of the edges"},
	"linux":   {ID: 0xdeadbeef, Secret: "a secret of the edges", Linux: true},
}

func hmacKey(t *testing.T, s packettest.Signing) srv6.HMACKey {
	t.Helper()
	secret, err := srv6.NewHMACSecret([]byte(s.Secret))
	if err != nil {
		t.Fatal(err)
	}
	key := srv6.HMACKey{ID: s.ID, Secret: secret}
	if s.Linux {
		key.Form = srv6.HMACLinux
	}
	return key
}

// TestHMACEncapsulation compares the whole frame with one to six ids.
func TestHMACEncapsulation(t *testing.T) {
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}
	for form, signing := range signings {
		key := hmacKey(t, signing)
		for _, encapsulation := range []string{packettest.FullSRH, packettest.ReducedSRH} {
			for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
				t.Run(form+"/"+encapsulation+"/"+kind, func(t *testing.T) {
					for n := 1; n <= pool.MaxChain; n++ {
						edge := newEdge(t, chain(1, ids[:n]...), internal)
						edge.Encapsulation, edge.HMAC = encapsulations[encapsulation], &key
						visits := ids[:n]
						if packet.Protocol == udp {
							visits = ids[:1]
						}
						ip := packet.Bytes(t)
						want := signing.Encapsulated(t, encapsulation, visits,
							uint32(edge.FlowHash.Hash(edge.Secret, packet.Flow())&0xfffff),
							packet.TrafficClass, ip)
						got := edge.Process(external, fromClient().Frame(t, ip))
						packettest.WantFrame(t, got.Frame,
							link{Src: egressMAC, Dst: gatewayMAC}.Frame(t, want))
					}
				})
			}
		}
	}
}

// TestHMACCases: headers of all kinds, broken ones too, meet the fate that the shared table says.
func TestHMACCases(t *testing.T) {
	for form, signing := range signings {
		key := hmacKey(t, signing)
		for _, test := range signing.HMACCases(t) {
			t.Run(form+"/"+test.Name, func(t *testing.T) {
				host := newHost(internal)
				host.HMAC, host.HMACKeys = model.HMACSRH, map[uint32]srv6.HMACKey{key.ID: key}
				if got := outcome(checkHost(t, host, external, time.Minute,
					test.Frame)); got != test.Want {
					t.Errorf("got %s, want %s", got, test.Want)
				}
			})
		}
	}
}

// TestHMACRules: what differs between the rules.
func TestHMACRules(t *testing.T) {
	signing := signings["rfc8754"]
	key := hmacKey(t, signing)
	for rule, want := range map[model.HMACRule]map[string]string{
		model.HMACNone:    {"no SRH": "take", "no TLV": "redirect", "another secret": "redirect"},
		model.HMACPresent: {"no SRH": "take", "no TLV": "redirect", "another secret": "hmac_wrong"},
		model.HMACAll: {"no SRH": "hmac_missing", "no TLV": "hmac_missing",
			"another secret": "hmac_wrong"},
	} {
		for _, test := range signing.HMACCases(t) {
			host := newHost(internal)
			host.HMAC, host.HMACKeys = rule, map[uint32]srv6.HMACKey{key.ID: key}
			if want, ok := want[test.Name]; ok {
				if got := outcome(checkHost(t, host, external, time.Minute,
					test.Frame)); got != want {
					t.Errorf("rule %d, %s: got %s, want %s", rule, test.Name, got, want)
				}
			}
		}
	}
}
