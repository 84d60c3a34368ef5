package format

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sextant/te/topology"
)

// source is a file while it is read.
type source struct {
	File
	delayUnit time.Duration // if the file does not state one
	newlines  []int64       // offsets, once they were asked for
}

func newSource(f File, unit time.Duration) *source {
	f.Text = bytes.TrimPrefix(f.Text, []byte("\ufeff"))
	return &source{File: f, delayUnit: unit}
}

// isText refuses what is not UTF-8, except XML, which names its encoding.
func (s *source) isText(format Format) error {
	if format == SNDlibXML || format == GraphML || utf8.Valid(s.Text) {
		return nil
	}
	for offset := 0; ; {
		r, size := utf8.DecodeRune(s.Text[offset:])
		if r == utf8.RuneError && size <= 1 {
			return s.errorf(s.lineAt(int64(offset)),
				"the text is not UTF-8; convert it, for instance with iconv")
		}
		offset += size
	}
}

// graphName is the file's name without folders and ending.
func (s *source) graphName() string {
	base := path.Base(strings.ReplaceAll(s.Name, `\`, "/"))
	return strings.TrimSuffix(base, path.Ext(base))
}

// errorf names the place of a fault.
func (s *source) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.Name, line, short{fmt.Errorf(format, args...)})
}

// maxFault is how much of a fault is told, in bytes: it may quote what the file says.
const maxFault = 2000

// short is an error that is not told at length.
type short struct{ error }

func (s short) Error() string {
	text := s.error.Error()
	if len(text) > maxFault {
		text = fmt.Sprintf("%s... (%d bytes more)", strings.ToValidUTF8(text[:maxFault], ""),
			len(text)-maxFault)
	}
	return text
}

func (s short) Unwrap() error { return s.error }

// lineAt is the number of the line that holds a byte of the text.
func (s *source) lineAt(offset int64) int {
	if s.newlines == nil {
		s.newlines = []int64{}
		for i, c := range s.Text {
			if c == '\n' {
				s.newlines = append(s.newlines, int64(i))
			}
		}
	}
	before, _ := slices.BinarySearch(s.newlines, offset)
	return 1 + before
}

// line is a line of a text that is read line by line.
type line struct {
	number int
	words  []string // separated by blanks
}

// lines splits the text, without the lines that are empty.
func (s *source) lines() []line {
	var all []line
	number := 0
	for text := range strings.Lines(string(s.Text)) {
		number++
		if words := strings.Fields(text); len(words) > 0 {
			all = append(all, line{number, words})
		}
	}
	return all
}

// builder adds nodes and edges, and says on which line of the file one is wrong.
type builder struct {
	*topology.Builder
	s *source
}

func (s *source) builder(name string, delayUnit time.Duration) builder {
	return builder{topology.NewBuilder(name, delayUnit), s}
}

func (b builder) node(line int, n topology.NodeSpec) (topology.Node, error) {
	v, err := b.AddNode(n)
	if err != nil {
		return v, b.s.errorf(line, "%w", err)
	}
	return v, nil
}

// edge adds an edge, unless it leads from a node to itself: no path has a use for it, and published
// files hold some.
func (b builder) edge(line int, e topology.EdgeSpec) error {
	if e.From == e.To && e.From >= 0 && int(e.From) < b.Nodes() {
		return nil
	}
	if _, err := b.AddEdge(e); err != nil {
		return b.s.errorf(line, "%w", err)
	}
	return nil
}

// link adds an edge, and its other direction if the link has both.
func (b builder) link(line int, e topology.EdgeSpec, both bool) error {
	if err := b.edge(line, e); err != nil || !both {
		return err
	}
	e.From, e.To = e.To, e.From
	return b.edge(line, e)
}
