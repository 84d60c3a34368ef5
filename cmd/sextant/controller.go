package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/tracing"
	"sextant/config"
	"sextant/controller"
)

func (a *app) controllerCommand() *cobra.Command {
	var file, format string
	cmd := noun("controller -f FILE", "Run the controller that moves flows to other paths",
		seeAlso("sextant path flows", "sextant path links", "sextant path reroutes"),
		controllerFlag(a.controllerStatus(), a.controllerSimulate(), a.controllerReport(),
			a.controllerLink())...)
	cmd.Long = `Run the controller. It takes reports of telemetry, keeps a weight for each link of the topology that
its file names, and gives flows that suffer another of their shortest paths, by the policy that the file names: sextant,
smoothie, or one of the schemes that these are compared with. It serves its API on a Unix socket. When it ends, flows keep
the paths that they have.`
	cmd.Example = "  sextant controller -f /etc/sextant/controller.yaml\n" +
		"  sextant controller status"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if file == "" || len(args) > 0 {
			if len(args) == 0 {
				return usageErrorf("no file is given; name one with -f FILE, or say what to do: %s",
					strings.Join(subcommandNames(cmd), ", "))
			}
			return chooseSubcommand(cmd, args)
		}
		log, err := a.logger(format)
		if err != nil {
			return err
		}
		text, err := a.readFile(cmd.Context(), file)
		if err != nil {
			return err
		}
		c, err := controller.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		traced, err := tracing.Start(cmd.Context(), a.getenv, tracing.Process{
			Service: "sextant-controller", Version: version, Node: c.API.Socket}, log)
		if err != nil {
			return err
		}
		defer traced()
		return controller.Run(cmd.Context(), controller.Options{Config: c, Version: version,
			Log: log, Open: readTopology})
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the controller's file, or - for standard input")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // fails without such a flag only
	logFlag(cmd, &format)
	return cmd
}

// readFile reads a file, or standard input for "-".
func (a *app) readFile(ctx context.Context, file string) ([]byte, error) {
	text, err := a.readAll(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; name a file that this user can read", file,
			withoutPath(err))
	}
	return text, nil
}

// controllerFlag names the controller's socket, which SEXTANT_CONTROLLER does otherwise.
func controllerFlag(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.Flags().String("controller", controller.DefaultSocket,
			"Unix socket of the controller (or SEXTANT_CONTROLLER)")
	}
	return commands
}

// controller is a client of the controller.
func (a *app) controller(cmd *cobra.Command) *controller.Client {
	socket, here := a.controllerSocket(cmd)
	if !here {
		if client := a.distant(access.Controller, "controller"); client != nil {
			return controller.ClientBy(client)
		}
	}
	return controller.NewClient(socket)
}

// controllerSocket is the controller's socket on this machine, and whether that is what is meant,
// even if there is one elsewhere.
func (a *app) controllerSocket(cmd *cobra.Command) (socket string, here bool) {
	f := cmd.Flags().Lookup("controller")
	if socket := a.getenv("SEXTANT_CONTROLLER"); socket != "" && !f.Changed && a.address == "" &&
		a.context == "" {
		return socket, true
	}
	return f.Value.String(), false
}

func (a *app) controllerStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the controller's state and its decisions",
		Long: "Show the controller's state, and how many decisions it made, by their " +
			"outcome.",
		Example:     "  sextant controller status",
		Annotations: seeAlso("sextant path reroutes"),
		RunE:        shows(a, a.controller, (*controller.Client).Status, controllerStatusView),
	}
}

