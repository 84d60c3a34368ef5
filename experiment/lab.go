package experiment

import (
	"context"
	"fmt"

	"sextant/lab"
)

// InLab builds a lab, calls body and takes the lab down again, whatever happens. If ctx ends
// before, the error wraps its cause.
func InLab(ctx context.Context, spec *lab.Spec, options lab.Options,
	body func(context.Context, *lab.Lab) error) error {
	return lab.Run(ctx, spec, options, func(ctx context.Context, l *lab.Lab) error {
		err := body(ctx, l)
		if ctx.Err() != nil { // whatever error that led to
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		return err
	})
}
