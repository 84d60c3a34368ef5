package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/rpmpack"
)

// scriptlets are what RPM runs, by the folder's file names.
const scriptlets = "packaging/rpm"

// ours are the folders that the package owns, with all below; the others belong to the system.
var ours = []string{"etc/sextant", "usr/share/sextant", "usr/share/doc/sextant"}

func isOurs(folder string) bool {
	return slices.ContainsFunc(ours, func(root string) bool {
		return strings.HasPrefix(folder+"/", root+"/")
	})
}

// licences of the program, its eBPF objects and its console, as an SPDX expression.
const licences = "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause) AND MIT"

func packRPM(j job) ([]byte, error) {
	entries, err := readTree(j.stages[0].folder)
	if err != nil {
		return nil, err
	}
	r, err := newRPM(j)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.mode.IsDir() || isOurs(e.name) {
			r.AddFile(file(e, j))
		}
	}
	for name, add := range map[string]func(string){
		"post": r.AddPostin, "preun": r.AddPreun, "postun": r.AddPostun,
	} {
		text, err := os.ReadFile(filepath.Join(scriptlets, name))
		if err != nil {
			return nil, fmt.Errorf("read scriptlet: %w", err)
		}
		add(string(text))
	}
	if j.key != "" {
		r.SetPGPSigner(func(signed []byte) ([]byte, error) { return sign(j.key, signed) })
	}
	var packed bytes.Buffer
	if err := r.Write(&packed); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func newRPM(j job) (*rpmpack.RPM, error) {
	return rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "sextant", Version: strings.ReplaceAll(j.version, "-", "~"), Release: "1",
		Arch:    map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[j.stages[0].architecture],
		OS:      "linux",
		Summary: "SRv6 load balancer",
		Description: "Sextant spreads connections over servers without keeping state per flow.\n" +
			"Its data plane is eBPF and needs Linux 6.1 or newer. This package holds the agent\n" +
			"of a node, the commands, and a lab in network namespaces.",
		Licence: licences, Vendor: "Sextant", Packager: "Sextant",
		Group: "System Environment/Daemons", BuildHost: "localhost", BuildTime: j.time,
		Compressor: "zstd",
	})
}

func file(e entry, j job) rpmpack.RPMFile {
	f := rpmpack.RPMFile{
		Name: "/" + e.name, Body: e.body, Mode: uint(e.mode.Perm()), Owner: "root", Group: "root",
		MTime: uint32(j.time.Unix()),
	}
	const directory = 0o40000 // S_IFDIR
	switch {
	case e.mode.IsDir():
		f.Mode |= directory
	case strings.HasPrefix(e.name, "etc/"):
		f.Type = rpmpack.ConfigFile | rpmpack.NoReplaceFile
	case strings.HasPrefix(e.name, "usr/share/doc/"):
		f.Type = rpmpack.DocFile
	}
	return f
}

// sign is the binary signature by a key of gpg, whose agent has the pass phrase.
func sign(key string, signed []byte) ([]byte, error) {
	gpg := exec.Command("gpg", "--batch", "--local-user", key, "--detach-sign")
	gpg.Stdin = bytes.NewReader(signed)
	var faults bytes.Buffer
	gpg.Stderr = &faults
	signature, err := gpg.Output()
	if err != nil {
		return nil, fmt.Errorf("sign with key %s: gpg: %w: %s", key, err, faults.String())
	}
	return signature, nil
}
