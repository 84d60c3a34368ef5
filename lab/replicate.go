package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"sextant/packet/lists"
)

// indexWord is "{i}", the number of a replica, or "{i:02x}" with the format of
// Go's fmt for it. The YAML library writes an unquoted {i}, which is a mapping,
// as "{i:}".
var indexWord = regexp.MustCompile(`\{i(?::(0?[0-9]{0,2}[dxX])?)?\}`)

// withIndex writes the number of a replica in place of every {i}.
func withIndex(index int) func(string) string {
	return func(text string) string {
		if !strings.Contains(text, "{i") {
			return text
		}
		return indexWord.ReplaceAllStringFunc(text, func(word string) string {
			format := indexWord.FindStringSubmatch(word)[1]
			if format == "" {
				return strconv.Itoa(index)
			}
			return fmt.Sprintf("%"+format, index)
		})
	}
}

// rewrite returns the node with f applied to all its strings.
func (n nodeDoc) rewrite(f func(string) string) nodeDoc {
	n.Addresses = rewriteAll(n.Addresses, f)
	n.VIPs = rewriteAll(n.VIPs, f)
	n.Announce = rewriteAll(n.Announce, f)
	n.Local = rewriteAll(n.Local, f)
	n.Sysctls = rewriteMap(n.Sysctls, f)
	n.Files = rewriteMap(n.Files, f)
	n.Sextant = yaml.RawMessage(f(string(n.Sextant)))
	exec := lists.Map(n.Exec, func(command Command) Command {
		return command.rewrite(f)
	})
	n.Exec = exec
	processes := make([]processDoc, len(n.Processes))
	for i, p := range n.Processes {
		processes[i] = processDoc{f(p.Name), p.Command.rewrite(f), rewriteMap(p.Env, f), f(p.Ready),
			p.Restart}
	}
	n.Processes = processes
	return n
}

func rewriteAll(texts []string, f func(string) string) []string {
	return lists.Map(texts, f)
}

func rewriteMap(texts map[string]string, f func(string) string) map[string]string {
	result := make(map[string]string, len(texts))
	for key, text := range texts {
		result[f(key)] = f(text)
	}
	return result
}

// counts says how often each replicated node is there.
type counts map[string]int

// of returns the replicas that the endpoints of a link mention as "NAME{i}":
// the highest index, or 0 if they mention none.
func (c counts) of(endpoints []string) (count int, names []string) {
	for _, endpoint := range endpoints {
		node, _, _ := strings.Cut(endpoint, ":")
		name, replicated := strings.CutSuffix(node, "{i}")
		if n := c[name]; replicated && n > 0 {
			count = max(count, n)
			names = append(names, name)
		}
	}
	return count, names
}
