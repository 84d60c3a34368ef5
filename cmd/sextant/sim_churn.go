package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/config"
	"sextant/lb/pool"
	"sextant/sim/pcc"
)

// churnOptions are the flags of sim churn.
type churnOptions struct {
	churn    pcc.Churn
	policies []string
	tables   []string
	life     string
	leave    string
}

func (a *app) simChurn() *cobra.Command {
	var o churnOptions
	cmd := &cobra.Command{
		Use: "churn", Short: "Simulate flows through a pool whose servers leave and return, " +
			"and count broken ones",
		Long: `Simulate flows through a pool whose servers leave and return, and count those that are cut.

Every flap interval a server drawn at random leaves, or returns if it has left, as in the VRF-Shadowing paper. Chains are
those that the edge would have; packets follow them as docs/reference/dataplane.md says. A flow is cut if a packet of it is answered
with a RST although its server is alive; flows of servers that die (--leave down) are counted apart. All policies and tables
see the same flows and the same changes. Policy offer is not combined with table modulo.

LATE is how many flows were opened at a server that was leaving, because the chain of their bucket had no room for another one.
REDIRECTED is the part of the packets that visit more than one host, LOST the part that reaches no host. RST HOPS is how many
hosts at most a packet visits whose connection does not exist. With --reuse, REUSED is how many
flows came from a port while another server had its last connection in TIME-WAIT, HUNG how many such a
server took packets of.`,
		Example: `  sextant sim churn --servers 8 --flap 1s --policy offer,shadow,ecmp --table rendezvous,exact,modulo --flows 10000000
  sextant sim churn --servers 8 --min-up 3 --life 20s --policy offer
  sextant sim churn --servers 100 --edges 4 --lag 200ms --restart 2s --policy offer -o json`,
		Annotations: seeAlso("sextant experiment", "sextant service"),
		RunE: func(cmd *cobra.Command,
			_ []string) error {
			return a.runChurn(cmd.Context(), o)
		},
	}
	c, flags := &o.churn, cmd.Flags()
	flags.StringSliceVar(&o.policies, "policy", []string{"offer", "shadow", "ecmp"},
		"how connections survive changes")
	flags.StringSliceVar(&o.tables, "table", []string{"rendezvous", "exact", "modulo"},
		"how buckets are given to servers")
	flags.IntVar(&c.Servers, "servers", 8, "servers of the pool")
	flags.IntVar(&c.MinUp, "min-up", 1, "servers that stay up in any case")
	flags.DurationVar(&c.Flap, "flap", time.Second, "time between changes of the pool")
	flags.DurationVar(&c.Hold, "hold", 0,
		"how long a server that comes back takes no new connections yet")
	flags.StringVar(&o.leave, "leave", "draining",
		"how servers leave: draining (they keep their connections) or down")
	flags.Uint64Var(&c.Flows, "flows", 1_000_000, "flows of each run")
	flags.Float64Var(&c.Rate, "rate", 2000, "new flows per second")
	flags.StringVar(&o.life, "life", "10MB",
		"how long flows live: 5MB or 10MB as the paper's downloads, or a time for all")
	flags.IntVar(&c.Spec.Buckets, "buckets", config.FormerBuckets, "buckets of the service")
	flags.IntVar(&c.Spec.Candidates, "candidates", 1, "offer: candidates of a new connection")
	flags.IntVar(&c.Spec.Depth, "depth", pool.MaxChain, "offer: length of a chain")
	flags.DurationVar(&c.Spec.Drain, "drain", 0,
		"offer: how long a previous owner stays in a chain; 0 is until its place is needed")
	flags.BoolVar(&c.Circle, "circle", false,
		"shadow: what no server knows goes round, as in the paper, and its connection pauses")
	flags.Float64Var(&c.Refuse, "refuse", 0,
		"offer: the part of the offers that a candidate refuses, if another follows it")
	flags.IntVar(&c.Edges, "edges", 1, "edges behind a router that spreads flows by their hash")
	flags.DurationVar(&c.Lag, "lag", 0, "how much later an edge learns of a change, at most")
	flags.DurationVar(&c.Restart, "restart",
		0, "time between restarts of the edges, in turn; each is away for half of it")
	flags.BoolVar(&c.Peer, "peer", false, "a restarted edge takes over the chains of another one")
	flags.Float64Var(&c.Reuse, "reuse", 0,
		"the part of new flows from a port that was closed lately")
	flags.Uint64Var(&c.Seed, "seed", 1, "of all that is random")
	complete(cmd, "policy", "offer", "shadow", "ecmp")
	complete(cmd, "table", "rendezvous", "exact", "modulo")
	complete(cmd, "life", "5MB", "10MB", "20s")
	complete(cmd, "leave", "draining", "down")
	return cmd
}

