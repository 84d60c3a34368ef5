package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
)

// ErrBusy says that another process holds the lab: it brings it up, runs it or
// takes it down.
var ErrBusy = errors.New("another process holds the lab")

// lockPatience is how long a lock is waited for: long enough for a List that
// looks at it, short enough for people.
const lockPatience = 200 * time.Millisecond

// lock is the right to change a lab. The kernel takes it back when the process
// ends, in whatever way.
type lock struct{ dir *os.File }

// lockLab locks the state directory of a lab, which it makes if there is none.
func lockLab(name string) (*lock, error) {
	path := filepath.Join(StateDir, name)
	for deadline := time.Now().Add(lockPatience); ; {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, linux.Failed(err, "create %s", path)
		}
		l, err := tryLock(path)
		switch {
		case err == nil && l.isCurrent(path):
			return l, nil
		case err == nil: // removed by a Down that had it before
			l.release()
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, busy(name)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func tryLock(path string) (*lock, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, linux.Failed(err, "open %s", path)
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		return nil, linux.Failed(err, "lock %s", path)
	}
	return &lock{dir}, nil
}

// isCurrent says whether the locked directory is the one that has the path.
func (l *lock) isCurrent(path string) bool {
	mine, err := l.dir.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return err == nil && os.SameFile(mine, current)
}

func (l *lock) release() { l.dir.Close() }

func busy(name string) error {
	holder := "another process"
	if l, err := readState(filepath.Join(StateDir, name)); err == nil {
		holder = fmt.Sprintf("process %d", l.PID)
	}
	return fmt.Errorf("%w: %s is being brought up, run or taken down by %s; wait for it or "+
		"interrupt it", ErrBusy, name, holder)
}
