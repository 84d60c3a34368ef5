package scenario

import (
	"strings"
	"time"

	"sextant/sim/packet"
	"sextant/te/reroute"
)

// What a controller does if nothing is stated: one of 50 packets carries telemetry, as in the
// SMOOTHIE paper; delays are those of a report and of a route through the kernel.
const (
	defaultSample       = 0.02
	defaultPause        = 100 * time.Microsecond
	defaultReportDelay  = 100 * time.Microsecond
	defaultControlDelay = 200 * time.Microsecond
	groupsPerPause      = 10 // time between weights for flows that begin
)

// policy is the controller of a scheme that te/reroute knows as a policy: smoothie, as in the
// paper, where a pause is reported with the flow's next packet that carries telemetry, or sextant,
// where it is reported at once; or smoothie-clove, with which the paper compares: a queue that is
// nearly full moves flows to random paths.
func (c *Controller) policy(scheme string) (*packet.Controller, error) {
	policy, err := reroute.ParsePolicy(strings.TrimPrefix(scheme, "smoothie-"))
	if err != nil {
		return nil, err
	}
	sample, pause := c.Sample, c.Pause
	if sample == 0 {
		sample = defaultSample
	}
	if pause == 0 {
		pause = defaultPause
	}
	settings := reroute.Defaults(policy).Scaled(pause)
	settings.Metric = reroute.IGP
	if policy == reroute.Sextant {
		settings.Sampling = sample
		every := groupsPerPause * pause
		if c.Groups != nil {
			every = *c.Groups
		}
		settings = settings.Spreading(every)
		if c.Flowlet != nil {
			settings.Flowlet = *c.Flowlet
		}
	}
	if c.Backoff > 0 {
		settings.BackoffLeast, settings.BackoffMost = c.Backoff, 2*c.Backoff
	}
	or := func(d *time.Duration, otherwise time.Duration) packet.Time {
		if d == nil {
			d = &otherwise
		}
		return duration(d.Nanoseconds())
	}
	return &packet.Controller{Settings: settings, Sample: sample,
		Pause: duration(pause.Nanoseconds()), Prompt: policy == reroute.Sextant,
		ReportDelay:  or(c.ReportDelay, defaultReportDelay),
		ControlDelay: or(c.ControlDelay, defaultControlDelay),
		Utilization:  c.Utilization && policy == reroute.Sextant}, nil
}
