package config_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// A Writer writes what the library does in one piece, whatever it wrote before.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w config.Writer
		n := drawNode(t)
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			want, err := config.MarshalWhole(n)
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

// What differs does not depend on what nodes share: a change at the beginning, within or at the end
// of a list is found, and items that come or go do not hide others.
func TestDiffOfNodesThatShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		next := n
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			next = drawEdgeChange(t, next)
		}
		want := fmt.Sprint(config.Diff(n, next.Clone()))
		if got := fmt.Sprint(config.Diff(n, next)); got != want {
			t.Fatalf("difference of nodes that share memory:\n%s\nof others:\n%s", got, want)
		}
		want = fmt.Sprint(config.Diff(next.Clone(), n))
		if got := fmt.Sprint(config.Diff(next, n)); got != want {
			t.Fatalf("back, of nodes that share memory:\n%s\nof others:\n%s", got, want)
		}
	})
}

// drawEdgeChange changes, deletes or adds a backend, or deletes a service, if there is one.
func drawEdgeChange(t *rapid.T, n *config.Node) *config.Node {
	if n.Edge == nil || len(n.Edge.Services) == 0 {
		return n
	}
	next, err := n, error(nil)
	s := n.Edge.Services[rapid.IntRange(0, len(n.Edge.Services)-1).Draw(t, "service")]
	backend := "none"
	if len(s.Backends) > 0 {
		backend = s.Backends[rapid.IntRange(0, len(s.Backends)-1).Draw(t, "backend")].Name
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		weight := rapid.IntRange(0, 65535).Draw(t, "weight")
		next, err = config.SetBackend(n, s.Name, backend, config.BackendChange{Weight: &weight})
	case 1:
		next, err = config.DeleteBackend(n, s.Name, backend)
	case 2:
		sid := netip.MustParseAddr("fcbb:bb00:77::")
		next, err = config.AddBackend(n, s.Name, "another", config.BackendChange{SID: &sid})
	case 3:
		next, err = config.DeleteService(n, s.Name)
	}
	if err != nil {
		return n
	}
	return next
}

// A text that a writer reads shares with the node that it wrote what both have, and has what the
// text says where they differ, even if the writer never wrote that.
func TestWriterReadsWhatDiffers(t *testing.T) {
	var w config.Writer
	last, err := config.Parse("node.yaml", []byte(fileOf(100, rand.New(rand.NewPCG(1, 1)))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Marshal(last); err != nil {
		t.Fatal(err)
	}
	weight := 7
	next, err := config.SetBackend(last, "s42", "b0", config.BackendChange{Weight: &weight})
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	read, err := w.Parse("state", text, last)
	if err != nil {
		t.Fatal(err)
	}
	if changes := config.Diff(next, read); len(changes) > 0 {
		t.Errorf("what was read differs: %v", changes)
	}
	for i := range read.Edge.Services {
		s, of := &read.Edge.Services[i], &last.Edge.Services[i]
		if shares := config.SharesService(s, of); shares == (s.Name == "s42") {
			t.Errorf("service %s shares memory with the last node's: %t", s.Name, shares)
		}
	}
}
