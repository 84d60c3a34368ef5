package linux

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Error is a request that the kernel refused.
type Error struct {
	Tried string // what was tried, on what: "create network namespace sx-lab-web1"
	Err   error  // the kernel's answer
	Mend  string // what would make it work; "" when nothing general can be said
}

// Error writes the three parts on one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Tried, reason(e.Err))
	if e.Mend != "" {
		text += "; " + e.Mend
	}
	return text
}

// Unwrap returns the kernel's answer.
func (e *Error) Unwrap() error { return e.Err }

// Failed wraps err, the answer to a request that format and args describe, in
// an [Error]. The mend follows from the answer: most often the caller is not
// root. A nil err stays nil.
func Failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Tried: fmt.Sprintf(format, args...), Err: err, Mend: generalMend(err)}
}

// failedWith is Failed with a mend for what went wrong when it is not a lack
// of privilege.
func failedWith(err error, mend, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if general := generalMend(err); general != "" {
		mend = general
	}
	return &Error{Tried: fmt.Sprintf(format, args...), Err: err, Mend: mend}
}

func generalMend(err error) string {
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		return ""
	}
	if os.Geteuid() != 0 {
		return "needs root: run with sudo"
	}
	return "root lacks the privilege here: give this container CAP_SYS_ADMIN, CAP_NET_ADMIN and " +
		"CAP_BPF, or run outside of it"
}

// reason leaves out the operation and path that the standard library puts
// before the answer: Tried says it better.
func reason(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}
