package edge

import (
	"testing"

	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// roleOf is an edge whose services have so many buckets.
func roleOf(t *testing.T, buckets ...int) *Role {
	t.Helper()
	e := &Role{places: map[config.Endpoint]int{}}
	for i, n := range buckets {
		endpoint := config.Endpoint{Port: uint16(i + 1)}
		e.places[endpoint] = i
		e.Services = append(e.Services, Service{Buckets: n,
			Service: config.Service{Endpoint: endpoint}})
	}
	return e
}

func formerOfBuckets(t *testing.T, buckets int) *pool.Generation {
	t.Helper()
	g, err := pool.New(pool.Spec{Buckets: buckets, Candidates: 1}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The program is told of how many buckets all tables are, if they are alike.
func TestBucketsOfAll(t *testing.T) {
	n := &config.Node{Edge: &config.Edge{Buckets: 4099}}
	for _, c := range []struct {
		services []int
		former   int // of the first one
		want     int
	}{
		{nil, 0, 4099},
		{[]int{1021}, 0, 1021},
		{[]int{1021, 1021}, 0, 1021},
		{[]int{1021, 1021, 4099}, 0, 0},
		{[]int{1021, 1021}, 1021, 1021},
		{[]int{1021, 1021}, 4099, 0},
	} {
		e := roleOf(t, c.services...)
		if c.former > 0 {
			e.Services[0].former = formerOfBuckets(t, c.former)
		}
		if got := e.bucketsOfAll(n); got != c.want {
			t.Errorf("%+v: %d buckets", c, got)
		}
	}
}

// A program that does for all tables is not replaced by one that does for one size alone; another
// change of the program is the occasion.
func TestKeepBuckets(t *testing.T) {
	small, mixed := roleOf(t, 1021), roleOf(t, 1021, 4099)
	for _, c := range []struct {
		why      string
		running  *Role
		services []int
		is, want int
	}{
		{"the first program", nil, []int{1021}, 1021, 1021},
		{"a service less", mixed, []int{1021}, 1021, 0},
		{"a table of another size", mixed, []int{1021, 1021}, 1021, 1021},
		{"a size that it does not take", programOf(small, 1021), []int{1021, 4099}, 0, 0},
		{"no service left", programOf(small, 1021), nil, 4099, 1021},
		{"loaded anyway", copying(roleOf(t, 1021, 4099)), []int{1021}, 1021, 1021},
	} {
		next := programOf(roleOf(t, c.services...), c.is)
		next.keepBuckets(c.running)
		if got := next.Config.Buckets; got != c.want {
			t.Errorf("%s: %d buckets, want %d", c.why, got, c.want)
		}
	}
}

func programOf(e *Role, buckets int) *Role {
	e.Config = datapath.EdgeConfig{Buckets: buckets}
	return e
}

func copying(e *Role) *Role {
	e.Config.Copies = true
	return e
}
