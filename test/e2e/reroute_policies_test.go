package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Each policy of the controller works on the same head-end, sink and programs: under flows that
// fill one spine it moves some, and their octets go over the other spine; ECMP moves none.
func TestPoliciesMoveFlows(t *testing.T) {
	f := layFabric(t, fabricGap, "seed: 1")
	file := filepath.Join(f.dir, "controller")
	text, err := os.ReadFile(file)
	must(t, err)
	for _, policy := range []string{"smoothie", "clove", "clove-int", "letflow", "ecmp"} {
		written := bytes.Replace(text, []byte("name: sextant, tau: "+fabricGap.String()+
			", seed: 1"), []byte("name: "+policy), 1)
		must(t, os.WriteFile(file, written, 0o600))
		f.startController()
		before, _ := f.crossed("s2")
		flows, _, end := f.uploads(6)
		f.await(policy+" moves what it moves", func() bool {
			s, err := f.client.Status(t.Context())
			now, _ := f.crossed("s2")
			if policy == "ecmp" {
				return err == nil && counted(s, "policy-moves-none") > 3
			}
			return err == nil && counted(s, "moved") > 0 && now-before > 1<<20
		})
		s, err := f.client.Status(t.Context())
		must(t, err)
		end()
		intact(t, flows)
		if moved := counted(s, "moved"); policy == "ecmp" && moved > 0 {
			t.Errorf("ecmp moved %d flows", moved)
		}
		t.Logf("%s: %+v", policy, s.Verdicts)
		f.killController()
	}
}
