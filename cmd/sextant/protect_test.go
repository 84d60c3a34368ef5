package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/te/protection"
	"sextant/te/topology/dataset"
	"sextant/te/topology/format"
)

const fakeHeadend = `
node: r1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend: {interfaces: [{name: eth0}], source: fd00:5e::1}
protect:
  topology: /etc/sextant/abilene.graph
  node: Seattle
  protections:
    - {name: video, to: Chicago, egress: "fcbb:bb00:7:f::", match: [{destination: "2001:db8:7::/48", protocol: udp}], spares: 1, rate: 10Mbit}
`

func (f *fakeAgent) Topology(context.Context) (api.Topology, error) {
	g, err := dataset.Open("zoo/Abilene")
	if err != nil {
		return api.Topology{}, err
	}
	text, err := format.Write(g, format.NodeLink)
	return api.Topology{Source: "/etc/sextant/abilene.graph", NodeLink: string(text)}, err
}

func (f *fakeAgent) Protections(context.Context) (list []api.Protection, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node.Protect == nil {
		return nil, nil
	}
	for i, p := range f.node.Protect.Protections {
		view := protectionOf(p)
		if i == 0 {
			view.State, view.Reason = api.Degraded, "there is 1 path only"
			view.Paths[0].Role, view.Paths[0].Probes, view.Paths[0].Fault = api.Broken, "silent",
				"link Seattle>Denver is down"
			next := view.Changed.Add(40 * time.Second)
			view.Paths[0].NextTrial, view.Paths[0].TrialsInVain = &next, 3
			view.Replaced = &api.Replacement{
				Because: "path1 silent", Heard: view.Changed.Add(-30 * time.Millisecond),
				Noticed: view.Changed.Add(-9 * time.Millisecond),
				Decided: view.Changed.Add(-8600 * time.Microsecond), Installed: view.Changed,
			}
		}
		list = append(list, view)
	}
	return list, nil
}

// Protect knows no way to Nowhere.
func (f *fakeAgent) Protect(ctx context.Context, name string, spec api.ProtectionSpec,
	dryRun bool) (api.Protection, error) {
	if spec.To == "Nowhere" {
		return api.Protection{}, &api.Error{Code: api.Conflict,
			Message: "2 copies from Seattle to Nowhere: there is 1 path only: every path " +
				"crosses the bridge Denver>Nowhere"}
	}
	c, err := spec.Config(name)
	if err != nil {
		return api.Protection{}, err
	}
	if c.Flow == 0 {
		c.Flow = 32776
	}
	if !dryRun {
		if _, err := f.Change(ctx, func(n *config.Node) (
			*config.Node, error) {
			return config.AddProtection(n, c)
		}); err != nil {
			return api.Protection{}, err
		}
	}
	return protectionOf(c), nil
}

// protectionOf makes paths up.
func protectionOf(p config.Protection) api.Protection {
	v := api.Protection{
		Name: p.Name, From: "Seattle", To: p.To, Egress: p.Egress, Match: p.MatchText(),
		Copies: p.Copies, Spares: p.Spares, Disjoint: p.Disjoint,
		SIDs: p.SIDs, Model: p.Model, RateKbps: p.RateKbps, Flows: p.Flows(), State: api.Protected,
		Proof: "no more than 2 disjoint paths exist (cut)", Changed: time.Date(2026, 11, 5, 11, 0,
			0, 0, time.UTC),
	}
	for i, way := range []string{"Seattle>Denver Denver>Kansas_City Kansas_City>Indianapolis",
		"Seattle>Sunnyvale Sunnyvale>Los_Angeles"} {
		loss, delay := 0.02*float64(i), 1.5
		v.Paths = append(v.Paths, api.ProtectedPath{
			CopyLoss: &loss, CopyDelayMs: &delay,
			List: protection.ListName(i), Role: api.Carries, Links: strings.Fields(way),
			Segments: []string{"Kansas_City->Indianapolis", "Chicago"},
			Flow:     p.Flow + i, Delay: int64(1500 * (i + 1)), DelayUnit: "us", Probes: "answers",
			RTTMs: 3.25, Loss: 0.012, Packets: 12345,
		})
	}
	return v
}

func TestProtect(t *testing.T) {
	w := newWorld(t, fakeHeadend)
	var text strings.Builder
	for _, line := range []string{
		"protect list", "protect list -o wide", "protect list -o json", "protect list -o name",
		"protect show video", "protect show video -o wide",
		"protect show video -o json", "protect show nobody", "protect show",
		"protect add bank --from Seattle --to New_York --egress fcbb:bb00:7:e:: --match dscp=46 " +
			"--match source=192.0.2.0/24,protocol=tcp,destinationPorts=80-90 --dry-run",
		"protect add bank --to New_York --egress fcbb:bb00:7:e:: --match " +
			"destination=2001:db8::/32,protocol=udp,sourcePorts=53 --copies 1 --spares 1 --rate " +
			"500kbit --egress-agent [fd00:5e::7]:9477",
		"protect add bank --to New_York --egress fcbb:bb00:7:e:: --match dscp=46",
		"protect list -o name",
		"protect add b --to Nowhere --egress fcbb:bb00:7:e:: --match dscp=46",
		"protect add b --egress fcbb:bb00:7:e:: --match dscp=46",
		"protect add b --to New_York --match dscp=46", "protect add b --to New_York --egress " +
			"fcbb:bb00:7:e::", "protect add b --to New_York --egress x --match dscp=46",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp=x",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match colour=red",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp=1 --rate 10",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp=1 --probe-sid 10.0.0.1",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match protocol=x",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp=1 --copies 9",
		"protect add b --to New_York --egress fcbb:bb00:7:e:: --match dscp=1 --egress-agent r7",
		"protect delete video", "protect delete video", "protect delete",
	} {
		text.WriteString(w.line(line))
	}
	golden(t, "protect", text.String())
}

func TestProtectSVG(t *testing.T) {
	w := newWorld(t, fakeHeadend)
	file := filepath.Join(t.TempDir(), "video.svg")
	if said := w.run("protect", "show", "video", "--svg", file); !strings.Contains(said,
		"drew "+file) {
		t.Error(said)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "Seattle", "video: Seattle to Chicago, degraded",
		"path1 down", "path2 carries"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the drawing lacks %q", want)
		}
	}
}
