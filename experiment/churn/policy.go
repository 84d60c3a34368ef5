package churn

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
)

// policy is a way to keep connections on their servers, and the service of examples/churn.yaml that
// has it.
type policy struct {
	name  string // in tables
	vip   string
	stock bool // a router without Sextant spreads the connections
}

var (
	ecmp       = policy{name: "ecmp", vip: "2001:db8:80::1"}
	consistent = policy{name: "consistent", vip: "2001:db8:80::2"}
	shadow     = policy{name: "shadow", vip: "2001:db8:80::3"}
	offer      = policy{name: "offer", vip: "2001:db8:80::4"}
	resilient  = policy{name: "resilient", vip: "2001:db8:80::5", stock: true}
	remembered = policy{name: "shadow-consistent", vip: "2001:db8:80::6"}
	circling   = policy{name: "shadow-circling", vip: "2001:db8:80::7"}
)

// policies are all of them, the paper's two first.
var policies = []policy{ecmp, shadow, circling, consistent, remembered, resilient, offer}

// legend explains the names.
const legend = "ecmp: the flow's bucket modulo the number of servers, as a router, no memory. " +
	"shadow: the same table with " +
	"VRF-shadowing, where what the edge sends on is marked as the last offer. shadow-circling: " +
	"that without the mark, the paper to the letter: " +
	"a packet without a connection circles until its hop limit is used up, and no host answers " +
	"it with a reset. consistent: " +
	"rendezvous hashing, no memory. shadow-consistent: that with VRF-shadowing. resilient: a " +
	"resilient next-hop group of the Linux " +
	"kernel with seg6 encapsulation and an idle timer of a second, no eBPF at the edge. offer: " +
	"rendezvous hashing, and each packet " +
	"carries the bucket's previous owners."

// members decides which servers of a service are up. The others drain: they get no new connections.
type members interface {
	set(ctx context.Context, up []bool) error
}

// members returns who decides for a policy. All servers are up at first.
func (a *arena) members(ctx context.Context, p policy) (members, error) {
	if p.stock {
		return a.newGroup(ctx)
	}
	b := &backends{client: a.Agents["edge1"], service: p.name, up: make([]bool, servers)}
	return b, b.set(ctx, all(servers))
}

// all are so many servers that are up.
func all(n int) []bool {
	return slices.Repeat([]bool{true}, n)
}

// backends are those of an edge's service.
type backends struct {
	client  *api.Client
	service string
	up      []bool
}

func (b *backends) set(ctx context.Context, up []bool) error {
	for i := range up {
		if b.up[i] == up[i] {
			continue
		}
		state := config.Draining
		if up[i] {
			state = config.Up
		}
		if _, err := b.client.PutBackend(ctx, api.Update, b.service, server(i),
			api.BackendSpec{State: &state}); err != nil {
			return err
		}
		b.up[i] = up[i]
	}
	return nil
}

// group is the resilient next-hop group of the node stock.
type group struct{ lab *lab.Lab }

// stockSetUp makes a next hop for each server.
const stockSetUp = `via=$(ip -6 route get fd00:5e::ff | sed -n 's/.* via \([^ ]*\).*/\1/p')
ip sr tunsrc set fd00:5e::e2
echo 1 > /proc/sys/net/ipv6/fib_multipath_hash_policy
for i in 1 2 3 4 5 6 7 8; do
  ip nexthop replace id $i encap seg6 mode encap segs fcbb:bb00:2$i:: via "$via" dev eth0
done
`

// stockGroup makes the group of the next hops of $1, written 1/2/3.
const stockGroup = `ip nexthop replace id 100 group "$1" type resilient buckets 1024 idle_timer 1
ip -6 route replace 2001:db8:80::5 nhid 100
`

func (a *arena) newGroup(ctx context.Context) (*group, error) {
	g := &group{a.Lab}
	if err := g.run(ctx, stockSetUp); err != nil {
		return nil, err
	}
	return g, g.set(ctx, all(servers))
}

func (g *group) set(ctx context.Context, up []bool) error {
	var hops []string
	for i, is := range up {
		if is {
			hops = append(hops, strconv.Itoa(i+1))
		}
	}
	return g.run(ctx, stockGroup, strings.Join(hops, "/"))
}

func (g *group) run(ctx context.Context, script string, args ...string) error {
	var output strings.Builder
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-e", "-c", script, "sh"},
		args...)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := g.lab.Exec("stock", cmd); err != nil {
		return fmt.Errorf("give node stock a resilient next-hop group: %w: %s; it needs iproute2 "+
			"and a kernel with "+
			"CONFIG_IPV6_SEG6_LWTUNNEL", err, strings.TrimSpace(output.String()))
	}
	return nil
}
