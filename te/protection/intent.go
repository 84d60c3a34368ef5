package protection

import (
	"fmt"

	"sextant/te/segment"
)

// MaxPaths is how many paths a protection has at most, copies and spares together: the data plane
// tells MaxSlots apart, and some must be left for replacements.
const MaxPaths = 6

// Intent is what is asked for.
type Intent struct {
	From, To string // names of nodes: where traffic enters, and where it leaves
	Copies   int    // paths that carry each packet at the same time
	Spares   int    // paths that stand by
	Disjoint segment.Disjointness
	MaxSIDs  int           // of a list
	Model    segment.Model // Forced or ForcedAdjacency: others don't hold packets to a path
	// expected of one copy, with its outer headers; 0: not known, and no link is refused for its
	// load
	RateKbps int64
	// BoundPermille is the share of a link's capacity that protections may fill together.
	BoundPermille int
}

// Paths is how many paths are wanted.
func (i Intent) Paths() int { return i.Copies + i.Spares }

// Check refuses what can't be meant.
func (i Intent) Check() error {
	switch {
	case i.From == "" || i.To == "":
		return fmt.Errorf("a protection leads from a node to a node; name both")
	case i.From == i.To:
		return fmt.Errorf("%s is both ends; name two nodes", i.From)
	case i.Copies < 1:
		return fmt.Errorf("%d copies; a packet travels once at least", i.Copies)
	case i.Spares < 0:
		return fmt.Errorf("%d spares; write 0 for none", i.Spares)
	case i.Paths() > MaxPaths:
		return fmt.Errorf("%d copies and %d spares; a protection has %d paths at most", i.Copies,
			i.Spares, MaxPaths)
	case i.Model != segment.Forced && i.Model != segment.ForcedAdjacency:
		return fmt.Errorf("model %s does not hold packets to a path; take %s or %s", i.Model,
			segment.ForcedAdjacency, segment.Forced)
	case i.MaxSIDs < 1 || i.MaxSIDs > maxSIDs:
		return fmt.Errorf("%d SIDs; a list has 1 to %d", i.MaxSIDs, maxSIDs)
	case i.RateKbps < 0:
		return fmt.Errorf("a rate of %d kbit/s; write 0 if it is not known", i.RateKbps)
	case i.BoundPermille < 1 || i.BoundPermille > 1000:
		return fmt.Errorf("a bound of %d permille; it is 1 to 1000 of a link's capacity",
			i.BoundPermille)
	}
	if _, err := segment.ParseDisjointness(string(i.Disjoint)); err != nil {
		return err
	}
	return nil
}

// maxSIDs leaves room in the head-end's outer headers for one SID more, as a list that ends in an
// End.X takes the destination's besides.
const maxSIDs = 7
