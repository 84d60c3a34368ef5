package lab

import (
	"fmt"
	"slices"
	"strings"
)

// maxSocketPath is the longest path of a Unix socket (sun_path, unix(7)).
const maxSocketPath = 107

// wordsOf returns the function that writes, in the strings of a node's
// description, what is known only when the lab is up.
func wordsOf(l *Lab, node *Node, self string) func(string) string {
	words := strings.NewReplacer(
		"{lab}", l.Name,
		"{node}", node.Name,
		"{dir}", node.Dir,
		"{bpf}", node.BPF,
		"{cgroup}", node.Cgroup,
		"{self}", self,
	)
	return words.Replace
}

// settle returns the description of a node with all words written out, and
// notes in the node what follows from it.
func settle(l *Lab, node *Node, spec NodeSpec, opts Options) (NodeSpec, error) {
	words := wordsOf(l, node, opts.Self)
	// The caller's Spec stays as it is: it may be brought up again.
	spec.Files, spec.Exec, spec.Processes = slices.Clone(spec.Files), slices.Clone(spec.Exec),
		slices.Clone(spec.Processes)
	for i, file := range spec.Files {
		spec.Files[i].Content = words(file.Content)
	}
	for i, command := range spec.Exec {
		spec.Exec[i] = command.rewrite(words)
	}
	for i, process := range spec.Processes {
		process.Command = process.Command.rewrite(words)
		process.Env = rewriteAll(process.Env, words)
		process.Ready.Target = words(process.Ready.Target)
		spec.Processes[i] = process
	}
	if spec.Sextant != "" {
		if err := settleAgent(node, &spec, opts, words); err != nil {
			return spec, err
		}
	}
	for _, process := range spec.Processes {
		node.Processes = append(node.Processes, process.Name)
	}
	return spec, nil
}

// settleAgent adds the Sextant agent as the first process of a node.
func settleAgent(node *Node, spec *NodeSpec, opts Options, words func(string) string) error {
	spec.Sextant = words(spec.Sextant)
	if opts.CheckNode != nil {
		if err := opts.CheckNode(spec.Name, []byte(spec.Sextant)); err != nil {
			return fmt.Errorf("the configuration of node %s: %w", spec.Name, err)
		}
	}
	c, err := readClaims(spec.Sextant)
	if err != nil {
		return fmt.Errorf("the configuration of node %s: %w", spec.Name, err)
	}
	node.Socket = c.API.Socket
	if len(node.Socket) > maxSocketPath {
		return fmt.Errorf("the API socket of node %s is %s: %d characters, and Linux takes %d; "+
			"shorten the name of the lab or the node",
			spec.Name, node.Socket, len(node.Socket), maxSocketPath)
	}
	agent := ProcessSpec{
		Name:    agentProcess,
		Command: Command{Args: rewriteAll(opts.Agent, words)},
		Ready:   Ready{ReadyHTTP, node.Socket},
	}
	spec.Processes = append([]ProcessSpec{agent}, spec.Processes...)
	spec.Files = append(spec.Files, File{Name: nodeFile, Content: spec.Sextant})
	return nil
}
