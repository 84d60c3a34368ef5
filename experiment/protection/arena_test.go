package protection

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"sextant/lab/linkemu"
)

// TestMain lets the test program be the wire of labs: "lab wire FILE".
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "lab" && os.Args[2] == "wire" {
		if err := linkemu.Run(context.Background(), os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// inLab calls body in a lab of the setting.
func inLab(t *testing.T, s setting, body func(context.Context, *arena) error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	s.Seed = 1
	if err := within(t.Context(), fmt.Sprintf("tp%d", os.Getpid()), s, body); err != nil {
		t.Fatal(err)
	}
}

// Requests succeed in each mode. Where packets go twice, TCP sees copies, and with elimination
// none.
func TestModes(t *testing.T) {
	for _, m := range []mode{onL1, onL2, duplicated, eliminated} {
		t.Run(string(m), func(t *testing.T) {
			s := both(m, "cubic", time.Millisecond, 2*time.Millisecond, 0)
			inLab(t, s, func(ctx context.Context, a *arena) error {
				const count = 5
				r, err := a.fetch(ctx, count)
				if len(r.Ms) != count || r.Failed > 0 {
					t.Errorf("%d requests succeeded and %d failed, of %d", len(r.Ms), r.Failed,
						count)
				}
				// what is sent again comes twice too
				copies := r.TCP.Duplicates > r.TCP.Retransmissions
				if want := m == duplicated; copies != want {
					t.Errorf("the client's TCP saw %d segments twice, with %d retransmissions; "+
						"copies are wanted: %v",
						r.TCP.Duplicates, r.TCP.Retransmissions, want)
				}
				return err
			})
		})
	}
}

// A path that is cut under a stream loses nothing of it, and everything if it is the only one.
func TestCutUnderAStream(t *testing.T) {
	for _, m := range []mode{onL1, eliminated} {
		t.Run(string(m), func(t *testing.T) {
			inLab(t, both(m, "cubic", time.Millisecond, 2*time.Millisecond, 0),
				func(ctx context.Context, a *arena) error {
					if _, err := a.fetchOnce(ctx); err != nil {
						return err
					}
					s, err := a.telemetry(ctx, time.Second, func() error { return a.cut(ctx) })
					if lost := s.Lost > 0; lost != (m == onL1) || s.Duplicates > 0 ||
						s.Sent < telemetryRate {
						t.Errorf("of %d datagrams %d were lost and %d came twice", s.Sent, s.Lost,
							s.Duplicates)
					}
					return err
				})
		})
	}
}