// churnReport is what sim churn answers.
type churnReport struct {
	Servers int         `json:"servers"`
	Life    string      `json:"life"`
	Flap    string      `json:"flap"`
	Items   []churnItem `json:"items"`
}

// churnItem is the result of one policy with one table.
type churnItem struct {
	Policy string `json:"policy"`
	Table  string `json:"table"`
	pcc.Result
	Redirected float64 `json:"redirected"` // part of the packets that visited more than one host
	Seconds    float64 `json:"seconds"`    // that the run took
}

func (a *app) runChurn(ctx context.Context, o churnOptions) error {
	runs, err := o.runs()
	if err != nil {
		return err
	}
	report := churnReport{Servers: o.churn.Servers, Life: o.life, Flap: o.churn.Flap.String()}
	for _, c := range runs {
		item := churnItem{Policy: c.Spec.Policy.String(), Table: c.Spec.Method.String()}
		begun := time.Now()
		if item.Result, err = pcc.Run(c, a.churnProgress(ctx, c)); err != nil {
			return fmt.Errorf("policy %s, table %s: %w", item.Policy, item.Table, err)
		}
		item.Seconds = time.Since(begun).Seconds()
		item.Redirected = item.Result.Redirected()
		report.Items = append(report.Items, item)
	}
	if a.progress {
		a.progressLine("")
	}
	return a.show(report.view())
}

// runs are the combinations of policies and tables that there are.
func (o *churnOptions) runs() ([]pcc.Churn, error) {
	c := o.churn
	var err error
	if c.Life, err = pcc.ParseLife(o.life); err != nil {
		return nil, usageErrorf("--life: %w", err)
	}
	if c.Leave, err = pool.ParseState(o.leave); err != nil {
		return nil, usageErrorf("--leave: %w", err)
	}
	c.Spec.Seed = c.Seed
	var runs []pcc.Churn
	for _, policy := range o.policies {
		if c.Spec.Policy, err = pool.ParsePolicy(policy); err != nil {
			return nil, usageErrorf("--policy: %w", err)
		}
		for _, table := range o.tables {
			if c.Spec.Method, err = pool.ParseMethod(table); err != nil {
				return nil, usageErrorf("--table: %w", err)
			}
			if c.Spec.Policy != pool.Offer || c.Spec.Method != pool.Modulo {
				runs = append(runs, c)
			}
		}
	}
	if len(runs) == 0 {
		return nil, usageErrorf("nothing to run: policy offer needs table rendezvous or exact")
	}
	return runs, nil
}

func (a *app) churnProgress(ctx context.Context, c pcc.Churn) func(uint64) error {
	shown := ""
	return func(flows uint64) error {
		text := fmt.Sprintf("policy %v, table %v: %s of the flows", c.Spec.Policy, c.Spec.Method,
			share(flows, c.Flows))
		if a.progress && text != shown {
			a.progressLine(text)
			shown = text
		}
		return ctx.Err()
	}
}

func (r churnReport) view() view {
	t := table{
		columns: []string{"POLICY", "TABLE", "FLOWS", "CUT", "SHARE", "DIED", "LATE", "REDIRECTED",
			"RST HOPS", "LOST", "CHANGES",
			"RESTARTS"},
		wide: []string{"UNOPENED", "REUSED", "HUNG", "HOPS 0/1/2/...", "SECONDS"},
	}
	v := listView(r.Items, t, func(i churnItem) (string, []any) {
		var all time.Duration
		for _, d := range i.Hops {
			all += d
		}
		var hops []string
		for _, d := range i.Hops {
			hops = append(hops, fmt.Sprintf("%.4g", float64(d)/float64(all)))
		}
		return i.Policy + "/" + i.Table, []any{i.Policy, i.Table, i.Flows, i.Cut,
			fmt.Sprintf("%.5f%%", 100*float64(i.Cut)/float64(i.Flows)), i.Died, i.Late,
			fmt.Sprintf("%.2f%%", 100*i.Redirected), i.MaxResetHops,
			fmt.Sprintf("%.2f%%", 100*float64(i.Hops[0])/float64(max(1, all))), i.Changes,
			i.Restarts, i.Unopened, i.Reused, i.Hung, strings.Join(hops, "/"),
			fmt.Sprintf("%.1f", i.Seconds)}
	})
	v.value = r
	return v
}
