package config_test

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// A Writer writes what Marshal does, whatever it wrote before.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w config.Writer
		n := drawNode(t)
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			want, err := config.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.Marshal(n)
			if err != nil || string(got) != string(want) {
				t.Fatalf("error %v, text:\n%s\nwant:\n%s", err, got, want)
			}
			n = drawChanged(t, n)
		}
	})
}

// drawChanged is another node, or one with another backend or service.
func drawChanged(t *rapid.T, n *config.Node) *config.Node {
	if n.Edge == nil || len(n.Edge.Services) == 0 || rapid.Bool().Draw(t, "another") {
		return drawNode(t)
	}
	weight := rapid.IntRange(0, 65535).Draw(t, "weight")
	for _, s := range n.Edge.Services {
		for _, b := range s.Backends {
			next, err := config.SetBackend(n, s.Name, b.Name, config.BackendChange{Weight: &weight})
			if err == nil {
				return next
			}
		}
	}
	next, err := config.DeleteService(n, n.Edge.Services[0].Name)
	if err != nil {
		return n
	}
	return next
}

// What a change makes shares memory with the node before, and never changes it.
func TestChangesLeaveTheNodeAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		before, err := config.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			drawChanged(t, n)
		}
		if n.Edge != nil {
			for i, s := range n.Edge.Services {
				_, _ = config.DeleteService(n, s.Name)
				for _, b := range s.Backends {
					_, _ = config.DeleteBackend(n, s.Name, b.Name)
				}
				sid := netip.MustParseAddr("fcbb:bb00:77::")
				_, _ = config.AddBackend(n, s.Name, fmt.Sprintf("new%d", i),
					config.BackendChange{SID: &sid})
			}
		}
		if after, err := config.Marshal(n); err != nil || string(after) != string(before) {
			t.Fatalf("error %v, the node became\n%s\nand was\n%s", err, after, before)
		}
	})
}