func controllerStatusView(s controller.Status) view {
	var prose strings.Builder
	for _, line := range [][2]string{
		{"Topology", fmt.Sprintf("%s: %d routers, %d links, %d down", s.Topology, s.Nodes, s.Links,
			s.LinksDown)},
		{"Policy", s.Policy},
		{"Reports", fmt.Sprintf("%s taken, %s of them for queues only; %s refused",
			count(s.Reports), count(s.Observed), count(s.Refused))},
		{"Telemetry", telemetryText(s.Telemetry)},
		{"Flows", fmt.Sprintf("%s known; %s forgotten for others", count(uint64(s.Flows)),
			count(s.FlowsReplaced))},
		{"Journal", count(s.JournalLost) + " decisions lost"},
	} {
		fmt.Fprintf(&prose, "%-9s %s\n", line[0], line[1])
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&prose, "Warning: %s\n", warning)
	}
	prose.WriteString("\n")
	t := table{columns: []string{"VERDICT", "DECISIONS"}}
	v := listView(s.Verdicts, t, func(c controller.Verdict) (string, []any) {
		return c.Verdict, []any{c.Verdict, c.Count}
	})
	v.value, v.prose = s, prose.String()
	if len(s.HeadEnds) > 0 {
		v.tables = append(v.tables, headEndsTable(s))
	}
	return v
}

// telemetryText says what became of datagrams of telemetry.
func telemetryText(t *controller.TelemetryStatus) string {
	if t == nil {
		return "none by UDP"
	}
	return fmt.Sprintf("%s: %s datagrams, %s foreign, %s repeated, %s lost, %s broken; %s "+
		"reports, %s not placed", t.Listen, count(t.Datagrams), count(t.Foreign), count(t.Repeated),
		count(t.Lost), count(t.Broken), count(t.Reports), count(t.Unplaced))
}

func headEndsTable(s controller.Status) table {
	t := table{columns: []string{"HEAD-END", "STATE", "APPLIED", "REFUSED", "ADOPTED"},
		wide: []string{"ADDRESS", "VERSION", "EPOCH", "CAPACITY", "SINCE"}}
	for _, h := range s.HeadEnds {
		state := "follows another"
		switch {
		case !h.Connected:
			state = "gone"
		case h.Followed:
			state = "follows"
		case h.Epoch == 0:
			state = "connected"
		}
		t.add(h.Router, state, h.Applied, h.Refused, h.Adopted, orDash(h.Address), h.Version,
			h.Epoch, h.Capacity, h.Since.Format(time.TimeOnly))
	}
	return t
}

func (a *app) controllerSimulate() *cobra.Command {
	var protocol, path string
	var queues []string
	cmd := &cobra.Command{
		Use:   "simulate SOURCE DESTINATION --path ROUTER,ROUTER...",
		Short: "Show what the controller would decide for a flow now",
		Long: `Show what the controller would decide now if a flow on this path paused: the paths that it would draw,
their weights, and the decision. Nothing changes: the next report of the flow has the same result,
unless other reports come first.`,
		Example: "  sextant controller simulate [2001:db8:1::1]:40000 [2001:db8:2::1]:443 --path " +
			"leaf1,spine1,leaf2",
		Annotations: seeAlso("sextant path links", "sextant path reroutes"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			r := controller.Report{Flow: f, Path: routersOf(path)}
			if r.Queues, err = parseQueues(queues); err != nil {
				return err
			}
			return answered(a, decisionView)(a.controller(cmd).Simulate(ctx, r))
		}),
	}
	flowProtocolFlag(cmd, &protocol)
	cmd.Flags().StringVar(&path, "path", "", "the routers that the flow passes, with commas")
	cmd.Flags().StringArrayVar(&queues, "queue", nil,
		"a queue that only Clove asks for: FROM>TO=BYTES, or FROM>TO=BYTES/SIZE")
	return cmd
}

func flowProtocolFlag(cmd *cobra.Command, protocol *string) {
	cmd.Flags().StringVar(protocol, "protocol", "tcp", "protocol of the flow: tcp or udp")
	complete(cmd, "protocol", "tcp", "udp")
}

// parseFlow reads the ends of a flow.
func parseFlow(ends []string, protocol string) (api.Flow, error) {
	f := api.Flow{Protocol: config.Protocol(protocol)}
	for i, target := range []*netip.AddrPort{&f.Source, &f.Destination} {
		var err error
		if *target, err = netip.ParseAddrPort(ends[i]); err != nil {
			return f, usageErrorf("%q is not an address and port; write it like "+
				"[2001:db8::1]:443 or 192.0.2.1:443", ends[i])
		}
	}
	return f, nil
}

