package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/lab"
)

const traceLong = `Follow a packet that opens a flow, and one that comes later, from the edge to the
host that takes them: who serves the flow, which way its packets go, and how many copies of them.
Each node's own programs decide, run in the kernel's test mode on the tables that they forward by:
no packet is sent, nothing is counted, no acceptance policy learns. So the opening packet says who
would accept the flow now, and the later one who has it. What routers do is told from the header.

The edge is that of this machine, of --socket or of --context; the hosts are those of the contexts
that --hosts names. In a lab, --lab names it, and all its nodes are asked. A host is found by its
SID.`

// traceFlags are what trace is given besides the flow.
type traceFlags struct {
	explainFlags
	lab, edge string
	hosts     []string
}

func (a *app) traceCommand() *cobra.Command {
	var flags traceFlags
	cmd := &cobra.Command{
		Use:   "trace SOURCE DESTINATION",
		Short: "Follow the packets of a flow from the edge to the host that takes them",
		Long:  traceLong,
		Example: `  sextant trace --lab copies [2001:db8:c::1]:40000 [2001:db8:80::80]:80
  sextant trace --context edge1 --hosts web1,web2 203.0.113.7:40000 198.51.100.80:80 -o json`,
		Annotations: seeAlso("sextant explain", "sextant capture", "sextant context add"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.trace(cmd, args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.lab, "lab", "", "lab whose nodes are asked")
	f.StringVar(&flags.edge, "edge", "",
		"node of the lab that is the edge; the first one by default")
	f.StringSliceVar(&flags.hosts, "hosts", nil, "contexts of hosts, apart by commas")
	flags.ofFlow(cmd)
	return cmd
}

func (a *app) trace(cmd *cobra.Command, args []string, flags traceFlags) error {
	var question api.Question
	if _, err := a.toExplain(&question, args, flags.explainFlags); err != nil {
		return err
	}
	edges, hosts, err := a.traceNodes(cmd, flags)
	if err != nil {
		return err
	}
	var list []explain.Traced
	for _, edge := range edges { // the first that is one
		if list, err = explain.Follow(cmd.Context(), edge, hosts, *question.Flow); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	return a.show(tracedView(list))
}

// traceNodes are the nodes that may be the edge, and the hosts.
func (a *app) traceNodes(cmd *cobra.Command,
	flags traceFlags) (edges, hosts []explain.Node, err error) {
	node := func(name string, client *api.Client) explain.Node {
		return explain.Node{Name: name,
			Ask: func(_ context.Context, q api.Question) ([]api.Explanation, error) {
				ctx, cancel := a.withTimeout(cmd)
				defer cancel()
				return client.Explain(ctx, q)
			}}
	}
	if flags.lab == "" {
		list, _, err := a.contexts()
		if err != nil && len(flags.hosts) > 0 {
			return nil, nil, err
		}
		for _, name := range flags.hosts {
			i, err := access.ContextNamed(list, name)
			if err != nil {
				return nil, nil, err
			}
			client, err := api.NewRemoteClient(access.Agent, list[i].Remote())
			if err != nil {
				return nil, nil, err
			}
			hosts = append(hosts, node(name, client))
		}
		return []explain.Node{node("edge", a.agent())}, hosts, nil
	}
	l, err := lab.Open(flags.lab)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range l.Nodes {
		if n.Socket == "" {
			continue
		}
		hosts = append(hosts, node(n.Name, api.NewClient(n.Socket)))
		if flags.edge == "" || flags.edge == n.Name {
			edges = append(edges, hosts[len(hosts)-1])
		}
	}
	if edges == nil {
		return nil, nil, fmt.Errorf("lab %s has no node %q with an agent; see: sextant lab exec %s",
			flags.lab, flags.edge, flags.lab)
	}
	return edges, hosts, nil
}

// tracedView shows packets step by step.
func tracedView(list []explain.Traced) view {
	v := view{value: list}
	for _, p := range list {
		t := table{title: strings.ToUpper(p.Packet[:1]) + p.Packet[1:] + " packet:",
			columns: []string{"NODE", "COPY", "DOES"}, wide: []string{"SID", "BYTES"}}
		for _, s := range p.Steps {
			sid, bytes := "-", "-"
			if s.SID.IsValid() {
				sid = s.SID.String()
			}
			if s.Explanation != nil && s.Explanation.Frame != "" {
				bytes = s.Explanation.Frame
			}
			copies := count(s.Copy)
			if s.Explanation != nil && s.Explanation.OtherCopy != nil {
				copies = "both"
			}
			t.add(orDash(s.Node), copies, s.Does, sid, bytes)
		}
		v.tables = append(v.tables, t)
	}
	return v
}
