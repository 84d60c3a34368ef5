package health

import (
	"context"
	"fmt"

	"sextant/config"
)

// Probe checks the target once. It returns nil if the backend serves, else what is wrong, as soon
// as ctx ends at the latest. If keep is not nil, the check takes the connection that is there, and
// leaves it there if it can.
func Probe(ctx context.Context, c *config.Check, t Target, keep *Kept) error {
	switch c.Kind {
	case config.CheckTCP:
		return probeTCP(ctx, t)
	case config.CheckHTTP, config.CheckHTTPS, config.CheckGRPC:
		if keep != nil {
			return keep.probe(ctx, c, t, true)
		}
		return new(Kept).probe(ctx, c, t, false)
	case config.CheckExec:
		return probeExec(ctx, c, t)
	}
	return fmt.Errorf("unknown kind of check %q", c.Kind)
}

func probeTCP(ctx context.Context, t Target) error {
	conn, err := t.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}
