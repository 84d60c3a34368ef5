package main

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
)

// serviceChoice is which services a list shows, and how.
type serviceChoice struct {
	role, sort string
	limit      int
	sum        bool
}

// serviceCounter is a column that can be sorted by and added.
type serviceCounter struct {
	column, key string
	role        api.Role // whose services have it; "": all
	of          func(api.Service) uint64
}

var serviceCounters = []serviceCounter{
	{"BACKENDS", "backends", api.Edge,
		func(s api.Service) uint64 { return uint64(len(s.Edge.Backends)) }},
	{"BUSY", "busy", api.Host, func(s api.Service) uint64 { return uint64(s.Host.Busy) }},
	{"PACKETS", "packets", "", func(s api.Service) uint64 { return s.Packets }},
	{"BYTES", "bytes", "", func(s api.Service) uint64 { return s.Bytes }},
	{"OFFERED", "offered", api.Host, func(s api.Service) uint64 { return s.Host.Offered }},
	{"ACCEPTED", "accepted", api.Host, func(s api.Service) uint64 { return s.Host.Accepted }},
	{"REFUSED", "refused", api.Host, func(s api.Service) uint64 { return s.Host.Refused }},
	{"FORCED", "forced", api.Host, func(s api.Service) uint64 { return s.Host.Forced }},
	{"PASSED-ON", "passedOnPackets", api.Host,
		func(s api.Service) uint64 { return s.Host.PassedOnPackets }},
}

// order is the word of --sort.
func (c serviceCounter) order() string { return strings.ToLower(c.column) }

// read returns a service's counter, and whether it has one.
func (c serviceCounter) read(s api.Service) (uint64, bool) {
	if c.role != "" && c.role != s.Role {
		return 0, false
	}
	return c.of(s), true
}

func (a *app) serviceList() *cobra.Command {
	var c serviceChoice
	orders := append([]string{"name"}, lists.Map(serviceCounters, serviceCounter.order)...)
	cmd := &cobra.Command{
		Use: "list [NAME...]", Short: "List the services of this node, with their counters",
		Long: `List the services of this node, with their counters: all, or those of the names. A name may be
a shell pattern, like 'web-*', with * ? and [a-z].`,
		Example: `  sextant lab exec quickstart edge -- sextant service list
  sextant service list 'web-*' --sort packets --limit 20
  sextant service list --role edge --sum`,
		Annotations: seeAlso("sextant service show", "sextant backend list"),
		Args:        servicePatterns,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string,
			typed string) ([]string, cobra.ShellCompDirective) {
			return a.completeServices(cmd, nil, typed) // each argument is a name
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := oneOf("sort", c.sort, orders); err != nil {
				return err
			}
			if c.limit < 0 {
				return usageErrorf("--limit %d is below 0; write 0 for all, or how many", c.limit)
			}
			return a.listServices(cmd, names, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.sort, "sort", orders[0],
		"column by which to sort, counters from the largest: "+strings.Join(orders, ", "))
	f.IntVar(&c.limit, "limit", 0, "only the first so many; 0: all")
	f.BoolVar(&c.sum, "sum", false, "one row for each role with the totals of what would be listed")
	complete(cmd, "sort", orders...)
	roleFlag(cmd, &c.role)
	return a.watched(cmd)
}

// servicePatterns refuses a pattern that path.Match can't read.
func servicePatterns(_ *cobra.Command, names []string) error {
	for _, name := range names {
		if _, err := path.Match(name, ""); err != nil {
			return usageErrorf("%q is no pattern; write a name, or one with * ? or [a-z]", name)
		}
	}
	return nil
}

func (a *app) listServices(cmd *cobra.Command, names []string, c serviceChoice) error {
	services, err := a.services(cmd.Context(), "", api.Role(c.role))
	if err != nil {
		return err
	}
	if services, err = namedServices(services, names); err != nil {
		return err
	}
	sortServices(services, c.sort)
	if all := len(services); c.limit > 0 && c.limit < all {
		services = services[:c.limit]
		// With -w the next picture would cover the line.
		text := a.output == formatTable || a.output == formatWide
		if text && !a.quiet && !cmd.Flags().Changed("watch") {
			defer a.say("%d of %d services; a larger --limit shows more", c.limit, all)
		}
	}
	if c.sum {
		return a.show(totalsView(services))
	}
	return a.show(servicesView(services))
}

// namedServices are the services of names and patterns; without any all. A name that no service
// has is an error, a pattern that none matches is not.
func namedServices(services []api.Service, names []string) ([]api.Service, error) {
	known := map[string]bool{}
	for _, s := range services {
		known[s.Name] = true
	}
	for _, name := range names {
		if !known[name] && !strings.ContainsAny(name, `*?[\`) {
			return nil, absent("service", name, serviceNames(services))
		}
	}
	return slices.DeleteFunc(services, func(s api.Service) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
			matches, _ := path.Match(name, s.Name)
			return matches
		})
	}), nil
}

func serviceNames(services []api.Service) []string {
	return lists.Map(services, func(s api.Service) string { return s.Name })
}

// sortServices keeps the order of the names among equals, and without a counter.
func sortServices(services []api.Service, order string) {
	for _, c := range serviceCounters {
		if c.order() == order {
			slices.SortStableFunc(services, func(a, b api.Service) int {
				ofA, _ := c.read(a)
				ofB, _ := c.read(b)
				return cmp.Compare(ofB, ofA)
			})
		}
	}
}

// sumsOf adds up the counters of services. One that none of them has is no key.
func sumsOf(services []api.Service) map[string]uint64 {
	sums := map[string]uint64{"services": uint64(len(services)), "packets": 0, "bytes": 0}
	for _, c := range serviceCounters {
		for _, s := range services {
			if n, ok := c.read(s); ok {
				sums[c.key] += n
			}
		}
	}
	return sums
}

// totalsView is one row for each role: what a machine that is both sends to itself is counted in
// both. A counter that none of its services has is a dash.
func totalsView(services []api.Service) view {
	roles := map[api.Role]map[string]uint64{}
	document := map[string]any{"roles": roles}
	for key, sum := range sumsOf(services) {
		document[key] = sum
	}
	t := table{columns: []string{"ROLE", "SERVICES"}}
	for _, c := range serviceCounters {
		t.columns = append(t.columns, c.column)
	}
	t.columns, t.wide = t.columns[:5:5], t.columns[5:]
	byRole := map[api.Role][]api.Service{}
	for _, s := range services {
		byRole[s.Role] = append(byRole[s.Role], s)
	}
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		of := sumsOf(byRole[role])
		roles[role] = of
		cells := []any{role, of["services"]}
		for _, c := range serviceCounters {
			n, ok := of[c.key]
			cells = append(cells, textIf(ok, count(n)))
		}
		t.add(cells...)
	}
	return view{value: document, tables: tables{t}, names: serviceNames(services)}
}