func routersOf(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ",")
}

func parseQueues(texts []string) ([]controller.QueueState, error) {
	var queues []controller.QueueState
	for _, text := range texts {
		link, fill, _ := strings.Cut(text, "=")
		from, to, ok := strings.Cut(link, ">")
		bytes, size, sized := strings.Cut(fill, "/")
		q := controller.QueueState{From: from, To: to}
		var err, sizeErr error
		q.Bytes, err = strconv.ParseInt(bytes, 10, 64)
		if sized {
			q.Size, sizeErr = strconv.ParseInt(size, 10, 64)
		}
		if !ok || err != nil || sizeErr != nil {
			return nil, usageErrorf("--queue %q: write FROM>TO=BYTES or FROM>TO=BYTES/SIZE, like "+
				"\"leaf1>spine1=48000/96000\"", text)
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// decisionView is one decision with what was weighed.
func decisionView(d controller.Decision) view {
	t := table{columns: []string{"PATH", "WEIGHT", "NOISE", "ROUTERS"}}
	row := func(what string, c controller.Candidate) {
		t.add(what, weightText(c.Weight), strconv.FormatFloat(c.Noise, 'f', 4, 64),
			strings.Join(c.Path, " "))
	}
	if d.Current != nil {
		row("current", *d.Current)
	}
	for i, c := range d.Candidates {
		row(fmt.Sprintf("candidate %d", i+1), c)
	}
	prose := fmt.Sprintf("%s: %s\n", d.Verdict, d.Reason)
	if len(d.Path) > 0 {
		prose += "new path: " + strings.Join(d.Path, " ") + "\n"
	}
	return view{value: d, prose: prose + "\n", tables: tables{t}, names: []string{d.Verdict}}
}

// weightText is a weight; one that JSON has as null is that of a link that is down.
func weightText(w *float64) string {
	if w == nil {
		return "down"
	}
	return strconv.FormatFloat(*w, 'f', 4, 64)
}

func (a *app) controllerReport() *cobra.Command {
	return &cobra.Command{
		Use: "report FILE", Short: "Send telemetry reports to the controller",
		Long: `Send telemetry reports to the controller, and show the decisions that follow from them. FILE has
one report as JSON after another; - is standard input. A report names the flow, the routers on its
path in order, the bytes in queues before links, and whether the flow paused:

  {"flow": {"source": "[2001:db8:1::1]:40000", "destination": "[2001:db8:2::1]:443", "protocol": "tcp"},
   "path": ["leaf1", "spine1", "leaf2"], "pause": true,
   "queues": [{"from": "leaf1", "to": "spine1", "bytes": 48000}]}`,
		Example:     "  sextant controller report reports.json",
		Annotations: seeAlso("sextant path reroutes"),
		Args:        takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.readFile(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			reports, err := parseReports(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			return answered(a, decisionsView)(a.controller(cmd).Report(ctx, reports))
		},
	}
}

func parseReports(text string) ([]controller.Report, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var reports []controller.Report
	for {
		var r controller.Report
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return reports, nil
		case err != nil:
			return nil, fmt.Errorf("report %d is not the JSON that is wanted here: %w; see "+
				"\"sextant controller report --help\"", len(reports)+1, err)
		}
		reports = append(reports, r)
	}
}

func (a *app) controllerLink() *cobra.Command {
	cmd := &cobra.Command{
		Use: "link FROM TO up|down", Short: "Set a link up or down in the controller",
		Long: `Set the links from one router to another up or down in the controller, in this direction. Flows that
the policy sextant sent over a link that goes down get another path at once.`,
		Example:     "  sextant controller link leaf1 spine1 down",
		Annotations: seeAlso("sextant path links"),
		Args:        takes("FROM", "TO", "up|down"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if args[2] != "up" && args[2] != "down" {
				return usageErrorf("%q: a link is up or down", args[2])
			}
			state := controller.LinkState{From: args[0], To: args[1], Up: args[2] == "up"}
			return answered(a, decisionsView)(a.controller(cmd).SetLink(ctx, state))
		}),
	}
	return cmd
}
