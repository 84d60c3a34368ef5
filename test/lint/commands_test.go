package lint

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestDocumentedCommandsExist(t *testing.T) { check(t, "commands", commands) }

var (
	makeTarget = regexp.MustCompile(`(?m)^([A-Za-z][A-Za-z0-9_-]*):`)
	makeCall   = regexp.MustCompile(`(?:^|[;&|$])\s*(?:sudo )?make((?: +[A-Za-z0-9_./=-]+)+)`)
	// not a flag, a number or a variable
	targetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
)

// commands wants a README, and a target in the Makefile for each `make target` that a document
// shows as code.
func commands(r *repository) []finding {
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllSubmatch(r.texts["Makefile"], -1) {
		targets[string(match[1])] = true
	}
	var findings []finding
	if !r.has("README.md") {
		findings = append(findings, finding{"README.md", 1, "there is no README.md", "write it"})
	}
	for _, name := range r.documents() {
		for _, line := range markdownLines(r, name) {
			for _, target := range makeTargets(line) {
				if !targets[target] {
					findings = append(findings, finding{name, line.number,
						"make " + target + " has no target in the Makefile",
						"add the target, or correct the document"})
				}
			}
		}
	}
	return findings
}

// makeTargets lists the targets of the make commands that a line shows as code.
func makeTargets(line markdownLine) []string {
	code := []string{line.text}
	if !line.inBlock {
		code = nil
		for _, span := range codeSpan.FindAllStringSubmatch(line.text, -1) {
			code = append(code, span[1])
		}
	}
	var targets []string
	for _, text := range code {
		text, _, _ = strings.Cut(text, "#")
		for _, call := range makeCall.FindAllStringSubmatch(text, -1) {
			for word := range strings.FieldsSeq(call[1]) {
				if targetName.MatchString(word) {
					targets = append(targets, word)
				}
			}
		}
	}
	return targets
}

func TestLinksLead(t *testing.T) { check(t, "links", links) }

var markdownLink = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: +"[^"]*")?\)|^\[[^]]+\]: +(\S+)`)

// links wants a file, and a heading if one is named, behind each relative link of a document.
func links(r *repository) []finding {
	var findings []finding
	for _, name := range r.documents() {
		for _, line := range markdownLines(r, name) {
			if line.inBlock {
				continue
			}
			text := codeSpan.ReplaceAllString(line.text, "")
			for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
				target := match[1] + match[2]
				if what := r.brokenLink(name, target); what != "" {
					findings = append(findings, finding{name, line.number,
						"the link " + target + " leads nowhere: " + what,
						"correct it"})
				}
			}
		}
	}
	return findings
}

var absoluteURL = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)

func (r *repository) brokenLink(from, target string) string {
	if absoluteURL.MatchString(target) {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	name := from
	if file != "" {
		name = path.Join(path.Dir(from), file)
	}
	switch {
	case strings.HasPrefix(file, "/"), strings.HasPrefix(name, "../"):
		return "it leaves the repository"
	case !r.has(name):
		return "there is no " + name
	case anchor != "" && path.Ext(name) == ".md" && !headings(r, name)[anchor]:
		return name + " has no such heading"
	}
	return ""
}

var (
	heading     = regexp.MustCompile(`^#{1,6} +(.+?)(?: +#+)?$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// headings are the anchors that a forge makes of a document's headings.
func headings(r *repository, name string) map[string]bool {
	anchors := map[string]bool{}
	for _, line := range markdownLines(r, name) {
		if match := heading.FindStringSubmatch(line.text); match != nil && !line.inBlock {
			anchor := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
			anchors[strings.ReplaceAll(anchor, " ", "-")] = true
		}
	}
	return anchors
}

type markdownLine struct {
	number  int
	text    string
	inBlock bool // of code: fenced, or indented after an empty line
}

func markdownLines(r *repository, name string) []markdownLine {
	var lines []markdownLine
	fenced, indented, empty := false, false, true
	for i, text := range linesOf(r, name) {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
		}
		indent := strings.HasPrefix(text, "    ") || strings.HasPrefix(text, "\t")
		indented = indent && (indented || empty)
		empty = strings.TrimSpace(text) == ""
		lines = append(lines, markdownLine{i + 1, text, fenced || indented})
	}
	return lines
}

func (r *repository) documents() []string {
	var documents []string
	for _, name := range r.files {
		if path.Ext(name) == ".md" && !inTestdata(name) {
			documents = append(documents, name)
		}
	}
	return documents
}
