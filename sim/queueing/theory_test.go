package queueing_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/queueing"
)

func TestErlangC(t *testing.T) {
	tests := []struct {
		servers int
		offered float64
		want    float64
	}{
		{1, 0, 0},
		{1, 0.7, 0.7}, // M/M/1: the server is busy with probability rho
		{2, 1, 1.0 / 3},
		{3, 2, 4.0 / 9},
		{10, 8, 0.409180},   // from the definition, in rational arithmetic
		{100, 90, 0.216940}, // likewise
	}
	for _, test := range tests {
		got, err := queueing.ErlangC(test.servers, test.offered)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-test.want) > 1e-6 {
			t.Errorf("ErlangC(%d, %g) = %.6f, want %.6f", test.servers, test.offered, got,
				test.want)
		}
	}
}

func TestErlangCRefuses(t *testing.T) {
	tests := []struct {
		name    string
		servers int
		offered float64
	}{
		{"no server", 0, 0},
		{"as much load as servers", 2, 2},
		{"negative load", 2, -0.1},
		{"load is not a number", 2, math.NaN()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if p, err := queueing.ErlangC(test.servers, test.offered); err == nil {
				t.Errorf("ErlangC = %g, want an error", p)
			}
		})
	}
}

func TestMeanResponseClosedForms(t *testing.T) {
	const service = 10 * time.Millisecond
	for _, rho := range []float64{0, 0.1, 0.5, 0.61, 0.88, 0.99} {
		for cores, factor := range map[int]float64{1: 1 / (1 - rho), 2: 1 / (1 - rho*rho)} {
			got, err := queueing.MeanResponse(cores, rho, service)
			if err != nil {
				t.Fatal(err)
			}
			want := time.Duration(float64(service) * factor)
			if diff := (got - want).Abs(); diff > time.Microsecond {
				t.Errorf("MeanResponse(%d, %g, %v) = %v, want %v", cores, rho, service, got, want)
			}
		}
	}
}

func TestMeanResponseRefuses(t *testing.T) {
	tests := []struct {
		name    string
		cores   int
		rho     float64
		service time.Duration
	}{
		{"no core", 0, 0.5, time.Second},
		{"saturated", 2, 1, time.Second},
		{"negative utilization", 2, -0.5, time.Second},
		{"utilization is not a number", 2, math.NaN(), time.Second},
		{"negative service time", 2, 0.5, -time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := queueing.MeanResponse(test.cores, test.rho, test.service); err == nil {
				t.Errorf("MeanResponse = %v, want an error", got)
			}
		})
	}
}
