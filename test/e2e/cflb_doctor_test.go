package e2e_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/doctor"
	"sextant/linux"
	"sextant/packet/cflb"
)

const edgeAgent = `
node: edge0
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
cflb:
  interfaces: [{name: h0}, {name: h1}, {name: u0}, {name: u1}]
  router: 1
  keyFile: DIR/cflb.key
  ipv4: {fields: source-port, radix: 2}
  ipv6: {fields: flow-label, radix: 2}
`

// The doctor at a router names the next routers that have another key or take no part, and a
// destination with more next hops than the radix.
func TestCFLBDoctor(t *testing.T) {
	t.Parallel()
	f := newFatTree(t, cflb.SourcePort, cflb.FlowLabel, false, edgeName(0), aggregationName(0, 0),
		aggregationName(0, 1))
	ofTree := f.codecs
	other := map[bool]*cflb.Codec{}
	for of6, fields := range map[bool]cflb.Fields{false: cflb.SourcePort, true: cflb.FlowLabel} {
		codec, err := cflb.New(cflb.Defaults(fields, treePorts/2, [cflb.KeyLength]byte{8}))
		must(t, err)
		other[of6] = codec
	}
	f.codecs = other
	f.controlAggregation(0, 0)
	f.codecs = ofTree
	f.controlAggregation(0, 1)
	program, dir := buildSextant(t), t.TempDir()
	run := func(words ...string) (string, error) {
		command := exec.Command(program, words...)
		output := &strings.Builder{}
		command.Stdout = output
		if err := linux.Start(command, f.ns[edgeName(0)], nil); err != nil {
			return "", err
		}
		err := command.Wait()
		return output.String(), err
	}
	must(t, os.WriteFile(filepath.Join(dir, "cflb.key"), []byte(treeKey), 0o600))
	file := filepath.Join(dir, "node.yaml")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(edgeAgent, "DIR", dir)), 0o600))
	pins, err := f.pins()
	must(t, err)
	agent := exec.Command(program, "agent", "-f", file, "--bpf", filepath.Join(pins, "edge0"))
	agent.Stderr = os.Stderr
	must(t, linux.Start(agent, f.ns[edgeName(0)], nil))
	t.Cleanup(func() {
		_ = agent.Process.Signal(os.Interrupt)
		_ = agent.Wait()
	})
	socket := filepath.Join(dir, "agent.sock")
	findings := func() (list []string) {
		text, err := run("doctor", "--socket", socket, "-o", "json")
		var found struct{ Items []doctor.Finding }
		if failed := json.Unmarshal([]byte(text), &found); failed != nil {
			t.Fatalf("doctor: %v, %v: %s", err, failed, text)
		}
		for _, one := range found.Items {
			if strings.HasPrefix(one.Code, "cflb_") {
				list = append(list, one.Code+" "+one.On)
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	f.await("the agent", func() bool {
		_, err := run("status", "--socket", socket)
		return err == nil
	})
	gateways := linkAddresses(edgeLink(0, 0), 1, "", "")
	want := []string{"cflb_not_followed " + gateways[0] + " via u0",
		"cflb_not_followed " + netip.MustParseAddr(gateways[1]).String() + " via u0"}
	if got := findings(); !slices.Equal(got, want) {
		t.Errorf("agg0.0 has another key: the doctor finds %q, want %q", got, want)
	}
	last := len(f.cflb) - 2
	f.cflb[last].Close()
	must(t, os.RemoveAll(f.dirs[last]))
	if got := findings(); !slices.Equal(got, want) {
		t.Errorf("agg0.0 takes no part: the doctor finds %q, want %q", got, want)
	}
	f.controlAggregation(0, 0)
	if got := findings(); len(got) > 0 {
		t.Errorf("all take part: the doctor finds %q", got)
	}
	f.ip(edgeName(0), "route add 10.201.0.0/16 nexthop via 10.0.0.1 dev u0 nexthop via 10.0.1.1 "+
		"dev u1 nexthop via 10.200.0.1 dev h0")
	f.run(edgeName(0))
	f.await("the radix", func() bool {
		return slices.Equal(findings(), []string{"cflb_radix 10.201.0.0/16"})
	})
}

// await waits until something is so.
func (f *fatTree) await(what string, is func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: not so within a minute", what)
		}
	}
}
