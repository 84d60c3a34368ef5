package datapath

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

// CFLBInterface is an interface on which packets arrive that a router with controllable load
// balancing forwards.
type CFLBInterface struct {
	Name string
	Mode Mode
}

// CFLBNextHops is how many next hops a destination has at most.
const CFLBNextHops = cflbNextHops

// CFLBConfig is what the programs of controllable load balancing are loaded for: a change loads
// them anew.
type CFLBConfig struct {
	IPv4, IPv6 *cflb.Codec
	Router     uint32 // its number, different at each router
	// Kernel leaves forwarding to the kernel, whose fib_multipath_hash_policy has to be 1: a
	// program at TC ingress sets the hash by which the kernel chooses. Else a program at XDP
	// forwards what it can before.
	Kernel     bool
	Interfaces []CFLBInterface
}

// CFLB is the programs of a router with controllable load balancing, with their tables. Its methods
// are for one goroutine.
type CFLB struct {
	*collection
	config   CFLBConfig
	programs map[string]*ebpf.Program
	numbers  map[cflbGroup]uint32 // of the groups that the routes lead to
	routes4  map[cflbRoute4]uint32
	routes6  map[cflbRoute6]uint32
}

var _ = objectsOf("cflb", loadCflb)

// OpenCFLB loads the programs and empty tables, beside whatever is running. Dir is a directory on
// the bpf file system.
func OpenCFLB(dir string, config CFLBConfig) (*CFLB, error) {
	c, err := newCollection(dir, loadCflb)
	if err != nil {
		return nil, err
	}
	r := &CFLB{collection: c, config: config}
	if err := r.open(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *CFLB) open() error {
	spec, err := loadCflb()
	if err != nil {
		return err
	}
	settings := cflbSettings{Router: r.config.Router}
	for i, codec := range []*cflb.Codec{r.config.IPv4, r.config.IPv6} {
		settings.Networks[i] = cflbNetworkOf(codec)
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return err
	}
	r.programs, err = r.load(spec, "cflb_choices")
	return err
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything. What
// is no longer configured is released. SetTable comes first, so that no packet meets an empty
// table.
func (r *CFLB) Commit() ([]Attachment, error) {
	var places []place
	for _, i := range r.config.Interfaces {
		places = append(places, place{name: "cflb_hash", program: r.programs["cflb_hash"],
			on: i.Name, kind: onArriving})
		if !r.config.Kernel {
			places = append(places, place{name: "cflb", program: r.programs["cflb"], on: i.Name,
				mode: i.Mode, sends: true})
		}
	}
	return r.commit(places)
}

// SetTable makes the tables of the programs those of a router: groups that have changed are built
// beside the others, then the routes are switched to them one by one. An error of the input changes
// nothing.
func (r *CFLB) SetTable(table model.CFLBTable) error {
	groups, err := r.groupsOf(table)
	if err != nil {
		return err
	}
	numbers, err := r.place(groups)
	if err != nil {
		return err
	}
	routes4, routes6 := map[cflbRoute4]uint32{}, map[cflbRoute6]uint32{}
	for prefix, group := range table.Routes {
		var number uint32
		if group != model.CFLBKernel {
			number = numbers[groups[group]]
		}
		if address := prefix.Masked().Addr(); address.Is4() {
			routes4[cflbRoute4{uint32(prefix.Bits()), address.As4()}] = number
		} else {
			routes6[cflbRoute6{uint32(prefix.Bits()), address.As16()}] = number
		}
	}
	if err := replace(r.maps["cflb_routes4"], r.routes4, routes4); err != nil {
		return fmt.Errorf("set IPv4 routes: %w", err)
	}
	if err := replace(r.maps["cflb_routes6"], r.routes6, routes6); err != nil {
		return fmt.Errorf("set IPv6 routes: %w", err)
	}
	r.numbers, r.routes4, r.routes6 = numbers, routes4, routes6
	return nil
}

// groupsOf lays out the groups of the table, each for the family of its routes.
func (r *CFLB) groupsOf(table model.CFLBTable) ([]cflbGroup, error) {
	codecs := make([]*cflb.Codec, len(table.Groups))
	of := make([]netip.Prefix, len(table.Groups))
	for prefix, group := range table.Routes {
		if group == model.CFLBKernel {
			continue
		}
		codec := r.config.IPv6
		if prefix.Addr().Is4() {
			codec = r.config.IPv4
		}
		if codecs[group] != nil && codecs[group] != codec {
			return nil, fmt.Errorf("routes to %s and %s share next hops: each family needs its own",
				of[group], prefix)
		}
		codecs[group], of[group] = codec, prefix
	}
	groups := make([]cflbGroup, len(table.Groups))
	for i, hops := range table.Groups {
		if codecs[i] == nil {
			continue // no route leads to it
		}
		var err error
		if groups[i], err = cflbGroupOf(codecs[i], hops); err != nil {
			return nil, fmt.Errorf("route to %s: %w", of[i], err)
		}
	}
	return groups, nil
}

// place puts the groups that are not there yet into entries that no route leads to, and returns the
// numbers of all.
func (r *CFLB) place(groups []cflbGroup) (map[cflbGroup]uint32, error) {
	numbers, err := placed(r.numbers, groups, cflbGroupsMax, r.maps["cflb_groups"])
	if err != nil {
		return nil, fmt.Errorf("set next hops: %w; aggregate routes, or let the kernel forward",
			err)
	}
	return numbers, nil
}

// Choices returns how many packets were forwarded, by how their next hop was chosen.
func (r *CFLB) Choices() (map[cflb.Choice]uint64, error) {
	choices := map[cflb.Choice]uint64{}
	for choice := range cflb.Choice(cflbChoices) {
		n, err := sumPerCPU(r.maps["cflb_choices"], uint32(choice), addWords[uint64])
		if err != nil {
			return nil, err
		}
		choices[choice] = n
	}
	return choices, nil
}
