package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/doctor"
	"sextant/config"
)

// part is one file of a support bundle, or why it is missing.
type part struct {
	Name string
	Text []byte
	Err  error
}

func (a *app) supportBundleCommand() *cobra.Command {
	var file, node, bpf string
	cmd := &cobra.Command{
		Use: "support-bundle", Short: "Write configuration, state, counters and " +
			"logs of this node into one archive",
		Long: `Write what a fault report needs into one archive: versions, configuration, status, counters, sizes of
tables, policies and protections with their topology, routes learned by BGP and from other routing software, programs,
kernel features, links, addresses, routes with their shadows and those of the kernel, the doctor's findings, and the
agent's log if systemd keeps it.

Secrets are left out: the configuration comes without them, and "REDACTED" replaces the cluster's secret, and each
password or key that the node file names, wherever they stand. Addresses of servers, routers and clients are in it; of
traffic, only counters.
The archive is listed on stderr.`,
		Example: `  sextant support-bundle
  sextant support-bundle --node /etc/sextant/node.yaml -f bundle.tar.gz`,
		Annotations: seeAlso("sextant doctor", "sextant status"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.supportBundle(cmd, file, node, bpf)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "",
		"archive to write, or - for standard output; named after node and time if none is named")
	nodeFlag(cmd, &node)
	bpfFlag(cmd, &bpf)
	return cmd
}

func (a *app) supportBundle(cmd *cobra.Command, file, nodeFile, bpf string) error {
	node, running, err := a.patient(cmd, nodeFile)
	if err != nil {
		return err
	}
	x := examination{Node: node, BPF: a.bpf(bpf)}
	facts, factsErr := a.examine(x)
	facts.Running = running
	parts := []part{
		{Name: "version.txt", Text: []byte("sextant " + version + "\n")},
		jsonPart("doctor.json")(doctor.Diagnose(node, facts, version), factsErr),
		jsonPart("facts.json")(facts, factsErr),
		configPart(node),
	}
	if running != nil {
		parts = append(parts, a.agentParts(cmd.Context())...)
	}
	parts = append(parts, a.machine(x)...)
	secrets, err := secretsOf(node)
	if err != nil {
		return err
	}
	stamp := time.Now().UTC()
	name := fmt.Sprintf("sextant-%s-%s", node.Name, stamp.Format("20060102T150405Z"))
	return a.writeBundle(cmp.Or(file, name+".tar.gz"), name, stamp, scrub(parts, secrets))
}

func jsonPart(name string) func(value any, err error) part {
	return func(value any, err error) part {
		text, encodeErr := json.MarshalIndent(value, "", "  ")
		return part{name, append(text, '\n'), errors.Join(err, encodeErr)}
	}
}

func configPart(node *config.Node) part {
	text, err := config.Marshal(config.Redact(node))
	return part{"config.yaml", text, err}
}

// agentParts are what the agent tells.
func (a *app) agentParts(ctx context.Context) []part {
	agent := a.lister()
	metrics, err := agent.MetricsText(ctx)
	return []part{
		jsonPart("status.json")(agent.Status(ctx)),
		jsonPart("services.json")(agent.Services(ctx, "", "")),
		jsonPart("counters.json")(agent.Counters(ctx)),
		jsonPart("maps.json")(agent.Maps(ctx)),
		jsonPart("sids.json")(agent.SIDs(ctx)),
		jsonPart("bgp-peers.json")(agent.BGPPeers(ctx)),
		jsonPart("bgp-routes.json")(agent.BGPRoutes(ctx)),
		jsonPart("routes.json")(agent.Routes(ctx)),
		jsonPart("route-sources.json")(agent.RouteSources(ctx)),
		jsonPart("protections.json")(agent.Protections(ctx)),
		jsonPart("topology.json")(agent.Topology(ctx)),
		jsonPart("policies.json")(agent.Policies(ctx)),
		jsonPart("merge.json")(agent.Merge(ctx)),
		{"metrics.txt", metrics, err},
	}
}

// secretsOf are the texts that no bundle may hold: the cluster's secret in the ways in which it can
// be written, passwords and keys.
func secretsOf(node *config.Node) ([][]byte, error) {
	var secrets [][]byte
	add := func(raw []byte) {
		if len(raw) > 0 {
			secrets = append(secrets, raw, []byte(hex.EncodeToString(raw)),
				[]byte(base64.StdEncoding.EncodeToString(raw)))
		}
	}
	var files []string
	if node.SecretFile != "" {
		files = append(files, node.SecretFile)
	} else {
		add(node.Secret[:])
	}
	for _, file := range slices.Concat(files, passwordFiles(node), keyFiles(node)) {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read %s, so that its content stays out of the bundle: %w; "+
				"run as root", file, withoutPath(err))
		}
		word := bytes.TrimSpace(text)
		add(word)
		if raw, err := hex.DecodeString(string(word)); err == nil {
			add(raw)
		}
		for line := range bytes.Lines(
			word) { // a key in PEM may come with its line ends written in another way
			line = bytes.TrimSpace(line)
			if len(line) >= minSecretLine && len(line) < len(word) && !bytes.HasPrefix(line,
				[]byte("-----")) {
				add(line)
			}
		}
	}
	return secrets, nil
}

