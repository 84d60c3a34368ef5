// Package examples holds lab files that are part of the program: those that its help and its
// demonstration use.
package examples

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names are those of all labs, in order. It panics if the pattern, a constant, is none.
func Names() []string {
	found, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err)
	}
	for i, name := range found {
		found[i] = strings.TrimSuffix(name, ".yaml")
	}
	return found
}

// Lab is the file of a lab, by its name.
func Lab(name string) (text []byte, there bool) {
	text, err := files.ReadFile(name + ".yaml")
	return text, err == nil
}

// Summary is the first sentence of a lab's file.
func Summary(text []byte) string {
	var words []string
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
		if strings.HasSuffix(words[len(words)-1], ".") {
			break
		}
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	return strings.TrimSuffix(sentence, ".")
}

// Hunting is a lab of a client, a router, an edge and twelve servers of two cores each.
//
//go:embed hunting.yaml
var Hunting []byte

// Apache is a lab of twelve Apache servers of a tenth of a core each, whose scoreboards feed the
// acceptance policy.
//
//go:embed apache.yaml
var Apache []byte

// Churn is a lab of a client, a router, an edge and eight servers that every policy serves, a VIP
// for each.
//
//go:embed churn.yaml
var Churn []byte

// Protection is a lab of two hosts, a router in front of each, and two paths between the routers
// that delay and lose packets.
//
//go:embed protection.yaml
var Protection []byte

// Soak is a lab of a client, a router, an edge and four servers, for churn that goes on for long.
//
//go:embed soak.yaml
var Soak []byte

// Protect is a lab of four ways of three links between two routers, the first of which protects
// traffic.
//
//go:embed protect.yaml
var Protect []byte

// Copies is a lab of two paths to two servers, which lose one packet in a hundred.
//
//go:embed copies.yaml
var Copies []byte

// Together is a lab of two racks of four servers with two paths to each, of which one is congested
// while others send.
//
//go:embed together.yaml
var Together []byte

// Sites is a lab of two sites with an edge, four servers and two links each.
//
//go:embed sites.yaml
var Sites []byte

// Parallel is a lab of a client, a server, and seven links between two routers, the first of which
// lets sources choose among them.
//
//go:embed parallel.yaml
var Parallel []byte

// Fabric is a lab of four hosts, four leaves and two spines, small enough for the packet simulator
// to be compared with real TCP.
//
//go:embed fabric.yaml
var Fabric []byte
