package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// What drives a terminal (xterm's control sequences).
const (
	alternateScreen = "\x1b[?1049h\x1b[?25l" // with the cursor hidden
	normalScreen    = "\x1b[?25h\x1b[?1049l"
	homePosition    = "\x1b[H"
	clearToLineEnd  = "\x1b[K"
	clearBelow      = "\x1b[J"
)

// onScreen runs a command that draws pictures: on a terminal on its other screen, so that what was
// there before comes back.
func (a *app) onScreen(draws func() error) error {
	if !a.terminal {
		return draws()
	}
	fmt.Fprint(raw(a.stdout), alternateScreen)
	defer fmt.Fprint(raw(a.stdout), normalScreen)
	return draws()
}

// picture writes a picture in one piece, so that it does not flicker: home, each line cleared
// behind its end, then all below. It is cut to the window, which may have another size each time.
// Where the output is no terminal it is followed by an empty line.
func (a *app) picture(text string) error {
	if !a.terminal {
		_, err := io.WriteString(a.stdout, text+"\n")
		return err
	}
	text = fit(text, a.window())
	text = homePosition + strings.ReplaceAll(text, "\n", clearToLineEnd+"\n") + clearBelow
	_, err := io.WriteString(raw(a.stdout), text) // its cells drive nothing
	return err
}

// window is the size of a terminal; zero: it is not known.
type window struct{ columns, rows int }

// fit cuts a picture to a window: lines that would be wrapped, and those that would push the first
// ones out. The last row is left to the cursor.
func fit(text string, w window) string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	if room := w.rows - 1; w.rows > 0 && len(lines) > room {
		shown := max(room-1, 0)
		hidden := plural(uint64(len(lines)-shown), "more line")
		lines = append(lines[:shown], hidden+", not shown: the window is too small\n")
	}
	for i, line := range lines {
		lines[i] = cutLine(line, w.columns)
	}
	return strings.Join(lines, "")
}

// cutLine cuts a line to some columns; 0: it stays. Colours take none, and go on to work.
func cutLine(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	var out strings.Builder
	used, colour := 0, false
	for _, r := range line {
		if colour = colour || r == '\x1b'; colour || r == '\n' {
			out.WriteRune(r)
			colour = colour && r != 'm'
			continue
		}
		if used++; used <= columns {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// watched gives a command that lists the flag -w: the list is shown again and again.
func (a *app) watched(cmd *cobra.Command) *cobra.Command {
	var on bool
	var interval time.Duration
	cmd.Flags().BoolVarP(&on, "watch", "w", false, "show it again and again; Ctrl-C ends")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two pictures of -w")
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !on {
			return list(cmd, args)
		}
		if interval < 100*time.Millisecond {
			return usageErrorf("--interval %v is too short; write 100ms or more", interval)
		}
		return a.onScreen(func() error { return a.again(cmd, args, interval, list) })
	}
	return cmd
}

// again runs a command until its context or an error ends it.
func (a *app) again(cmd *cobra.Command, args []string, interval time.Duration,
	list func(*cobra.Command, []string) error) error {
	out := a.stdout
	defer func() { a.stdout = out }()
	for cmd.Context().Err() == nil {
		var text bytes.Buffer
		a.stdout = &text
		err := list(cmd, args)
		a.stdout = out
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.picture(text.String()); err != nil {
			return err
		}
		a.sleep(cmd.Context(), interval)
	}
	return nil
}
