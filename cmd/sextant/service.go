package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) serviceCommand() *cobra.Command {
	return noun("service", "Services: what clients connect to", seeAlso("sextant backend"),
		a.serviceList(), a.serviceShow(), a.serviceAdd(), a.serviceSet(), a.serviceDelete())
}

// services returns the services of a name and a role; "" is all. Agents have none of a role that
// does not exist, so that a typo would look like a node without services.
func (a *app) services(ctx context.Context, name string, role api.Role) ([]api.Service, error) {
	if role != "" && role != api.Edge && role != api.Host {
		return nil, usageErrorf("unknown role %q; write edge or host", role)
	}
	return a.lister().Services(ctx, name, role)
}

func roleFlag(cmd *cobra.Command, role *string) {
	cmd.Flags().StringVar(role, "role", "", "edge or host; needed where a node is both")
	complete(cmd, "role", "edge", "host")
}

func servicesView(services []api.Service) view {
	t := table{
		columns: []string{"NAME", "ROLE", "ENDPOINT", "BACKENDS", "POLICY", "BUSY", "PACKETS"},
		wide: []string{"BYTES", "CANDIDATES", "THRESHOLD", "ENCAPSULATION", "BUCKETS", "OFFERED",
			"ACCEPTED", "REFUSED", "FORCED", "PASSED-ON"},
	}
	return listView(services, t, func(s api.Service) (string, []any) {
		edge, host := edgeColumns(s.Edge), hostColumns(s.Host)
		return s.Name, []any{s.Name, s.Role, s.Endpoint(), edge[1], policyOf(s), host[2], s.Packets,
			s.Bytes, edge[0], host[1], edge[2], edge[3], host[3], host[4], host[5], host[6],
			host[7]}
	})
}

// policyOf is how an edge sends connections to chains, and how a host accepts them.
func policyOf(s api.Service) string {
	if s.Edge != nil {
		return string(s.Edge.Policy)
	}
	return hostColumns(s.Host)[0]
}

func edgeColumns(e *api.EdgeService) [4]string {
	if e == nil {
		return [4]string{"-", "-", "-", "-"}
	}
	return [4]string{count(e.Candidates), count(len(e.Backends)), string(e.Encapsulation),
		count(e.Buckets)}
}

func hostColumns(h *api.HostService) [8]string {
	if h == nil {
		return [8]string{"-", "-", "-", "-", "-", "-", "-", "-"}
	}
	threshold := "-"
	if h.Accept.Policy != "always" {
		threshold = count(h.Threshold)
	}
	return [8]string{
		string(h.Accept.Policy), threshold, count(h.Busy),
		count(h.Offered), count(h.Accepted), count(h.Refused), count(h.Forced),
		count(h.PassedOnPackets),
	}
}

func (a *app) serviceShow() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a service with its backends or its acceptance policy",
		Example:           "  sextant lab exec quickstart edge -- sextant service show web",
		Annotations:       seeAlso("sextant service list", "sextant top"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			services, err := a.findServices(cmd.Context(), args[0], api.Role(role))
			return answered(a, serviceView)(services, err)
		},
	}
	roleFlag(cmd, &role)
	return cmd
}

// findServices returns the services of a name, one per role, or an error that lists those that
// there are.
func (a *app) findServices(ctx context.Context, name string, role api.Role) ([]api.Service, error) {
	found, err := a.services(ctx, name, role)
	if err != nil || len(found) > 0 {
		return found, err
	}
	services, err := a.services(ctx, "", role)
	if err != nil {
		return nil, err
	}
	return nil, absent("service", name, serviceNames(services))
}

func absent(what, name string, known []string) error {
	mend := "none is configured: add it first"
	const shown = 10 // a node can have thousands
	if more := len(known) - shown; more > 0 {
		mend = fmt.Sprintf("known: %s and %d more", strings.Join(known[:shown], ", "), more)
	} else if len(known) > 0 {
		mend = "known: " + strings.Join(known, ", ")
	}
	return &api.Error{Code: api.NotFound, Message: fmt.Sprintf("there is no %s %q; %s", what, name,
		mend)}
}

func serviceView(services []api.Service) view {
	v := view{value: api.List[api.Service]{Items: services}}
	var prose strings.Builder
	for i, s := range services {
		if i > 0 {
			prose.WriteString("\n")
		}
		describeService(&prose, s)
		v.names = append(v.names, s.Name)
		if s.Edge != nil {
			t := backendTable(s.Edge.Backends)
			t.title = "Backends:"
			v.tables = append(v.tables, t)
		}
	}
	v.prose = prose.String()
	return v
}

