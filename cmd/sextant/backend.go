package main

import (
	"context"
	"reflect"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

func (a *app) backendCommand() *cobra.Command {
	return noun("backend", "Backends: the servers of an edge's services",
		seeAlso("sextant service"),
		a.backendList(), a.backendAdd(), a.backendSet(),
		a.backendDrain(),
		a.backendState("undrain", config.Up, "Give a backend new connections again", "drain"),
		a.backendDelete())
}

func (a *app) backendList() *cobra.Command {
	return a.watched(&cobra.Command{
		Use: "list [SERVICE]", Short: "List backends with their share of the buckets and their " +
			"counters",
		Example:           "  sextant lab exec quickstart edge -- sextant backend list web",
		Annotations:       seeAlso("sextant service show", "sextant top"),
		Args:              takes("[SERVICE]"),
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			service := ""
			if len(args) > 0 {
				service = args[0]
				if _, err := a.findServices(cmd.Context(), service, api.Edge); err != nil {
					return err
				}
			}
			backends, err := a.lister().Backends(cmd.Context(), service)
			if err != nil {
				return err
			}
			v := view{value: api.List[api.Backend]{Items: backends},
				tables: tables{backendTable(backends)}}
			for _, b := range backends {
				v.names = append(v.names, b.Name)
			}
			return a.show(v)
		},
	})
}

func backendTable(backends []api.Backend) table {
	buckets := map[string]int{}
	for _, b := range backends {
		buckets[b.Service] += b.Buckets
	}
	t := table{
		columns: []string{"SERVICE", "NAME", "SID", "STATE", "HEALTH", "SHARE", "PACKETS"},
		wide: []string{"BYTES", "WEIGHT", "SOURCE", "BUCKETS", "USED-AS", "CHECKED-SINCE",
			"LAST-ERROR"},
	}
	for _, b := range backends {
		t.rows = append(t.rows, []string{
			b.Service, b.Name, b.SID.String(), string(b.State), healthText(b),
			share(b.Buckets, buckets[b.Service]), count(b.Packets),
			count(b.Bytes), count(b.Weight), b.Source, count(b.Buckets), string(b.Effective),
			known(b.Health, func(h api.Health) string { return timeText(h.Since) }),
			known(b.Health, func(h api.Health) string { return orDash(h.LastError) }),
		})
	}
	return t
}

// healthText says what the checks say, and what is wrong if something is.
func healthText(b api.Backend) string {
	switch {
	case b.Health == nil:
		return "-"
	case b.Health.Status != "healthy" && b.State == config.Up && b.Effective == config.Up:
		return b.Health.Status + ", used"
	}
	return b.Health.Status
}

// findBackend returns a backend, or an error that lists those that there are.
func (a *app) findBackend(ctx context.Context, service, name string) (api.Backend, error) {
	services, err := a.findServices(ctx, service, api.Edge)
	if err != nil {
		return api.Backend{}, err
	}
	var names []string
	for _, b := range services[0].Edge.Backends {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return api.Backend{}, absent("backend", name, names)
}

func (a *app) backendAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add SERVICE NAME --sid SID", Short: "Add a backend to a service",
		Example: "  sextant lab exec quickstart edge -- sextant backend add web web4 " +
			"--sid fcbb:bb00:4:: --weight 2",
		Annotations:       seeAlso("sextant backend set", "sextant backend drain"),
		Args:              takes("SERVICE", "NAME"),
		ValidArgsFunction: a.completeServices,
	}
	settingFlags(cmd, reflect.TypeFor[api.BackendSpec]())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var spec api.BackendSpec
		if err := readSettingFlags(cmd, &spec); err != nil {
			return err
		}
		if spec.SID == nil {
			return usageErrorf("no SID is given; name one with --sid")
		}
		return a.putBackend(cmd, api.Create, args, spec)
	}
	return cmd
}

func (a *app) backendSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set SERVICE NAME",
		Short: "Change a backend; settings that are not named keep their values",
		Long: `Change a backend; settings that are not named keep their values.

--state down gives up the connections that the backend has, without a question and without --break-connections. A backend that is to
keep them until they end is drained ("sextant backend drain").`,
		Example: "  sextant lab exec quickstart edge -- sextant backend set web web3 " +
			"--weight 2",
		Annotations:       seeAlso("sextant backend drain", "sextant backend list"),
		Args:              takes("SERVICE", "NAME"),
		ValidArgsFunction: a.completeBackends,
	}
	settingFlags(cmd, reflect.TypeFor[api.BackendSpec]())
	breakFlag(cmd, &a.breaks)
	cmd.Flags().Lookup("break-connections").Usage += ", but for --state down"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var spec api.BackendSpec
		if err := readSettingFlags(cmd, &spec); err != nil {
			return err
		}
		if spec == (api.BackendSpec{}) {
			return usageErrorf("nothing to change; say what with --weight, --state, --sid or " +
				"--agent")
		}
		return a.putBackend(cmd, api.Update, args, spec)
	}
	return cmd
}

// backendState makes a command that only changes a backend's state.
func (a *app) backendState(verb string, state config.BackendState, short,
	opposite string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " SERVICE NAME", Short: short,
		Example: "  sextant lab exec quickstart edge -- sextant backend " + verb +
			" web web1",
		Annotations:       seeAlso("sextant backend "+opposite, "sextant backend delete"),
		Args:              takes("SERVICE", "NAME"),
		ValidArgsFunction: a.completeBackends,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.putBackend(cmd, api.Update, args, api.BackendSpec{State: &state})
		},
	}
}

func (a *app) putBackend(cmd *cobra.Command, put api.Put, args []string,
	spec api.BackendSpec) error {
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	return a.changed(a.agent().PutBackend(ctx, put, args[0], args[1], spec))
}

func (a *app) backendDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete SERVICE NAME", Short: "Delete a backend from a service",
		Long: `Delete a backend from a service. Drain it first ("sextant backend drain"): connections that it still has are
broken. A backend that carries traffic is deleted only after a question, or with --yes: one whose host has open connections, where
its agent is known (sextant backend set --agent), or for which packets come within 0.5 s. Else idle connections are not seen.`,
		Example:           "  sextant lab exec quickstart edge -- sextant backend delete web web1",
		Annotations:       seeAlso("sextant backend drain"),
		Args:              takes("SERVICE", "NAME"),
		ValidArgsFunction: a.completeBackends,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.confirmBackendDeletion(cmd, args[0], args[1], yes); err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			return a.changed(a.agent().DeleteBackend(ctx, args[0], args[1]))
		},
	}
	yesFlag(cmd, &yes)
	return cmd
}
