package datapath

import (
	"testing"
)

func TestEdgeLoadsAndCommits(t *testing.T) {
	w := newWorld(t)
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "near", Side: External},
		{Name: "far", Side: Internal}}
	for range 2 {
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		attachments, err := e.Commit()
		must(t, err)
		t.Log(attachments)
		e.Close()
	}
	must(t, Unload(w.dir))
}

func TestHostLoadsAndCommits(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		h, err := OpenHost(w.dir, hostConfig(t))
		must(t, err)
		attachments, err := h.Commit()
		must(t, err)
		t.Log(attachments)
		h.Close()
	}
	must(t, Unload(w.dir))
}
