package edgecoloring

import "fmt"

// A FatTree assigns paths to flows between the hosts of a fat tree of k-port switches (Al-Fares,
// Loukissas and Vahdat, "A scalable, commodity data center network architecture", 2008): k pods of
// k/2 edge and k/2 aggregation switches, k/2 hosts at each edge switch, and k/2 groups of k/2 core
// switches, group a linked to aggregation switch a of each pod. If no host sends or receives more
// than one flow, no link carries more than one. It serves one goroutine.
type FatTree struct {
	*Clos
	k int
}

// NewFatTree returns a fat tree without flows. k is even, 2 to 128.
func NewFatTree(k int) (*FatTree, error) {
	if k < 2 || k%2 != 0 || k > 2*ColorsMax {
		return nil, fmt.Errorf("a fat tree of %d-port switches: the number has to be even, 2 to %d",
			k, 2*ColorsMax)
	}
	pods := make([]int, k*k/2)
	for edge := range pods {
		pods[edge] = edge / (k / 2)
	}
	clos, err := NewClos(pods, k/2, k/2)
	return &FatTree{Clos: clos, k: k}, err
}

// Hosts returns the number of hosts, k^3/4. They are numbered through edge switches and pods.
func (t *FatTree) Hosts() int { return t.k * t.k * t.k / 4 }

// Add is Clos.Add for flows between hosts.
func (t *FatTree) Add(flows ...Ends) ([]Flow, error) {
	switches := make([]Ends, len(flows))
	for i, ends := range flows {
		if ends.Src < 0 || ends.Src >= t.Hosts() || ends.Dst < 0 || ends.Dst >= t.Hosts() {
			return nil, fmt.Errorf("flow from host %d to %d: the hosts are 0 to %d", ends.Src,
				ends.Dst, t.Hosts()-1)
		}
		switches[i] = Ends{ends.Src / (t.k / 2), ends.Dst / (t.k / 2)}
	}
	return t.Clos.Add(switches...)
}
