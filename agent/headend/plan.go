package headend

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sextant/packet/lists"
	"sextant/te/protection"
	"sextant/te/segment"
)

// task is a protection as a computation sees it.
type task struct {
	name    string
	intent  protection.Intent
	paths   []protection.Path // lists that are known
	planned []protection.Path // of the plan that runs
	around  []protection.Link
}

// planned is what came of a task.
type planned struct {
	task
	plan   protection.Plan
	err    error
	faults map[string]string // by path, why it can't carry; those that can are in it, too
}

// plan asks for new paths. What is asked for while a computation runs, the next one does.
func (p *Protections) plan() {
	switch {
	case p.Config == nil || p.Network == nil:
	case p.planning:
		p.again = true
	default:
		p.beginPlan(false)
	}
}

// beginPlan computes paths for the protections in a goroutine of its own: first quickly, as a
// failure may wait for them, then with proofs.
func (p *Protections) beginPlan(prove bool) {
	p.planning, p.again = true, false
	n := p.Network.View(p.Node.Domain.Block, p.downLinks())
	tasks := lists.Map(p.Running, (*RunningProtection).task)
	began := time.Now()
	go func() {
		results := compute(n, tasks, prove)
		// else the agent ends
		_ = p.Do(p.Life, func() { p.planReady(results, prove, time.Since(began)) })
	}()
}

func (x *RunningProtection) task() task {
	t := task{name: x.Name, intent: x.Intent, around: x.State.Avoid(), planned: x.Plan.Paths}
	for _, s := range x.State.Slots {
		if s.Used {
			t.paths = append(t.paths, s.Path)
		}
	}
	return t
}

// compute answers tasks in their order. A protection's paths leave out links that those of the
// others would overload.
func compute(n protection.Network, tasks []task, prove bool) []planned {
	results := make([]planned, len(tasks))
	engine, err := segment.New(n.View)
	n.Engine = engine // of all: they share what begins at this node, and more
	for i, t := range tasks {
		results[i] = planned{task: t, err: err, faults: map[string]string{}}
		if err != nil {
			continue
		}
		loads := protection.Loads{}
		for j, other := range tasks {
			if j != i {
				loads.Add(other.planned, other.intent)
			}
		}
		r := &results[i]
		if r.plan, r.err = n.Compute(t.intent, protection.Question{Avoid: t.around, Loads: loads,
			Prove: prove}); r.err == nil {
			tasks[i].planned = r.plan.Paths
		}
		for _, path := range t.paths {
			r.faults[pathKey(path)] = n.Fault(engine, t.intent.From, path)
		}
	}
	return results
}

func pathKey(p protection.Path) string {
	var b strings.Builder
	for _, l := range p.Links {
		b.WriteString(l.String() + " ")
	}
	for _, s := range p.SIDs {
		b.WriteString(s.String() + " ")
	}
	return b.String()
}

// planReady puts plans to use.
func (p *Protections) planReady(results []planned, proven bool, took time.Duration) {
	p.planning = false
	if p.Config == nil {
		return
	}
	down := p.downLinks()
	for _, r := range results {
		x := p.find(r.name)
		if x == nil || x.Intent != r.intent {
			p.again = true // it came, went or changed meanwhile
			continue
		}
		x.adopt(r, proven, func(path protection.Path) string {
			if fault := crossesDown(path, down); fault != "" {
				return fault
			}
			return r.faults[pathKey(path)]
		})
	}
	p.computations.WithLabelValues(strconv.FormatBool(proven)).Observe(took.Seconds())
	p.Log.Debug("paths were computed", "protections", len(results), "proven", proven,
		"took", took)
	p.reinstall()
	if p.again || !proven {
		p.beginPlan(!p.again)
		return
	}
	for _, x := range p.Running {
		if p.owes == "" {
			x.cause = nil // it was nothing to move for
		}
	}
	p.headend.keepPolicies() // nothing waits now
}

func (x *RunningProtection) adopt(r planned, proven bool, fault func(protection.Path) string) {
	if x.problem = ""; r.err != nil {
		x.problem, x.proven = r.err.Error(), false
		return
	}
	if !proven && r.plan.Proof == "" && slices.EqualFunc(r.plan.Paths, x.Plan.Paths,
		protection.Path.Same) {
		r.plan.Proof = x.Plan.Proof // of the same paths
	}
	x.Plan, x.proven = r.plan, proven
	if !x.known {
		x.Begin(r.plan)
		x.State = x.State.Checked(fault)
		return
	}
	x.State = x.State.Checked(fault).Adopt(r.plan, r.around).Checked(fault)
}
