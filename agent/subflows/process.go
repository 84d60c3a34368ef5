package subflows

import (
	"context"

	"sextant/datapath"
	"sextant/linux"
)

// process is a runner as the program of the role: no program of the kernel, but a goroutine.
type process struct {
	*Runner
	dir    string // of pins
	life   context.Context
	failed func(error)
	former string // path manager that is given back if the role is not to run; "": none
	end    context.CancelFunc
	ended  chan struct{} // nil: it does not run
}

// Commit has connections that are opened from now on managed here, and those that are found.
func (p *process) Commit() ([]datapath.Attachment, error) {
	kept, err := formerManager(p.dir)
	if err != nil {
		return nil, err
	}
	if kept == "" {
		manager, _, err := linux.PathManager()
		if err != nil {
			return nil, err
		}
		if err := datapath.KeepText(p.dir, managerFile, manager); err != nil {
			return nil, err
		}
		p.former = manager
	}
	if err := linux.SetPathManager(""); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(p.life)
	ended := make(chan struct{})
	p.end, p.ended = end, ended
	go func() {
		defer close(ended)
		if err := p.Run(ctx); err != nil {
			p.failed(err)
		}
	}()
	return nil, nil
}

// stop ends the goroutine, if there is one.
func (p *process) stop() {
	if p.ended == nil {
		p.Runner.Close()
		return
	}
	p.end()
	<-p.ended
}

// Abandon is for a role that is not to run.
func (p *process) Abandon() error {
	p.stop()
	if p.former == "" {
		return nil
	}
	return giveBack(p.former)
}

// Close ends the goroutine. Subflows go on.
func (p *process) Close() { p.stop() }

// Hold is role.Program.
func (p *process) Hold() {}

// Faults is role.Program.
func (p *process) Faults(on []datapath.Attachment) ([]string, error) {
	return make([]string, len(on)), nil
}

// Reattach is role.Program.
func (p *process) Reattach() error { return nil }

// Attachments is role.Program.
func (p *process) Attachments() []datapath.Attachment { return nil }

// ForgetNextHops is role.Program.
func (p *process) ForgetNextHops() error { return nil }

// Drops is role.Program.
func (p *process) Drops() ([]datapath.Counter, error) { return nil, nil }

// Outcomes is role.Program.
func (p *process) Outcomes() ([]datapath.Counter, error) { return nil, nil }

// Maps is role.Program.
func (p *process) Maps() []datapath.MapUse { return nil }

// Dump is role.Program.
func (p *process) Dump(string, int) ([]datapath.Entry, error) { return nil, datapath.ErrNoMap }
