package southbound_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/agent/southbound"
)

// TestOffice plays claims of several controllers at random, and compares with a list of all claims:
// a claim is refused if one of a higher epoch that was accepted is still good.
func TestOffice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type accepted struct {
			epoch uint64
			until time.Time
		}
		var office southbound.Office
		var history []accepted
		now := time.Unix(1e9, 0)
		for range rapid.IntRange(1, 60).Draw(t, "claims") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "pause")) * time.Second)
			epoch := uint64(rapid.IntRange(1, 4).Draw(t, "epoch"))
			lease := time.Duration(rapid.IntRange(1, 10).Draw(t, "lease")) * time.Second
			want := true
			if n := len(history); n > 0 {
				// the last one that was accepted renews or replaces the ones before it
				last := history[n-1]
				want = epoch >= last.epoch || !now.Before(last.until)
			}
			if got := office.Claim(epoch, lease, now); got != want {
				t.Fatalf("claim of epoch %d at %v after %v: followed %v", epoch, now, history, got)
			}
			if want {
				history = append(history, accepted{epoch, now.Add(lease)})
			}
			for other := uint64(1); other <= 4; other++ {
				if got := office.Follows(other); got != (other == history[len(history)-1].epoch) {
					t.Fatalf("follows %d: %v after %v", other, got, history)
				}
			}
		}
	})
}

// Nobody is followed before the first claim, not even epoch 0.
func TestOfficeOfNone(t *testing.T) {
	if new(southbound.Office).Follows(0) {
		t.Error("epoch 0 is followed without a claim")
	}
}