func describeService(w *strings.Builder, s api.Service) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-14s %s\n", what+":", fmt.Sprintf(format, args...))
	}
	line("Name", "%s", s.Name)
	line("Role", "%s", s.Role)
	line("Endpoint", "%s", s.Endpoint())
	line("Traffic", "%d packets, %d bytes", s.Packets, s.Bytes)
	if e := s.Edge; e != nil {
		line("Policy", "%s", e.Policy)
		line("Table", "%s", e.Table)
		line("Candidates", "%d", e.Candidates)
		line("Depth", "%d backends in a chain", e.Depth)
		line("Drain time", "%s", waitText(e.DrainSeconds, "until its place is needed"))
		line("Slow start", "%s", waitText(e.SlowSeconds, "none"))
		line("Return hold", "%s", waitText(e.HoldSeconds, "none"))
		line("Encapsulation", "%s", e.Encapsulation)
		line("Buckets", "%d", e.Buckets)
		if e.FormerUntil != nil {
			line("Also as before", "until %s: connections of another secret or more buckets",
				e.FormerUntil.Format(time.RFC3339))
		}
		if n := e.NewConnections; n != nil {
			line("Limit", "%d new connections per second, %d at once: %d taken, %d refused", n.Rate,
				n.Burst, n.Taken, n.Refused)
		}
		if e.Check != "" {
			line("Check", "%s", e.Check)
		}
		if e.Panic {
			line("Panic", "too few backends are healthy, so all that should be up are used")
		}
	}
	if h := s.Host; h != nil {
		line("Policy", "%s", policyText(h.Accept))
		line("Threshold", "%d", h.Threshold)
		line("Busy", "%s", busyText(h))
		line("Offered", "%d connections: %d accepted, %d refused (%s)", h.Offered, h.Accepted,
			h.Refused,
			share(h.Refused, h.Offered))
		line("Forced", "%d connections, taken as the last candidate", h.Forced)
		line("Passed on", "%d packets, %d bytes", h.PassedOnPackets, h.PassedOnBytes)
	}
}

// busyText is how busy a service is: by its connections, or by another load.
func busyText(h *api.HostService) string {
	if h.Busy == h.Connections {
		return fmt.Sprintf("%d connections", h.Busy)
	}
	return fmt.Sprintf("%d, its load; %d connections", h.Busy, h.Connections)
}

// waitText writes a time in seconds, or what 0 means.
func waitText(seconds float64, zero string) string {
	if seconds == 0 {
		return zero
	}
	return time.Duration(math.Round(seconds * float64(time.Second))).String()
}

func policyText(p api.Accept) string {
	text := string(p.Policy)
	number := func(name string, n *int) {
		if n != nil {
			text += fmt.Sprintf(", %s %d", name, *n)
		}
	}
	fraction := func(name string, n *float64) {
		if n != nil {
			text += fmt.Sprintf(", %s %g", name, *n)
		}
	}
	number("threshold", p.Threshold)
	number("workers", p.Workers)
	number("window", p.Window)
	fraction("low", p.Low)
	fraction("high", p.High)
	number("initial", p.Initial)
	number("cores", p.Cores)
	return text
}

func (a *app) serviceAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME --vip ADDRESS --port PORT", Short: "Add a service",
		Long: `Add a service to the running agent. The change survives restarts of the agent.

On an edge a service has candidates, on a host an acceptance policy.`,
		Example: `  sextant lab exec quickstart edge -- sextant service add alt --vip 2001:db8:80::80 --port 8080
  sextant lab exec quickstart web1 -- sextant service add alt --vip 2001:db8:80::80 --port 8080 --policy dynamic --workers 32`,
		Annotations: seeAlso("sextant backend add", "sextant service set"),
		Args:        takes("NAME"),
	}
	flags := newServiceFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.putService(cmd, api.Create, args[0], flags)
	}
	return cmd
}

func (a *app) serviceSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change a service; settings that are not named keep their values",
		Example: `  sextant lab exec quickstart edge -- sextant service set web --candidates 3
  sextant lab exec quickstart web1 -- sextant service set web --policy static --threshold 4`,
		Annotations:       seeAlso("sextant service show", "sextant apply"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeServices,
	}
	flags := newServiceFlags(cmd)
	breakFlag(cmd, &a.breaks)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.putService(cmd, api.Update, args[0], flags)
	}
	return cmd
}

func (a *app) putService(cmd *cobra.Command, put api.Put, name string, flags *serviceFlags) error {
	spec, err := flags.spec(cmd)
	if err != nil {
		return err
	}
	if put == api.Create && (spec.VIP == nil || spec.Port == nil) {
		return usageErrorf("a service needs --vip and --port; give both")
	}
	if put == api.Update && spec == (api.ServiceSpec{}) {
		return usageErrorf("nothing to change; say what with a flag, like --candidates")
	}
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	return a.changed(a.agent().PutService(ctx, put, name, api.Role(flags.role), spec))
}

func (a *app) serviceDelete() *cobra.Command {
	var role string
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a service and its backends",
		Long: `Delete a service and its backends. Drain the backends first ("sextant backend drain"): connections that are
open when the service goes are broken. A service that carries traffic is deleted only after a question, or with --yes: one with open
connections, as a host knows and an edge asks the agents of backends (sextant backend set --agent), or for which packets come within
0.5 s. Else idle connections are not seen.`,
		Example:           "  sextant lab exec quickstart edge -- sextant service delete alt",
		Annotations:       seeAlso("sextant backend drain", "sextant backend delete"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirmServiceDeletion(cmd, args[0], api.Role(role), yes); err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			return a.changed(a.agent().DeleteService(ctx, args[0], api.Role(role)))
		},
	}
	roleFlag(cmd, &role)
	yesFlag(cmd, &yes)
	return cmd
}
