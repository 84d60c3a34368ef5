package health

import (
	"context"
	"fmt"

	"sextant/config"
)

// Probe checks the target once. It returns nil if the backend serves, else what is wrong, as soon
// as ctx ends at the latest.
func Probe(ctx context.Context, c *config.Check, t Target) error {
	switch c.Kind {
	case config.CheckTCP:
		return probeTCP(ctx, t)
	case config.CheckHTTP, config.CheckHTTPS:
		return probeHTTP(ctx, c, t)
	case config.CheckGRPC:
		return probeGRPC(ctx, c, t)
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
