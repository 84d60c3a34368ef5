package merge

import (
	"time"

	"sextant/config"
	"sextant/datapath"
)

// ordering is what puts the packets of protected flows in order. Programs in the kernel can't hold
// packets, so this process does; while it does not, packets pass as they come. A nil ordering
// orders nothing.
type ordering struct {
	program *datapath.Merge
	order   *datapath.Order
	bound   time.Duration
	stop    chan struct{}
	done    chan struct{}
}

// leastBound is how long a packet waits for others at least, before it goes on without.
const leastBound = time.Millisecond

// orderBound is how long packets wait for others: as long as these may come later. 0: no flow is to
// be put in order.
func orderBound(n *config.Node) (bound time.Duration) {
	if n.Merge == nil {
		return 0
	}
	for _, s := range n.Merge.SIDs {
		skew := s.Skew
		if s.History != 0 {
			skew = config.DefaultMergeSkew
		}
		if s.Ordered {
			bound = max(bound, skew, leastBound)
		}
	}
	return bound
}

// orderMerges begins to order, or ends it, as the configuration wants.
func (m *Room) orderMerges() {
	bound := orderBound(m.Node)
	if m.ordering.does(m.Runs, bound) {
		return
	}
	m.ordering.end()
	if m.ordering = nil; bound == 0 {
		return
	}
	order, err := m.Runs.Program.OpenOrder(bound)
	if err != nil {
		m.Log.Warn("packets of protected flows pass as they come, not in order", "error",
			err)
		m.ordering = &ordering{done: closed()}
		return
	}
	o := &ordering{m.Runs.Program, order, bound, make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(o.done)
		if err := order.Run(o.stop); err != nil {
			m.Log.Warn("packets of protected flows pass as they come, not in order",
				"error", err)
		}
	}()
	m.ordering = o
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// does says whether what is wanted is what runs.
func (o *ordering) does(m *Role, bound time.Duration) bool {
	if o == nil {
		return bound == 0
	}
	return m != nil && o.program == m.Program && o.bound == bound && o.warning() == ""
}

// end makes packets pass as they come, and gives on those that wait.
func (o *ordering) end() {
	if o == nil || o.order == nil {
		return
	}
	close(o.stop)
	<-o.done
	_ = o.order.Close() // nothing is sent there any more
	o.order = nil
}

func (o *ordering) warning() string {
	if o == nil {
		return ""
	}
	select {
	case <-o.done:
		return "protected flows that should be put in order pass as they come; see the agent's " +
			"log, and restart the agent"
	default:
		return ""
	}
}
