package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/lab"
)

// Where paths are not probed, what the egress counts by path is how a cut is noticed: a path by
// which nothing comes is replaced, and no packet is lost meanwhile. The egress knows that two of
// eight paths carry, and tells of no other as silent.
func TestEgressCountersReplaceAPath(t *testing.T) {
	p := newProtectedBy(t, func(s *lab.Spec) {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			n.Sextant = strings.Replace(n.Sextant, "\n  node: r1",
				"\n  node: r1\n  probe: {interval: 0s}", 1)
		}
	})
	_, err := p.headend.Protect(t.Context(), "video", spec(2, 0), false)
	must(t, err)
	p.begin()
	counted := func(x api.Protection) bool {
		return len(x.Paths) >= 2 && x.Paths[0].CopyDelayMs != nil && x.Paths[1].CopyDelayMs != nil
	}
	before := p.await("the egress has told of copies by both paths", counted)
	if before.Paths[0].Probes != "answers" || before.Paths[0].RTTMs != 0 ||
		routers(before) != "12" {
		t.Errorf("without probes: %+v", before)
	}
	time.Sleep(2 * time.Second) // longer than a path must be silent
	if silent := p.silentFlows(); len(silent) != 0 {
		t.Errorf("while two of eight paths carry, silent are %v", silent)
	}
	began := time.Now()
	p.cut("1", true)
	after := p.await("the path that is cut was replaced",
		func(x api.Protection) bool { return routers(x) == "23" && x.State == api.Protected })
	t.Logf("replaced %v after the cut", after.Changed.Sub(began).Round(10*time.Millisecond))
	p.await("copies come by the replacement", counted)
	for deadline := time.Now().Add(patience); len(p.silentFlows()) != 0; time.Sleep(
		100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after the replacement, silent are %v", p.silentFlows())
		}
	}
	aside := p.await("it is known when the silent path is tried again",
		func(x api.Protection) bool {
			return slices.ContainsFunc(x.Paths,
				func(path api.ProtectedPath) bool { return path.NextTrial != nil })
		})
	p.cut("1", false)
	mended := time.Now()
	p.await("it is tried", func(x api.Protection) bool {
		return slices.ContainsFunc(x.Paths,
			func(path api.ProtectedPath) bool { return path.Role == api.Trial })
	})
	back := p.await("copies came by it, and it carries again",
		func(x api.Protection) bool { return routers(x) == "12" })
	t.Logf("mended, it carried again after %v; it was replaced because of: %s",
		back.Changed.Sub(mended).Round(10*time.Millisecond),
		aside.Replaced.Because)
	p.lostNothing()
	metrics := p.metrics("r1")
	for _, line := range []string{
		`sextant_protection_copies{protection="video"} 2`,
		`sextant_protection_carrying_paths{protection="video"} 2`,
		`sextant_protection_state{protection="video",state="protected"} 1`,
		`sextant_protection_replacements_total{protection="video"} `,
		`sextant_protection_path_copy_delay_seconds{list="path2",protection="video"} 0.`,
		`sextant_policy_packets_total{list="path2",`,
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("no metric %s", line)
		}
	}
}

// silentFlows are those that the egress calls silent.
func (p *protected) silentFlows() (silent []uint32) {
	p.t.Helper()
	flows, err := p.client("r7").Merge(p.t.Context())
	must(p.t, err)
	for _, f := range flows {
		for _, path := range f.Paths {
			if path.Silent {
				silent = append(silent, path.Flow)
			}
		}
	}
	return silent
}
