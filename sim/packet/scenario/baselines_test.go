package scenario

import "testing"

// The order of the literature on a fabric with slow links: congestion-aware schemes are well ahead
// of ECMP (CONGA, SIGCOMM 2014; HULA, SOSR 2016), LetFlow is close to CONGA (NSDI 2017), and CLOVE
// is between CONGA and ECMP (CoNEXT 2017).
func TestOrderOfBaselines(t *testing.T) {
	const asymmetric = `
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts: 4}
links:
  rate: 10Gbps
  delay: 2us
  slow:
    - {from: leaf0, to: spine3, rate: 1Gbps}
    - {from: leaf1, to: spine3, rate: 1Gbps}
transport: {control: dctcp, minRTO: 10ms, delayedAckUs: 200}
queue: {packets: 250, mark: 65}
paths: {flowletGap: 100us}
traffic: {pattern: random, sizes: web-search, load: 0.6, until: 40ms}
duration: 900ms
`
	ms := map[string]float64{}
	for _, scheme := range []string{"ecmp", "letflow", "conga", "hula", "clove"} {
		for seed := range uint64(2) {
			r := run(t, asymmetric, scheme, seed)
			if r.Unfinished > 0 {
				t.Errorf("%s: %d flows have not ended", scheme, r.Unfinished)
			}
			ms[scheme] += r.MeanMs / 2
		}
	}
	t.Logf("mean completion times in ms: %.3v", ms)
	for _, better := range []struct {
		one, other string
		factor     float64
	}{
		{"conga", "ecmp", 0.9}, {"hula", "ecmp", 0.9}, {"letflow", "conga", 1.2},
		{"clove", "ecmp", 1}, {"conga", "clove", 1.02},
	} {
		if ms[better.one] > better.factor*ms[better.other] {
			t.Errorf("%s takes %.3f ms in the mean, %s %.3f; want at most %g of it", better.one,
				ms[better.one], better.other, ms[better.other], better.factor)
		}
	}
}
