package doctor_test

import (
	"strings"
	"testing"

	"sextant/agent/doctor"
	"sextant/linux/facts"
)

// Whoever may own a program on an interface of the node file, it is advised to be taken off only
// if neither this node's agent nor another one of Sextant can have put it there.
func TestProgramsOnInterfaces(t *testing.T) {
	node := parseText(t, `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1"}
`)
	for _, c := range []struct {
		name               string
		id                 uint32 // of the program on the interface
		called             string
		pinned, told       uint32 // programs of the node, by its pins and by its agent; 0: none
		answers, isForeign bool
		want               string
	}{
		{"pinned and told", 7, "edge", 7, 7, true, false, ""},
		{"pinned, no agent", 7, "edge", 7, 0, false, false, ""},
		{"the agent's, its pins not seen", 7, "edge", 0, 7, true, false, "pins_hidden"},
		{"an agent's that does not answer", 7, "edge", 0, 0, false, false, "program_unknown"},
		{"another role's of another node", 9, "host", 0, 0, false, false, "program_unknown"},
		{"another node's beside this agent", 9, "edge", 7, 7, true, false, "program_unknown"},
		{"somebody else's", 9, "xdp_filter", 7, 7, true, true, "program_foreign"},
		{"somebody else's, no agent", 9, "", 0, 0, false, true, "program_foreign"},
		{"told, but none runs", 0, "", 0, 7, true, false, "program_missing"},
		{"none", 0, "", 7, 7, true, false, "program_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := facts.Interface{Up: true, MTU: 1500, XDPProgram: c.id, XDPName: c.called}
			if c.id != 0 {
				i.XDP = "native"
			}
			f := facts.Facts{Interfaces: map[string]facts.Interface{"eth0": i},
				Programs: []facts.Program{}}
			if c.pinned != 0 {
				f.Programs = append(f.Programs, facts.Program{Interface: "eth0", ID: c.pinned})
			}
			if c.answers {
				f.Running = &facts.Running{Version: "v1", PinDir: "/sys/fs/bpf/x"}
				f.Running.Programs = append(f.Running.Programs, facts.Program{Interface: "eth0",
					ID: c.told})
			}
			var codes []string
			for _, finding := range doctor.Diagnose(node, f, "v1") {
				if strings.HasPrefix(finding.Code, "program_") || finding.Code == "pins_hidden" {
					codes = append(codes, finding.Code)
				}
				if takesOff := strings.Contains(finding.Mend, " off;"); takesOff && !c.isForeign {
					t.Errorf("%s is advised to be mended so: %s", finding.Code, finding.Mend)
				}
			}
			if got := strings.Join(codes, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
