package lint

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The eBPF programs are offered under both licences, and the kernel is told "Dual BSD/GPL".
const bpfLicence = "// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"

func TestLicenceOfC(t *testing.T) { check(t, "licence", licences) }

func licences(r *repository) []finding {
	var findings []finding
	for _, name := range r.files {
		if kind := path.Ext(name); !strings.HasPrefix(name, "bpf/") || kind != ".c" &&
			kind != ".h" {
			continue
		}
		if line, _, _ := strings.Cut(string(r.texts[name]), "\n"); line != bpfLicence {
			findings = append(findings, finding{name, 1, "the licence is not on the first line",
				"make it " + bpfLicence})
		}
	}
	return findings
}

// Places that exist on one machine or in one network only.
var (
	machinePath = regexp.MustCompile(
		`(^|[^A-Za-z0-9_./*)}-])/(work|root|Users/[a-z]+|home/[a-z]+)(/|\b)`)
	scratchPath = regexp.MustCompile(`(^|[^A-Za-z0-9_./*)}-])/(var/)?tmp/`)
	registry    = regexp.MustCompile(
		`\b(proxy|sum)\.golang\.org|\bgoproxy\.[a-z]+|\bregistry\.npmjs\.org|\bpypi\.org` +
			`|\bfiles\.pythonhosted\.org|\bcrates\.io|\brepo1?\.maven\.(apache\.)?org|\b(deb|security)\.debian\.org`)
)

func TestNoPlaceOfOneMachine(t *testing.T) { check(t, "places", places) }

// places finds paths of a machine and hosts of package registries in all files, compiled objects
// too. Tests may name paths, for they check what is done with them.
func places(r *repository) []finding {
	var findings []finding
	for _, name := range r.files {
		if strings.HasPrefix(name, "test/lint/") || isForeign(name) {
			continue
		}
		binary := isBinary(r.texts[name])
		for i, line := range linesOf(r, name) {
			what, mend := placeIn(line, isTest(name) || inTestdata(name))
			if what == "" {
				continue
			}
			if binary {
				findings = append(findings, finding{name, 1, what,
					"build it so that it does not depend on where"})
				break
			}
			findings = append(findings, finding{name, i + 1, what, mend})
		}
	}
	return findings
}

func placeIn(line string, test bool) (what, mend string) {
	if match := machinePath.FindString(line); match != "" && !test {
		return "a path of one machine in " + strconv.Quote(match),
			"make it relative, or an argument"
	}
	if match := scratchPath.FindString(line); match != "" && !test {
		return "a fixed place for scratch files in " + strconv.Quote(match),
			"ask os.MkdirTemp or mktemp for one"
	}
	if match := registry.FindString(line); match != "" {
		return "the registry " + match, "leave the choice to the tools' own settings"
	}
	return "", ""
}
