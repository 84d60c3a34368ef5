package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"sextant/agent/role"
	"sextant/agent/role/roletest"
	"sextant/agent/state"
	"sextant/config"
)

// bgpOf is a part of a node file with a neighbor on the machine's own loopback, where nobody is.
func bgpOf() string {
	id := os.Getpid()
	at := fmt.Sprintf("127.%d.%d.%d", 64|id>>16&0x3f, id>>8&0xff, id&0xff)
	return fmt.Sprintf("bgp: {asn: 64512, routerID: %s, listen: \"%s:17902\", neighbors: "+
		"[{address: 127.63.0.1, asn: 64512, local: %s}]}\n", at, at, at)
}

// refusable is an agent whose start a role may refuse when the others have been switched.
func refusable(t *testing.T, pins, text string, refuses bool) *Agent {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAgent(t.Context(), Options{Node: node, PinDirectory: pins,
		Log:  slog.New(slog.DiscardHandler),
		more: []role.Kind{role.KindOf("idle", roletest.New).CommittedLate()}})
	if err != nil {
		t.Fatal(err)
	}
	role.TheRoom[*roletest.Room](a.Roles).Refuses = refuses
	if err := a.takeOver(node); (err != nil) != refuses {
		t.Errorf("the start ends with %v; is it refused: %t", err, refuses)
	}
	return a
}

// A start that is refused has spoken to no neighbor, of whom one may keep this node's routes: were
// there a session, its end would take them away.
func TestRefusedStartSpeaksToNobody(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir()) + bgpOf()
	inNamespace(t, func(pins string) {
		for _, refuses := range []bool{true, false} {
			a := refusable(t, pins, text, refuses)
			peers, err := a.peering.speaker.Peers()
			if err != nil || (len(peers) == 0) != refuses {
				t.Errorf("neighbors %+v, %v; was the start refused: %t", peers, err, refuses)
			}
			a.peering.end()
			a.Store.Close()
		}
	})
}

// What another node file ends is there again when its start was refused, and the file is put back.
func TestRefusedStartKeepsState(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir())
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, text)
		err := headendOf(a).SetComputed(pair())
		if err == nil {
			err = headendOf(a).MarkLists(map[state.ListKey]bool{{Policy: "protected",
				List: "north"}: true})
		}
		a.Store.Kept.Unconfirmed = &state.Unconfirmed{Until: time.Now().Add(time.Hour),
			Text: state.Text{Node: a.Store.Text}}
		if err = errors.Join(err, a.Store.Write()); err != nil {
			t.Fatal(err)
		}
		want := protected(t, a)
		leave(a)
		another := strings.Replace(text, "headend:\n", "headend:\n  hopLimit: 63\n", 1)
		refusable(t, pins, another, true).Store.Close()
		a = takenOver(t, pins, text)
		if got := protected(t, a); got != want || a.Store.Kept.Unconfirmed == nil {
			t.Errorf("%s, want %s; waits for a confirmation: %v", got, want,
				a.Store.Kept.Unconfirmed)
		}
		leave(a)
		a = takenOver(t, pins, another)
		defer leave(a)
		if got := protected(t, a); got != "none" || a.Store.Kept.Unconfirmed != nil {
			t.Errorf("with another file: %s; waits for a confirmation: %v", got,
				a.Store.Kept.Unconfirmed)
		}
	})
}
