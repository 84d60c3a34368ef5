package pool_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/lb/pool"
)

func TestPlaces(t *testing.T) {
	spec := rendezvous(50, 1)
	spec.Depth = 3
	g := begin(t, spec, up(4))
	g, err := g.Next(with(up(4), 2, pool.Draining), 90*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for bucket := range g.Buckets() {
		chain, places := g.Chain(bucket), g.Places(bucket)
		want := []pool.Place{{ID: chain.IDs[0], Role: pool.Candidate},
			{ID: chain.IDs[1], Role: pool.Reserve}, {ID: chain.IDs[2], Role: pool.Reserve}}
		if chain.IDs[1] == 2 && places[1].Role == pool.PastOwner {
			want[1] = pool.Place{ID: 2, Role: pool.PastOwner, Left: 90 * time.Second}
			moved++
		}
		if diff := cmp.Diff(want, places); diff != "" {
			t.Fatalf("bucket %d (-want +got):\n%s", bucket, diff)
		}
		wantLength := 1
		if want[1].Role == pool.PastOwner {
			wantLength = 2
		}
		remembered := chain
		remembered.Length = uint8(wantLength)
		clear(remembered.IDs[wantLength:])
		if got := g.Remembered()[bucket]; got != remembered {
			t.Fatalf("bucket %d: %v is remembered of %v, want %v", bucket, got, chain, remembered)
		}
	}
	if moved == 0 {
		t.Error("2 is nobody's previous owner")
	}
}
