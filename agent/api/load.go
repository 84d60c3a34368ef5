package api

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sextant/config"
	"sextant/flow"
)

// LoadNode reads a node file, and its secret where that is in a file of its own.
func LoadNode(file string) (*config.Node, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read node file %s: %w; give the path of a file that this user can read", file,
			cause(err))
	}
	node, err := config.Parse(file, text)
	if err != nil {
		return nil, err
	}
	return node, readSecret(node)
}

// readSecret fills in the secret of a node whose file points to another one.
func readSecret(n *config.Node) error {
	if n.SecretFile == "" {
		return nil
	}
	text, err := os.ReadFile(n.SecretFile)
	if err != nil {
		return fmt.Errorf("read secretFile %s: %w; make it with: openssl rand -hex 16", n.SecretFile, cause(err))
	}
	secret, err := flow.ParseSecret(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("secretFile %s: %w", n.SecretFile, err)
	}
	n.Secret = secret
	return nil
}

// cause leaves the operation and path of a file error out, for the message names them itself.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
