package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// kubernetes is the program that an image with it starts: the controller, or the daemon of a node,
// which starts sextant.
const kubernetes = "usr/bin/sextant-kubernetes"

// inImage is what an image holds: the binaries need nothing else.
var inImage = []string{"usr", "usr/bin", "usr/bin/sextant", kubernetes, "usr/share",
	"usr/share/sextant",
	"usr/share/sextant/node.schema.json", "usr/share/doc", "usr/share/doc/sextant",
	"usr/share/doc/sextant/copyright", "etc", "etc/sextant"}

// packImage is an OCI archive: an index with one image for each architecture.
func packImage(j job) ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, s := range j.stages {
		image, err := newImage(j, s)
		if err != nil {
			return nil, fmt.Errorf("image of %s: %w", s.architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{
				Platform: &v1.Platform{OS: "linux", Architecture: s.architecture},
			}})
	}
	return archiveIndex(j, index)
}

// archiveIndex writes the layout of an index that names the index by the version, as a tar file.
func archiveIndex(j job, index v1.ImageIndex) ([]byte, error) {
	folder, err := os.MkdirTemp("", "sextant-image-")
	if err != nil {
		return nil, fmt.Errorf("make folder for the image: %w", err)
	}
	defer os.RemoveAll(folder)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	// A tag has no plus sign.
	tag := strings.ReplaceAll(j.version, "+", "-")
	err = path.AppendIndex(index, layout.WithAnnotations(
		map[string]string{"org.opencontainers.image.ref.name": tag}))
	if err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	entries, err := readTree(folder)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	err = writeTar(&packed, "", entries, j.time)
	return packed.Bytes(), err
}

func newImage(j job, s stage) (v1.Image, error) {
	layer, err := newLayer(j, s.folder)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: j.time}, CreatedBy: "make release"}}); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, configFile(j, s, image))
}

func configFile(j job, s stage, image v1.Image) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", s.architecture, v1.Time{Time: j.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/sextant"},
		Cmd:        []string{"agent", "-f", "/etc/sextant/node.yaml"},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Sextant",
			"org.opencontainers.image.version":  j.version,
			"org.opencontainers.image.licenses": licences,
		},
	}
	if _, err := os.Stat(filepath.Join(s.folder, kubernetes)); err == nil {
		config.Config.Entrypoint, config.Config.Cmd = []string{"/" + kubernetes}, nil
		config.Config.Labels["org.opencontainers.image.title"] = "Sextant for Kubernetes"
	}
	return config
}

func newLayer(j job, folder string) (v1.Layer, error) {
	all, err := readTree(folder)
	if err != nil {
		return nil, err
	}
	var kept []entry
	for _, e := range all {
		if slices.Contains(inImage, e.name) {
			kept = append(kept, e)
		}
	}
	var files bytes.Buffer
	if err := writeTar(&files, "", kept, j.time); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
