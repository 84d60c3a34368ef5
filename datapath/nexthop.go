package datapath

import "fmt"

// ForgetNextHops makes the programs ask the kernel for each next hop again, and the edge look its
// services up: call it when a route or neighbour has changed. Others leave next
// hops to the kernel.
func (c *collection) ForgetNextHops() error {
	var epoch uint32
	m := c.maps["fib_epoch"]
	if m == nil {
		return nil
	}
	if err := m.Lookup(uint32(0), &epoch); err != nil {
		return fmt.Errorf("forget next hops: %w", err)
	}
	if err := m.Put(uint32(0), epoch+1); err != nil {
		return fmt.Errorf("forget next hops: %w", err)
	}
	return nil
}
