package soak

// frames are Ethernet frames one behind the other, in one piece of memory.
type frames struct {
	octets []byte
	ends   []int
}

func (f *frames) add(frame []byte) {
	f.octets = append(f.octets, frame...)
	f.ends = append(f.ends, len(f.octets))
}

func (f *frames) len() int { return len(f.ends) }

// each calls a function with one frame after the other, until one fails.
func (f *frames) each(do func(frame []byte) error) error {
	from := 0
	for _, to := range f.ends {
		if err := do(f.octets[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}
