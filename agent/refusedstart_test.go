package agent

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"sextant/agent/role"
	"sextant/agent/role/roletest"
	"sextant/config"
)

// bgpOf is a part of a node file with a neighbor on the machine's own loopback, where nobody is.
func bgpOf() string {
	id := os.Getpid()
	at := fmt.Sprintf("127.%d.%d.%d", 64|id>>16&0x3f, id>>8&0xff, id&0xff)
	return fmt.Sprintf("bgp: {asn: 64512, routerID: %s, listen: \"%s:17902\", neighbors: "+
		"[{address: 127.63.0.1, asn: 64512, local: %s}]}\n", at, at, at)
}

// A start that is refused has spoken to no neighbor, of whom one may keep this node's routes: were
// there a session, its end would take them away.
func TestRefusedStartSpeaksToNobody(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir()) + bgpOf()
	inNamespace(t, func(pins string) {
		for _, refuses := range []bool{true, false} {
			node, err := config.Parse("node.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			a, err := newAgent(t.Context(), Options{Node: node, PinDirectory: pins,
				Log: slog.New(slog.DiscardHandler), more: []role.Kind{
					role.KindOf("idle", roletest.New)}})
			if err != nil {
				t.Fatal(err)
			}
			role.TheRoom[*roletest.Room](a.Roles).Refuses = refuses
			if err := a.takeOver(node); (err != nil) != refuses {
				t.Errorf("the start ends with %v; is it refused: %t", err, refuses)
			}
			peers, err := a.peering.speaker.Peers()
			if err != nil || (len(peers) == 0) != refuses {
				t.Errorf("neighbors %+v, %v; was the start refused: %t", peers, err, refuses)
			}
			a.peering.end()
			a.Store.Close()
		}
	})
}
