package format

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// Lines that only one format has, in the order in which they are looked for.
var marks = []struct {
	format Format
	mark   *regexp.Regexp
}{
	{SNDlib, regexp.MustCompile(`^\s*\?SNDlib native format`)},
	// after declarations and comments
	{GraphML, regexp.MustCompile(`^\s*<(?:[\s\S]*<)?graphml[\s/>]`)},
	{SNDlibXML, regexp.MustCompile(`^\s*<(?:[\s\S]*<)?network[\s/>]`)},
	{NodeLink, regexp.MustCompile(`^\s*\{`)},
	{Repetita, regexp.MustCompile(`^\s*NODES\s+\d+`)},
	{Edges, regexp.MustCompile(`(?m)^#! (node|delay) `)},
	{Lab, regexp.MustCompile(`(?m)^topology:`)},
}

// detect tells the format by the content, and only then by the name: .txt and .xml say little.
func detect(f File) Format {
	const enough = 1 << 16 // bytes that are looked at
	head := bytes.TrimPrefix(f.Text[:min(len(f.Text), enough)], []byte("\ufeff"))
	for _, m := range marks {
		if m.mark.Match(head) {
			return m.format
		}
	}
	if base := path.Base(f.Name); strings.HasSuffix(base, "weights.intra") ||
		strings.HasSuffix(base, "latencies.intra") {
		return Rocketfuel
	}
	if named := OfName(f.Name); named != "" && named != SNDlib && named != SNDlibXML {
		return named
	}
	if looksLikeEdges(head) {
		return Edges
	}
	return ""
}

// looksLikeEdges wants two words or more on the first line that is not a comment.
func looksLikeEdges(head []byte) bool {
	for text := range strings.Lines(string(head)) {
		text, _, _ = strings.Cut(text, "#")
		if words := strings.Fields(text); len(words) > 0 {
			return len(words) >= 2 && !strings.ContainsAny(text, "<>{}()[]") || len(words) >= 3 &&
				(words[1] == "->" || words[1] == "--")
		}
	}
	return false
}
