package soak

import (
	"fmt"
	"strings"

	"sextant/lab"
)

// Lines of examples/soak.yaml, and what stands there if segment routing headers are signed.
var (
	edgeSigns = strings.NewReplacer("  encapsulation: carrier\n", `  encapsulation: srh
  hmac: {id: 7, keyFile: "{dir}/hmac.7"}
`)
	hostVerifies = strings.NewReplacer("\nhost:\n", `
host:
  hmac: {require: srh, keys: [{id: 7, keyFile: "{dir}/hmac.7"}]}
`)
	keyFile = lab.File{Name: "hmac.7", Secret: true,
		Content: "8c1d0f3a5b7e92461f8e5b2a96c047d3b8e10f7a5d34c9620a4b6c8d1e2f3051\n"}
)

// sign has the edge send segment routing headers and sign them, and hosts take no others.
func sign(spec *lab.Spec) error {
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		text := hostVerifies.Replace(edgeSigns.Replace(n.Sextant))
		if n.Sextant == "" {
			continue
		}
		if text == n.Sextant {
			return fmt.Errorf("sign what node %s of %s sends: its configuration has no place for "+
				"that", n.Name, spec.File)
		}
		n.Sextant, n.Files = text, append(n.Files, keyFile)
	}
	return nil
}
