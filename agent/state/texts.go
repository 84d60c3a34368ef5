package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// The text of a node with thousands of services has megabytes, and a change touches one service. A
// large text is in a file of its own, and state and history have what differs from it: such files
// are written whole before they are named, and never changed.

// Bounds of large texts: from how many octets on one is large, which share of a text may differ
// from one that has a file, and how many of these are kept in memory.
const (
	leastLarge      = 256 << 10
	shareOfEdits    = 16
	mostWholeInHand = 2 // what runs, and what ran before it was tried
)

// Text is a configuration as a file has it: whole, or what differs from another one.
type Text struct {
	Node string      `json:"node,omitempty"` // YAML
	Of   *difference `json:"of,omitempty"`   // in place of Node
}

// difference is how a text is made of another one.
type difference struct {
	File  string `json:"file"`  // of the other one
	Sum   uint32 `json:"sum"`   // of the text: CRC-32C
	Edits []edit `json:"edits"` // in the order of their places
}

// edit puts a text in place of octets of another one.
type edit struct {
	At  int    `json:"at"`
	Cut int    `json:"cut"`
	Put string `json:"put"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(text string) uint32 {
	return crc32.Checksum(unsafe.Slice(unsafe.StringData(text), len(text)), castagnoli) // no copy
}

// differenceTo is how another text differs; nil: in too much. Items of a list of the edge, such as
// its services, are compared one by one, as long as none comes or goes between two that differ.
func (w wholeText) differenceTo(text string) *difference {
	d := &difference{File: w.file, Sum: sumOf(text)}
	a, b := w.text, text
	end := commonEnd(a, b)
	a, b = a[:len(a)-end], b[:len(b)-end]
	octets := 0
	for at := 0; ; {
		same := commonBegin(a, b)
		a, b, at = a[same:], b[same:], at+same
		if a == "" && b == "" {
			return d
		}
		cut, put := itemEnd(a), itemEnd(b)
		d.Edits = append(d.Edits, edit{at, cut, b[:put]})
		if octets += put; octets > len(text)/shareOfEdits {
			return nil
		}
		a, b, at = a[cut:], b[put:], at+cut
	}
}

// commonBegin is how many octets of whole items two texts have in common at their beginnings.
func commonBegin(a, b string) (n int) {
	const some = 4 << 10
	for n+some <= min(len(a), len(b)) && a[n:n+some] == b[n:n+some] {
		n += some
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return n
	}
	return strings.LastIndex(a[:n], beginOfItem) + 1
}

// commonEnd is the same at their ends, of whole lines.
func commonEnd(a, b string) (n int) {
	const some = 4 << 10
	for n+some <= min(len(a), len(b)) &&
		a[len(a)-n-some:len(a)-n] == b[len(b)-n-some:len(b)-n] {
		n += some
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	line := strings.IndexByte(a[len(a)-n:], '\n') + 1
	if line == 0 {
		return 0
	}
	return n - line
}

// beginOfItem is one of a list of the edge, in a canonical text, and the end of the line before.
const beginOfItem = "\n    - "

// itemEnd is where the next item of a list of the edge begins, or the text ends.
func itemEnd(text string) int {
	if next := strings.Index(text, beginOfItem); next >= 0 {
		return next + 1
	}
	return len(text)
}

// of makes the text of the other one.
func (d *difference) of(other string) (string, error) {
	var text strings.Builder
	text.Grow(len(other))
	at := 0
	for _, e := range d.Edits {
		if e.At < at || e.Cut < 0 || e.At > len(other)-e.Cut {
			return "", errors.New("what differs has places that are not there")
		}
		text.WriteString(other[at:e.At])
		text.WriteString(e.Put)
		at = e.At + e.Cut
	}
	text.WriteString(other[at:])
	if sumOf(text.String()) != d.Sum {
		return "", fmt.Errorf("with %s it has another check sum", d.File)
	}
	return text.String(), nil
}

// texts has the folder of large texts.
type texts struct {
	dir   string
	whole []wholeText // some of those in the folder, the latest last
	last  string      // that was shortened, and how; its file was there
	short Text
}

type wholeText struct{ file, text string }

func (t *texts) path(file string) string { return filepath.Join(t.dir, file) }

// size is that of a text's file.
func (t *texts) size(file string) int {
	info, err := os.Stat(t.path(file))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// shorten returns a text as a file is to have it. All that it needs is on the disk then.
func (t *texts) shorten(text string) (Text, error) {
	if len(text) < leastLarge {
		return Text{Node: text}, nil
	}
	if text == t.last && exists(t.path(t.short.Of.File)) {
		return t.short, nil
	}
	for _, w := range slices.Backward(t.whole) {
		if !exists(t.path(w.file)) {
			continue
		}
		if d := w.differenceTo(text); d != nil {
			t.last, t.short = text, Text{Of: d}
			return t.short, nil
		}
	}
	sum := sha256.Sum256([]byte(text))
	w := wholeText{hex.EncodeToString(sum[:8]) + ".yaml", text}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return Text{}, err
	}
	if err := WriteFile(t.path(w.file), []byte(text)); err != nil {
		return Text{}, err
	}
	t.whole = append(t.whole[max(0, len(t.whole)+1-mostWholeInHand):], w)
	t.last, t.short = text, Text{Of: w.differenceTo(text)}
	return t.short, nil
}

// shortenKept is shorten for all texts of a state.
func (t *texts) shortenKept(k Kept) (_ Kept, err error) {
	if u := k.Unconfirmed; u != nil {
		short := *u
		if short.Text, err = t.shorten(u.Node); err != nil {
			return k, err
		}
		k.Unconfirmed = &short
	}
	k.Text, err = t.shorten(k.Node)
	return k, err
}

// restore makes a text whole.
func (t *texts) restore(x *Text) error {
	if x.Of == nil {
		return nil
	}
	other, err := t.read(x.Of.File)
	if err == nil {
		other, err = x.Of.of(other)
	}
	if err == nil {
		*x = Text{Node: other}
	}
	return err
}

// read reads a text of the folder.
func (t *texts) read(file string) (string, error) {
	for _, w := range t.whole {
		if w.file == file {
			return w.text, nil
		}
	}
	if filepath.Base(file) != file {
		return "", fmt.Errorf("%q is no file of %s", file, t.dir)
	}
	text, err := os.ReadFile(t.path(file))
	if err == nil && len(t.whole) < mostWholeInHand {
		t.whole = slices.Insert(t.whole, 0, wholeText{file, string(text)})
	}
	return string(text), err
}

// restoreKept is restore for all texts of a state.
func (t *texts) restoreKept(k *Kept) error {
	err := t.restore(&k.Text)
	if k.Unconfirmed != nil {
		err = errors.Join(err, t.restore(&k.Unconfirmed.Text))
	}
	return err
}

// sweep removes what neither the history names nor a file of the state, be it damaged.
func (t *texts) sweep(state string, history []PastConfig) {
	files, err := os.ReadDir(t.dir)
	if err != nil {
		return // mostly, as there are no large texts
	}
	named, err := readAll(state)
	if err != nil {
		return
	}
	for _, f := range files {
		past := slices.ContainsFunc(history, func(p PastConfig) bool {
			return p.Of != nil && p.Of.File == f.Name()
		})
		if !past && !bytes.Contains(named, []byte(`"`+f.Name()+`"`)) {
			_ = os.Remove(t.path(f.Name())) // what stays is swept again
		}
	}
}

// readAll reads all files whose paths begin so.
func readAll(begin string) (all []byte, err error) {
	dir, prefix := filepath.Split(begin)
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if err != nil || !strings.HasPrefix(f.Name(), prefix) {
			continue
		}
		var text []byte
		text, err = os.ReadFile(filepath.Join(dir, f.Name()))
		all = append(all, text...)
	}
	return all, err
}
