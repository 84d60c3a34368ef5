package packettest

// Who takes part in VRF-shadowing: a host's conditional SID and address, and the edge's SID for
// strays.
var (
	CondSID   = addr("fcbb:bb00:c::")
	HostAddr  = addr("fd00:5e::51")
	ShadowSID = addr("fcbb:bb00:d0::")
)

// StrayCases returns outer packets to [CondSID] in which ip is a stray, and the one in which it
// goes back.
func StrayCases(ip []byte) map[string][2]Outer {
	back := Outer{Src: HostAddr, Dst: ShadowSID, HopLimit: 59, FlowLabel: 0x12345,
		TrafficClass: 0xb9}
	cases := map[string]Outer{
		"carrier": To(CondSID),
		"SRH":     To(CondSID).With(rout, SRH(ProtocolOf(ip), 0, 0, CondSID)),
		"headers around": To(CondSID).With(hop, Extension(rout, 1), SRH(dst, 0, 0, CondSID),
			Extension(ProtocolOf(ip), 0)),
	}
	both := map[string][2]Outer{}
	for name, outer := range cases {
		outer.TrafficClass = 0xb9
		both[name] = [2]Outer{outer, back}
	}
	return both
}

// ShadowCases returns outer packets in which ip comes back to [ShadowSID], with a hop limit of 59.
func ShadowCases(ip []byte) map[string]Outer {
	cases := map[string]Outer{
		"bare": To(ShadowSID),
		// as the kernel's seg6 encapsulates
		"SRH":     To(ShadowSID).With(rout, SRH(ProtocolOf(ip), 0, 0, ShadowSID)),
		"options": To(ShadowSID).With(dst, Extension(ProtocolOf(ip), 2)),
	}
	for name, outer := range cases {
		outer.HopLimit, outer.Src = 59, HostAddr
		cases[name] = outer
	}
	return cases
}
