package srpolicy

import "time"

// Meter is how fast octets go out, by a counter of octets that is kept anyway: an average that
// forgets over a time constant, as the discounting rate estimator of CONGA does (Alizadeh et al.,
// SIGCOMM 2014, section 3.2), brought up to date when a packet asks for it. It is meter.h of the
// kernel's programs.
type Meter struct {
	at     time.Duration
	octets uint64
	rate   uint64
}

const (
	// MeterUnit is of rates: they are in octets per 2^MeterUnit ns.
	MeterUnit  = 26
	meterPause = 8       // part of the time constant for which a rate stands
	meterLong  = 14      // after 2^14 time constants nothing is left of what was before
	meterMost  = 1 << 32 // octets that are counted of a shorter time: products fit
)

// Read returns the rate at a time, in octets per 2^MeterUnit ns, where a counter stands at so many
// octets. A counter that went back is another one, of which nothing was seen yet.
func (m *Meter) Read(octets uint64, now, constant time.Duration) uint64 {
	elapsed := now - m.at
	if elapsed <= constant/meterPause {
		return m.rate
	}
	fresh := octets - m.octets
	if int64(fresh) < 0 {
		fresh = 0
	}
	m.at, m.octets = now, octets
	if elapsed>>meterLong > constant {
		m.rate = fresh << (MeterUnit - meterLong) / uint64(elapsed>>meterLong)
		return m.rate
	}
	fresh = min(fresh, meterMost)
	m.rate = (m.rate*uint64(constant) + fresh<<MeterUnit) / uint64(constant+elapsed)
	return m.rate
}
