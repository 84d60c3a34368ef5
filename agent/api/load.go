package api

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sextant/config"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// LoadNode reads a node file, and its secret where that is in a file of its own.
func LoadNode(file string) (*config.Node, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read node file %s: %w; give the path of a file that this user "+
			"can read", file,
			cause(err))
	}
	node, err := config.Parse(file, text)
	if err != nil {
		return nil, err
	}
	return node, ReadSecrets(node)
}

// ReadSecrets fills in what a node file keeps in files of their own.
func ReadSecrets(n *config.Node) error { return errors.Join(readSecret(n), ReadKeys(n)) }

// readSecret fills in the secret of a node whose file points to another one.
func readSecret(n *config.Node) error {
	if n.SecretFile == "" {
		return nil
	}
	text, err := ReadSecretFile(n.SecretFile, anyUser)
	if err != nil {
		return fmt.Errorf("read secretFile %s: %w; make it with: openssl rand -hex 16",
			n.SecretFile, err)
	}
	secret, err := flow.ParseSecret(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("secretFile %s: %w", n.SecretFile, err)
	}
	n.Secret = secret
	return nil
}

// ReadKeys fills in the keys of QUIC services, of HMACs and of path selectors, from their files.
func ReadKeys(n *config.Node) error {
	return errors.Join(readQUICKeys(n), readHMACKeys(n), readCFLBKeys(n))
}

// secretFiles are the files that ReadSecrets reads.
func secretFiles(n *config.Node) map[string]bool {
	files := map[string]bool{n.SecretFile: true}
	if n.CFLB != nil {
		files[n.CFLB.KeyFile] = true
	}
	if n.PathSource != nil {
		files[n.PathSource.KeyFile] = true
	}
	if n.Subflows != nil {
		files[n.Subflows.KeyFile] = true
	}
	for _, k := range n.HMACKeys() {
		files[k.KeyFile] = true
	}
	if n.Edge != nil {
		for _, s := range n.Edge.Services {
			for _, q := range s.QUIC.Configs {
				files[q.KeyFile] = true
			}
		}
	}
	delete(files, "")
	return files
}

func readCFLBKeys(n *config.Node) error {
	var router, source, host error
	if n.CFLB != nil {
		n.CFLB.Key, router = ReadCFLBKey("cflb", n.CFLB.KeyFile)
	}
	if n.PathSource != nil {
		n.PathSource.Key, source = ReadCFLBKey("pathSource", n.PathSource.KeyFile)
	}
	if n.Subflows != nil && n.Subflows.KeyFile != "" {
		n.Subflows.Key, host = ReadCFLBKey("subflows", n.Subflows.KeyFile)
	}
	return errors.Join(router, source, host)
}

// ReadCFLBKey reads a network's key from a file, for that section of a daemon's file.
func ReadCFLBKey(role, file string) (config.CFLBKey, error) {
	text, err := ReadSecretFile(file, anyUser)
	if err != nil {
		return nil, fmt.Errorf("%s: read keyFile %s: %w; make it with: openssl rand -hex 16", role,
			file, err)
	}
	key, err := config.ParseCFLBKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: keyFile %s: %w", role, file, err)
	}
	return key, nil
}

func readHMACKeys(n *config.Node) error {
	for _, k := range n.HMACKeys() {
		text, err := ReadSecretFile(k.KeyFile, anyUser)
		if err != nil {
			return fmt.Errorf(
				"HMAC key %d: read keyFile %s: %w; make it with: openssl rand -hex 32", k.ID,
				k.KeyFile, err)
		}
		if k.Secret, err = srv6.ParseHMACSecret(strings.TrimSpace(string(text))); err != nil {
			return fmt.Errorf("HMAC key %d: keyFile %s: %w", k.ID, k.KeyFile, err)
		}
	}
	return nil
}

func readQUICKeys(n *config.Node) error {
	if n.Edge == nil {
		return nil
	}
	for _, s := range n.Edge.Services {
		for i := range s.QUIC.Configs {
			if err := readQUICKey(&s.QUIC.Configs[i]); err != nil {
				return fmt.Errorf("service %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

func readQUICKey(q *config.QUIC) error {
	if q.KeyFile == "" {
		return nil
	}
	text, err := ReadSecretFile(q.KeyFile, anyUser)
	if err != nil {
		return fmt.Errorf("read keyFile %s: %w; make it with: openssl rand -hex 16", q.KeyFile,
			err)
	}
	if q.Key, err = config.ParseQUICKey(string(text)); err != nil {
		return fmt.Errorf("keyFile %s: %w", q.KeyFile, err)
	}
	return nil
}

// cause leaves the operation and path of a file error out, for the message names them itself.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
