package experiment

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// tolerableLateness is the mean lateness of the generator beyond which its response times say more
// about this machine than about the policies: a tenth of the mean CPU time of a request.
const tolerableLateness = service / 10

// Write prints the comparison for people.
func (h *Hunting) Write(w io.Writer) error {
	fmt.Fprintf(w, "Response times in ms, %d servers of %d cores, load %.2f, mean CPU time %.0f "+
		"ms; rows have the same requests from the first on:\n\n",
		servers, cores, h.Utilization, h.ServiceMs)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "POLICY\tCANDIDATES\tREQUESTS\tFAILED\tMEAN\tP50\tP99\tSECOND CHOICE\tFASTER\t")
	for _, p := range h.Policies {
		second, faster := "-", "-"
		if p.Candidates > 1 {
			second, faster = fmt.Sprintf("%.0f %%", 100*p.SecondChoice),
				fmt.Sprintf("%.1f times", p.Improvement)
		}
		l := p.Load
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s\t\n",
			p.Policy, p.Candidates, l.Done, l.Failed, l.Latency.MeanMs, l.Latency.P50Ms,
			l.Latency.P99Ms, second, faster)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	agrees := "agrees with"
	if !h.Agrees {
		agrees = "differs from"
	}
	best := h.Policies[len(h.Policies)-1]
	fmt.Fprintf(w, `
Hunting over %d candidates answers %.1f times faster in the mean than random choice.
Random choice %s queueing theory: measured %.1f ± %.1f ms (%.0f %% confidence), M/M/2 per server s/(1-rho^2) = %.1f ms.
`, best.Candidates, best.Improvement, agrees, h.RandomMs.Mean, h.RandomMs.HalfWidth, 100*h.Confidence, h.TheoryMs)
	return h.warn(w)
}

// warn tells what makes the numbers doubtful.
func (h *Hunting) warn(w io.Writer) error {
	for _, p := range h.Policies {
		late := p.Load.Lateness
		if late.MeanMs <= milliseconds(tolerableLateness) {
			continue
		}
		if _, err := fmt.Fprintf(w, "Warning: %s with %d candidate(s): requests were sent %.1f "+
			"ms late in the mean, the latest %s, "+
			"because this machine was busy with other things; the response times contain that. "+
			"Try again when it is quieter.\n",
			p.Policy, p.Candidates, late.MeanMs,
			time.Duration(late.MaxMs*float64(time.Millisecond)).Round(
				time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}
