package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	nodes "sextant/agent/peer"
	"sextant/config"
	"sextant/packet/flow"
)

// tallies is an agent of a host that counts what a test wants.
type tallies struct {
	opened, established, resets, strays atomic.Uint64 // that each question adds
}

func (c *tallies) serve(t *testing.T) string {
	t.Helper()
	var total api.HostConnections
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		total.VIP, total.Protocol, total.Port = serving(1, false).VIP, config.TCP, 80
		total.Opened += c.opened.Load()
		total.Established += c.established.Load()
		total.Resets += c.resets.Load()
		total.StrayResets += c.strays.Load()
		json.NewEncoder(w).Encode(
			api.List[api.HostConnections]{Items: []api.HostConnections{total}})
	})
	server := httptest.NewServer(nodes.NewChallenges().Answer(
		func(context.Context) (flow.Secret, error) {
			return flow.ParseSecret("00112233445566778899aabbccddeeff")
		}, answer))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A backend whose host resets connections, or does not establish them, is not used although its
// checks succeed, until that is over; nor is anybody taken out of use when all of them do: then
// something else is wrong.
func TestPassiveSignals(t *testing.T) {
	m := newMachine(t)
	hosts := make([]tallies, 3)
	text := strings.Replace(nodeText, "      port: 80\n",
		"      port: 80\n      returnHold: 0\n      check: {kind: exec, command: [/bin/true], "+
			"interval: 200ms, timeout: 200ms, rise: 2, fall: 2, passive: {minimum: 10, resets: "+
			"0.5, "+
			"timeouts: 0.3}}\n", 1)
	for i := range hosts {
		hosts[i].opened.Store(100)
		hosts[i].established.Store(90)
		hosts[i].resets.Store(5)
		text = strings.Replace(text, fmt.Sprintf("{name: web%d,", i+1),
			fmt.Sprintf("{name: web%d, agent: %q,", i+1, hosts[i].serve(t)), 1)
	}
	r := m.start(text)
	await := func(what string, done func([]api.Backend) bool) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			list, err := r.Backends(t.Context(), "web")
			must(t, err)
			if done(list) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, list)
			}
		}
	}
	out := func(i int, why string) func([]api.Backend) bool {
		return func(list []api.Backend) bool {
			for j, b := range list {
				if (j == i) != (b.Effective == config.Draining) {
					return false
				}
			}
			return strings.Contains(list[i].Health.LastError, why) &&
				list[i].Health.FailedChecks == 0
		}
	}
	all := func(list []api.Backend) bool {
		return list[0].Effective == config.Up && list[1].Effective == config.Up &&
			list[2].Effective == config.Up
	}
	hosts[0].strays.Store(900) // anybody can have a host send these
	hosts[0].resets.Store(905)
	hosts[1].resets.Store(60)
	await("web2 resets", out(1, "60 resets for 100 connections"))
	hosts[1].resets.Store(0)
	await("web2 works again", all)
	hosts[2].established.Store(60)
	await("web3 times out", out(2, "40 of 100 connections asked for were not established"))
	hosts[2].opened.Store(0) // too few to tell: what is not used gets none
	hosts[2].established.Store(0)
	await("web3 is tried again", all)
	for i := range hosts {
		hosts[i].opened.Store(100)
		hosts[i].established.Store(0)
	}
	await("all fail", func(list []api.Backend) bool {
		return all(list) && list[0].Health.Status == "failing" &&
			list[1].Health.Status == "failing" && list[2].Health.Status == "failing"
	})
	r.stop()
}
