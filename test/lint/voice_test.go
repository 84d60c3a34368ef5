package lint

import (
	"path"
	"strings"
	"testing"
)

// phrases that the project's voice does not use, in lower case, and what to write: a machine part
// is the subject, its action the verb, one thing has one name.
var phrases = map[string]string{
	"of before":           "write previous, or earlier",
	"came about":          "name the cause: established, computed",
	"comes about":         "name the cause: established, computed",
	"in vain":             "write failed, or without effect",
	"is content with":     "say what is enough",
	"somebody":            "name the part: a host, a process, an operator",
	"anybody":             "name the part: a host, a process, an operator",
	"let go of":           "write release, close or remove",
	"lets go of":          "write releases, closes or removes",
	"thinks":              "machines assume",
	"believes":            "machines trust",
	" hears ":             "machines learn, or are told",
	"one thing at a time": "say what runs after what",
	"whoever":             "name the part: each host that, from any process",
	"word for word":       "write to the letter, or literally",
	"to and fro":          "write in both directions",
	"without a word":      "write without closing, or without a signal",
	"afresh":              "write again, or without state",
	"begin anew":          "write start again",
	"begins anew":         "write starts again",
	"in the place of":     "write in place of, or say that one replaces the other",
	"past owner":          "write previous owner",
	"chains of the past":  "write earlier chains",
	"knows nothing":       "say what is absent: no entry, no route, no record",
	"know nothing":        "say what is absent: no entry, no route, no record",
	"is believed":         "write is trusted, or accepted",
	"are believed":        "write are trusted, or accepted",
	"nobody is":           "name the part: no host is, no client is",
	"packet of nobody":    "write a packet without a connection",
	"knows better":        "say what decides",
}

// otherVoice are folders whose texts are not judged yet.
var otherVoice = []string{"test/", "sim/", "packet/cflb/", "packet/telemetry/"}

func TestVoice(t *testing.T) { check(t, "voice", voice) }

// voice looks for the phrases in Go, with its help texts and messages, C and documents. What a test
// says of a case is not judged.
func voice(r *repository) []finding {
	var findings []finding
	for _, name := range r.files {
		if !isJudged(name) {
			continue
		}
		text := strings.ToLower(string(r.texts[name]))
		for phrase, mend := range phrases {
			if !strings.Contains(text, phrase) {
				continue
			}
			for i, line := range strings.Split(text, "\n") {
				if strings.Contains(line, phrase) {
					findings = append(findings, finding{name, i + 1,
						"the phrase \"" + strings.TrimSpace(phrase) + "\"", mend})
				}
			}
		}
	}
	return findings
}

func isJudged(name string) bool {
	for _, folder := range otherVoice {
		if strings.HasPrefix(name, folder) {
			return false
		}
	}
	switch path.Ext(name) {
	case ".go", ".c", ".h", ".md":
		return !isTest(name) && !inTestdata(name)
	}
	return false
}
