package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// extension is what makes the files below usr/ a system extension for systemd-sysext: they match
// any distribution, since the binary is static.
const extension = "usr/lib/extension-release.d/extension-release.sextant"

// packArchive is a compressed tar file, all below one folder, that unpacks at / or, as a system
// extension, at /var/lib/extensions/sextant.
func packArchive(j job) ([]byte, error) {
	s := j.stages[0]
	entries, err := readTree(s.folder)
	if err != nil {
		return nil, err
	}
	matches := fmt.Appendf(nil, "ID=_any\nARCHITECTURE=%s\n",
		map[string]string{"amd64": "x86-64", "arm64": "arm64"}[s.architecture])
	entries = append(entries, entry{name: path.Dir(extension), mode: fs.ModeDir | 0o755},
		entry{name: extension, mode: 0o644, body: matches})
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	root := fmt.Sprintf("sextant-%s-linux-%s", j.version, s.architecture)
	if err := writeTar(z, root, entries, j.time); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return packed.Bytes(), nil
}

// An entry is a folder or a file, by its name relative to the root.
type entry struct {
	name string
	mode fs.FileMode
	body []byte
}

// readTree reads all below a folder, in the order of names.
func readTree(folder string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == folder {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{mode: info.Mode()}
		if e.name, err = filepath.Rel(folder, name); err != nil {
			return err
		}
		if !d.IsDir() {
			e.body, err = os.ReadFile(name)
		}
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what is to be packed: %w", err)
	}
	return entries, nil
}

// writeTar writes entries below root, which may be "", as files of root at one time.
func writeTar(w io.Writer, root string, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		header := tar.Header{
			Name: path.Join(root, e.name), Mode: int64(e.mode.Perm()), Size: int64(len(e.body)),
			ModTime: at, Typeflag: tar.TypeReg, Uname: "root", Gname: "root", Format: tar.FormatPAX,
		}
		if e.mode.IsDir() {
			header.Typeflag = tar.TypeDir
			header.Name = strings.TrimSuffix(header.Name, "/") + "/"
		}
		if err := t.WriteHeader(&header); err != nil {
			return fmt.Errorf("write tar: %w", err)
		}
		if _, err := t.Write(e.body); err != nil {
			return fmt.Errorf("write tar: %w", err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("write tar: %w", err)
	}
	return nil
}
