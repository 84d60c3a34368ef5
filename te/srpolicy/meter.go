package srpolicy

import "time"

// Meter is how fast octets go out, by a counter of octets that is kept anyway: an average that
// forgets over a time constant, as the discounting rate estimator of CONGA does (Alizadeh et al.,
// SIGCOMM 2014, section 3.2), brought up to date when somebody asks for it. It is meter.h of the
// kernel's programs.
type Meter struct {
	at     time.Duration
	octets uint64
	rate   uint64
}

const (
	meterUnit  = 20 // a rate is in octets per 2^20 ns
	meterPause = 8  // part of the time constant for which a rate stands
)

// Read returns the rate at a time, in octets per 2^20 ns, where a counter stands at so many octets.
func (m *Meter) Read(octets uint64, now, constant time.Duration) uint64 {
	elapsed := now - m.at
	if elapsed <= constant/meterPause {
		return m.rate
	}
	fresh := octets - m.octets
	m.at, m.octets = now, octets
	m.rate = (m.rate*uint64(constant) + fresh<<meterUnit) / uint64(constant+elapsed)
	return m.rate
}
