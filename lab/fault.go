package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sextant/packet/lists"
)

// Fault is one thing that is wrong with a lab file, and how to mend it.
type Fault struct {
	File         string // "" for a Spec that was not read from a file
	Line, Column int    // from 1; 0 without a file
	Path         string // where, like "topology.nodes.web.addresses[0]"
	Text         string // what is wrong
	Mend         string // what would make it right
	Excerpt      string // the line and a caret below the column; "" if there is none
}

// Error writes "file:line:column: what is wrong; what would mend it", and the
// excerpt below.
func (f *Fault) Error() string {
	where := f.Path
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	text := fmt.Sprintf("%s: %s; %s", where, f.Text, f.Mend)
	if f.Excerpt != "" {
		text += "\n" + f.Excerpt
	}
	return text
}

// Faults are all that was found wrong, in the order of their places.
type Faults []*Fault

// Error writes one fault after the other.
func (f Faults) Error() string {
	texts := lists.Map(f, (*Fault).Error)
	return strings.Join(texts, "\n")
}

// Unwrap returns the faults.
func (f Faults) Unwrap() []error {
	return lists.Map(f, func(fault *Fault) error { return fault })
}

// report collects faults. Of several at the same path it keeps the first:
// a replicated node has each of its faults many times.
type report struct {
	faults Faults
	paths  map[string]bool
}

func (r *report) add(path, mend, format string, args ...any) {
	if r.paths[path] {
		return
	}
	if r.paths == nil {
		r.paths = map[string]bool{}
	}
	r.paths[path] = true
	r.faults = append(r.faults, &Fault{Path: path, Text: fmt.Sprintf(format, args...), Mend: mend})
}

// err returns the faults with their places in the file, nil if there are none.
func (r *report) err(s *source) error {
	if len(r.faults) == 0 {
		return nil
	}
	for _, fault := range r.faults {
		if fault.Line == 0 {
			s.locate(fault)
		}
	}
	slices.SortStableFunc(r.faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.faults
}

const enumerated = 10

// enumerate lists names, the first few of many.
func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "),
		len(names)-enumerated)
}