// minSecretLine is how many characters a line of a file of several must have to be looked for on
// its own: shorter ones are anything.
const minSecretLine = 16

// passwordFiles hold what this node tells others to be let in.
func passwordFiles(node *config.Node) (files []string) {
	if node.Edge != nil && node.Edge.Etcd != nil {
		files = append(files, node.Edge.Etcd.PasswordFile, node.Edge.Etcd.TLS.Key)
	}
	if node.BGP != nil {
		for _, n := range node.BGP.Neighbors {
			files = append(files, n.PasswordFile)
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// keyFiles hold the keys of HMACs, of path selectors and of connection IDs.
func keyFiles(node *config.Node) (files []string) {
	for _, k := range node.HMACKeys() {
		files = append(files, k.KeyFile)
	}
	if node.CFLB != nil {
		files = append(files, node.CFLB.KeyFile)
	}
	if node.Edge == nil {
		return files
	}
	for _, s := range node.Edge.Services {
		for _, q := range s.QUIC.Configs {
			if q.KeyFile != "" {
				files = append(files, q.KeyFile)
			}
		}
	}
	return files
}

// redacted stands where a secret was.
const redacted = "REDACTED"

// scrub takes secrets out of all parts, and out of the reasons why parts are missing.
func scrub(parts []part, secrets [][]byte) []part {
	clean := func(text []byte) []byte {
		for _, secret := range secrets {
			text = bytes.ReplaceAll(text, secret, []byte(redacted))
			text = bytes.ReplaceAll(text, bytes.ToUpper(secret), []byte(redacted))
		}
		return text
	}
	var list []part
	for _, p := range parts {
		if p.Err != nil {
			p.Err = errors.New(string(clean([]byte(p.Err.Error()))))
		}
		list = append(list, part{p.Name, clean(p.Text), p.Err})
	}
	slices.SortFunc(list, func(x, y part) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// writeBundle writes the archive, with a list of its content at its beginning.
func (a *app) writeBundle(file, dir string, stamp time.Time, parts []part) error {
	var manifest strings.Builder
	for _, p := range parts {
		what := plural(uint64(len(p.Text)), "byte")
		if p.Err != nil {
			what = "missing or in part: " + p.Err.Error()
		}
		fmt.Fprintf(&manifest, "%-28s %s\n", p.Name, what)
	}
	out := a.stdout
	if file == "-" && a.terminal {
		return usageErrorf("an archive would garble the terminal; write it to a file, or into a " +
			"pipe")
	}
	if file != "-" {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("write the bundle to %s: %w", file, withoutPath(err))
		}
		defer f.Close()
		out = f
	}
	parts = append([]part{{Name: "manifest.txt", Text: []byte(manifest.String())}}, parts...)
	if err := writeArchive(out, dir, stamp, parts); err != nil {
		return fmt.Errorf("write the bundle to %s: %w", file, err)
	}
	if !a.quiet {
		fmt.Fprint(a.stderr, manifest.String())
	}
	if file != "-" {
		a.say("written to %s", file)
	}
	return nil
}

func writeArchive(out io.Writer, dir string, stamp time.Time, parts []part) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, p := range parts {
		header := &tar.Header{Name: dir + "/" + p.Name, Mode: 0o600, Size: int64(len(p.Text)),
			ModTime: stamp}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(p.Text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
