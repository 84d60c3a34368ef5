package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sextant/lab"
	"sextant/lab/loadgen"
)

// realtime starts its arguments in the scheduling class SCHED_RR where that is allowed: on a busy
// machine an ordinary process waits for milliseconds, and the response times would be those of the
// machine.
const realtime = `chrt -r 1 true 2>/dev/null && set -- chrt -r 1 "$@"; exec "$@"`

// Load runs the open-loop generator on a node of a lab, with arguments as of "sextant loadgen", and
// tells each response to a listener, nil for nobody.
func Load(ctx context.Context, l *lab.Lab, node string, each func(loadgen.Response),
	arguments ...string) (*loadgen.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := slices.Concat([]string{"-c", realtime, "sh", self, "loadgen"}, arguments,
		[]string{"--each"})
	var result *loadgen.Result
	err = ReadLoad(l, node, exec.CommandContext(ctx, "/bin/sh", command...),
		func(r io.Reader) (err error) {
			result, err = responses(r, each)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("load the servers: %w", err)
	}
	return result, nil
}

// ReadLoad runs a generator of load on a node of a lab, and reads what it writes.
func ReadLoad(l *lab.Lab, node string, cmd *exec.Cmd, read func(io.Reader) error) error {
	reader, writer := io.Pipe()
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = writer, &stderr
	ended := make(chan error, 1)
	go func() {
		err := l.Exec(node, cmd)
		writer.Close()
		ended <- err
	}()
	unread := read(reader)
	reader.CloseWithError(unread) // nothing waits for us to read
	if err := <-ended; err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return unread
}

// responses reads what the generator writes.
func responses(r io.Reader, each func(loadgen.Response)) (result *loadgen.Result, err error) {
	for lines := json.NewDecoder(r); ; {
		var line loadgen.Line
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF) && result != nil:
			return result, nil
		case err != nil:
			return nil, fmt.Errorf("read what the generator tells: %w", err)
		case line.Open != nil:
			result = line.Open
		case line.Response != nil && each != nil:
			each(*line.Response)
		}
	}
}
