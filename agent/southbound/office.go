package southbound

import "time"

// Office says which controller a head-end follows: of those that claim it, the one of the highest
// epoch, until its lease is over. A lower epoch is followed again only after that. The zero value
// follows none.
type Office struct {
	epoch uint64
	until time.Time
}

// Claim enters a claim that came at a time, and tells whether the controller is followed.
func (o *Office) Claim(epoch uint64, lease time.Duration, now time.Time) bool {
	if epoch < o.epoch && now.Before(o.until) {
		return false
	}
	o.epoch, o.until = epoch, now.Add(lease)
	return true
}

// Follows tells whether the controller of an epoch is followed at a time. One whose lease is over
// is followed until another claims.
func (o *Office) Follows(epoch uint64) bool { return o.epoch == epoch && !o.until.IsZero() }

// Epoch is that of the controller that is followed, 0 if there was none.
func (o *Office) Epoch() uint64 { return o.epoch }
