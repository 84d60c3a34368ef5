package experiment

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Write prints the comparison for people.
func (h *Hunting) Write(w io.Writer) error {
	fmt.Fprintf(w, "Response times in ms, %d servers of %d cores, load %.2f, mean CPU time %.0f ms, same requests for both:\n\n",
		servers, cores, h.Utilization, h.ServiceMs)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "POLICY\tCANDIDATES\tREQUESTS\tFAILED\tMEAN\tP50\tP99\tSECOND CHOICE\t")
	for _, p := range h.Policies {
		second := "-"
		if p.Candidates > 1 {
			second = fmt.Sprintf("%.0f %%", 100*p.SecondChoice)
		}
		l := p.Load
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%s\t\n",
			p.Policy, p.Candidates, l.Done, l.Failed, l.Latency.MeanMs, l.Latency.P50Ms, l.Latency.P99Ms, second)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	agrees := "agrees with"
	if !h.Agrees {
		agrees = "differs from"
	}
	_, err := fmt.Fprintf(w, `
Hunting answers %.1f times faster in the mean.
Random choice %s queueing theory: measured %.1f ± %.1f ms (%.0f %% confidence), M/M/2 per server s/(1-rho^2) = %.1f ms.
`, h.Improvement, agrees, h.RandomMs.Mean, h.RandomMs.HalfWidth, 100*h.Confidence, h.TheoryMs)
	return err
}
