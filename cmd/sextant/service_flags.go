package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// serviceFlags are the values of a service as the command line gives them. Only flags that were
// given count.
type serviceFlags struct {
	role, vip, protocol, port             string
	candidates, depth                     int
	threshold, workers, window, beginning int
	cores                                 int
	policy, low, high                     string
	table, drainTime, slowStart, hold     string
	newConnections                        string
}

func newServiceFlags(cmd *cobra.Command) *serviceFlags {
	f := &serviceFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.vip, "vip", "", "address that clients connect to")
	flags.StringVar(&f.protocol, "protocol", "tcp", "tcp or udp")
	flags.StringVar(&f.port, "port", "", "port, or any")
	flags.IntVar(&f.candidates, "candidates", config.DefaultCandidates,
		"edge: hosts to which a new connection is offered, 1 to 6")
	flags.StringVar(&f.table, "table", "rendezvous",
		"edge: how buckets are given to backends: rendezvous, exact or modulo")
	flags.IntVar(&f.depth, "depth", config.DefaultDepth,
		"edge: backends that a packet is offered to at most, past owners included")
	flags.StringVar(&f.drainTime, "drain-time", "0",
		"edge: how long a past owner is offered packets; 0: until its place is needed")
	flags.StringVar(&f.hold, "return-hold", "6s",
		"edge: time in which a backend that was down, or is new, gets no new connections")
	flags.StringVar(&f.slowStart, "slow-start", "0",
		"edge: time in which a backend that comes up gets its share, like 30s")
	flags.StringVar(&f.newConnections, "new-connections", "none",
		"edge: how many may be opened per second, and at once, like 1000,200; none: as many as "+
			"come")
	flags.StringVar(&f.policy, "policy", "",
		"edge: offer (default), shadow or ecmp; host: average (default), always, static or dynamic")
	flags.IntVar(&f.threshold, "threshold", 0, "static: accept below this many busy connections")
	flags.IntVar(&f.workers, "workers", 0, "dynamic: connections that the server works on at once")
	flags.IntVar(&f.window, "window", 50, "dynamic: offers between two adaptations")
	flags.StringVar(&f.low, "low", "0.4",
		"dynamic: share of accepted offers below which the threshold rises")
	flags.StringVar(&f.high, "high", "0.6", "dynamic: share above which it falls")
	flags.IntVar(&f.beginning, "initial", 1, "dynamic: first threshold")
	flags.IntVar(&f.cores, "cores", 0, "average: of the server; 0: as many as the machine has")
	roleFlag(cmd, &f.role)
	complete(cmd, "protocol", "tcp", "udp")
	complete(cmd, "policy", "offer", "shadow", "ecmp", "always", "static", "dynamic", "average")
	complete(cmd, "table", "rendezvous", "exact", "modulo")
	complete(cmd, "port", "any")
	complete(cmd, "new-connections", "none")
	return f
}

func (f *serviceFlags) spec(cmd *cobra.Command) (api.ServiceSpec, error) {
	given := givenFlags{cmd: cmd}
	spec := api.ServiceSpec{
		VIP:      parsed(&given, "vip", f.vip, config.ParseAddress),
		Port:     parsed(&given, "port", f.port, config.ParsePort),
		Protocol: value(&given, "protocol", config.Protocol(f.protocol)),
		ContinuitySpec: api.ContinuitySpec{
			Table:             value(&given, "table", config.Table(f.table)),
			Candidates:        value(&given, "candidates", f.candidates),
			Depth:             value(&given, "depth", f.depth),
			DrainTimeSeconds:  parsed(&given, "drain-time", f.drainTime, parseSeconds),
			SlowStartSeconds:  parsed(&given, "slow-start", f.slowStart, parseSeconds),
			ReturnHoldSeconds: parsed(&given, "return-hold", f.hold, parseSeconds),
		},
		NewConnections: parsed(&given, "new-connections", f.newConnections, parseNewConnections),
	}
	accept := api.AcceptSpec{
		Threshold: value(&given, "threshold", f.threshold),
		Workers:   value(&given, "workers", f.workers),
		Window:    value(&given, "window", f.window),
		Low:       parsed(&given, "low", f.low, parseShare),
		High:      parsed(&given, "high", f.high, parseShare),
		Initial:   value(&given, "initial", f.beginning),
		Cores:     value(&given, "cores", f.cores),
	}
	switch config.ServicePolicy(f.policy) {
	case config.PolicyOffer, config.PolicyShadow, config.PolicyECMP:
		spec.Policy = value(&given, "policy", config.ServicePolicy(f.policy))
	default:
		accept.Policy = value(&given, "policy", config.Policy(f.policy))
	}
	if accept != (api.AcceptSpec{}) {
		spec.Accept = &accept
	}
	return spec, given.wrong
}

// parseNewConnections reads "none", or a rate per second and how many at once, like "1000,200".
func parseNewConnections(text string) (api.NewConnectionsSpec, error) {
	var spec api.NewConnectionsSpec
	if text == "none" {
		return spec, nil
	}
	rate, burst, both := strings.Cut(text, ",")
	var wrong [2]error
	spec.Rate, wrong[0] = strconv.Atoi(rate)
	spec.Burst, wrong[1] = strconv.Atoi(burst)
	if !both || wrong != [2]error{} {
		return spec, fmt.Errorf("%q is no limit; write none, or how many per second and how many "+
			"at once, like 1000,200", text)
	}
	return spec, nil
}

func parseShare(text string) (float64, error) {
	permille, err := config.ParsePermille(text)
	return float64(permille) / 1000, err
}

func parseSeconds(text string) (float64, error) {
	d, err := config.ParseWait(text)
	return d.Seconds(), err
}

// givenFlags collects the first flag that can't be read.
type givenFlags struct {
	cmd   *cobra.Command
	wrong error
}

// value returns a flag's value, or nil if the flag was not given.
func value[T any](g *givenFlags, flag string, v T) *T {
	if !g.cmd.Flags().Changed(flag) {
		return nil
	}
	return &v
}

func parsed[T any](g *givenFlags, flag, text string, parse func(string) (T, error)) *T {
	if !g.cmd.Flags().Changed(flag) {
		return nil
	}
	v, err := parse(text)
	if err != nil && g.wrong == nil {
		g.wrong = usageErrorf("--%s: %w", flag, err)
	}
	return &v
}
