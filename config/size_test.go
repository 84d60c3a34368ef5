package config_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"sextant/config"
)

func sized(edgeBuckets, maxBackends int) (int, bool) {
	e := &config.Edge{Buckets: edgeBuckets}
	return e.BucketsOf(&config.Service{MaxBackends: maxBackends})
}

// TestBucketsByNeed: a service's number of buckets is what the node file says, or follows from it:
// the smallest prime with 100 for each backend, from 1,021 on. The pool of the moment has no part.
func TestBucketsByNeed(t *testing.T) {
	for _, test := range []struct {
		edge, backends, want int
		declared             bool
	}{
		{0, 0, 6421, false}, {0, 64, 6421, true}, {65537, 0, 65537, true}, {65537, 64, 6421, true},
		{0, 1, 1021, true}, {0, 10, 1021, true}, {0, 11, 1103, true}, {0, 20, 2003, true},
		{0, 100, 10007, true}, {0, 1000, 100003, true}, {0, 10000, 1000003, true},
	} {
		got, declared := sized(test.edge, test.backends)
		if got != test.want || declared != test.declared {
			t.Errorf("buckets %d, maxBackends %d: %d buckets, declared %t; want %d, %t",
				test.edge, test.backends, got, declared, test.want, test.declared)
		}
	}
	for backends := 11; backends <= 10000; backends++ {
		got, _ := sized(0, backends)
		for n := 100 * backends; n <= got; n++ {
			if big.NewInt(int64(n)).ProbablyPrime(0) != (n == got) { // exact below 2^64
				t.Fatalf("maxBackends %d: %d buckets, and %d", backends, got, n)
			}
		}
	}
	e := &config.Edge{}
	crowd := config.Service{Backends: make([]config.Backend, 5000)}
	if got, _ := e.BucketsOf(&crowd); got != config.DefaultBuckets {
		t.Errorf("with 5,000 backends of the moment %d buckets, want those of any other", got)
	}
}

// The error of shares is that of balls thrown into bins.
func TestShareError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 20, 64, 300} {
		const rounds = 40
		squares := 0.0
		for range rounds {
			bins := make([]int, n)
			for range config.DefaultBuckets {
				bins[random.IntN(n)]++
			}
			for _, got := range bins {
				squares += math.Pow(float64(got*n)/config.DefaultBuckets-1, 2)
			}
		}
		got, want := config.ShareError(n, config.DefaultBuckets),
			math.Sqrt(squares/float64(rounds*n))
		if math.Abs(got/want-1) > 0.15 {
			t.Errorf("%d backends: %.4f, and thrown %.4f", n, got, want)
		}
	}
	if got := config.ShareError(64, config.DefaultBuckets); got > 0.1 {
		t.Errorf("at the maximum that a service is sized for, shares are off by %.3f", got)
	}
}

// A pool that is large for its table is no fault, and is not passed over.
func TestWarningOnSize(t *testing.T) {
	text := func(backends int, setting string) string {
		var b strings.Builder
		b.WriteString(strings.Replace(`
node: e1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0, side: external}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      SETTING
      backends:
`, "SETTING", setting, 1))
		for i := range backends {
			fmt.Fprintf(&b, "        - {name: w%d, sid: \"fcbb:bb00:%x::\"}\n", i, i+1)
		}
		return b.String()
	}
	for _, test := range []struct {
		backends int
		setting  string
		want     string
	}{
		{64, "", ""},
		{600, "", "shares of 600 backends on 6421 buckets are off by 31 % (standard deviation); " +
			"write maxBackends: 600 on all edges"},
		{600, "maxBackends: 600", ""},
		{600, "table: exact", ""},
	} {
		n, err := config.Parse("e1.yaml", []byte(text(test.backends, test.setting)))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(config.Warnings(n), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%d backends, %q: %q, want %q", test.backends, test.setting, got, test.want)
		}
	}
	_, err := config.Parse("e1.yaml", []byte(text(1, "maxBackends: 10001")))
	if err == nil || !strings.Contains(err.Error(),
		"maxBackends 10001 is out of range; write 1 to 10000") {
		t.Errorf("maxBackends 10001: %v", err)
	}
}
