package agent

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// supervisor tells the service manager how the agent is, if one started it: sd_notify(3), with
// NOTIFY_SOCKET and WATCHDOG_USEC. The goroutine that owns the agent calls it, so that the watchdog
// sees when that goroutine hangs.
type supervisor struct {
	log      *slog.Logger
	watchdog *time.Ticker // nil: nobody waits for signs of life
}

// A sign of life comes this many times within the time after which the service manager gives the
// agent up.
const signsPerWatchdogTime = 3

func newSupervisor(log *slog.Logger) (*supervisor, error) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("watchdog of the service manager: %w; check WATCHDOG_USEC and "+
			"WATCHDOG_PID", err)
	}
	s := &supervisor{log: log}
	if limit > 0 {
		s.watchdog = time.NewTicker(limit / signsPerWatchdogTime)
	}
	return s, nil
}

// signDue gets a value when the next sign of life is due.
func (s *supervisor) signDue() <-chan time.Time {
	if s.watchdog == nil {
		return nil
	}
	return s.watchdog.C
}

func (s *supervisor) ready(node string) {
	s.tell(daemon.SdNotifyReady + "\nSTATUS=node " + node + " runs")
}

func (s *supervisor) alive() { s.tell(daemon.SdNotifyWatchdog) }

// stop says that the agent ends.
func (s *supervisor) stop() {
	if s.watchdog != nil {
		s.watchdog.Stop()
	}
	s.tell(daemon.SdNotifyStopping)
}

// tell does nothing without a service manager; one that does not listen is no reason to stop
// forwarding.
func (s *supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}
