package access

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"

	"sextant/agent/api"
)

// Context is a daemon elsewhere that commands can talk to by a name. Certificates and key are texts
// in PEM, so that a file of contexts needs no other one.
type Context struct {
	Name        string `yaml:"name"`
	Daemon      string `yaml:"daemon"` // agent or controller
	Address     string `yaml:"address"`
	Token       string `yaml:"token"`
	CA          string `yaml:"ca,omitempty"`
	Certificate string `yaml:"certificate,omitempty"`
	Key         string `yaml:"key,omitempty"`
	// Current is the one of its daemon that commands talk to if they are not told.
	Current bool `yaml:"current,omitempty"`
}

// The daemons of contexts.
const (
	Agent      = "agent"
	Controller = "controller"
)

// Remote is how the daemon of a context is reached.
func (c Context) Remote() api.Remote {
	return api.Remote{Address: c.Address, Token: c.Token, CA: []byte(c.CA),
		Certificate: []byte(c.Certificate), Key: []byte(c.Key)}
}

// contexts is how a file has them.
type contexts struct {
	Contexts []Context `yaml:"contexts"`
}

// ParseContexts reads a file of contexts.
func ParseContexts(text []byte) ([]Context, error) {
	var file contexts
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return nil, err
	}
	if err := check(file.Contexts); err != nil {
		return nil, err
	}
	return file.Contexts, nil
}

// check says what is wrong with contexts, and rids texts in PEM of what is around their blocks.
func check(list []Context) error {
	for i := range list {
		c := &list[i]
		switch {
		case c.Name == "" || c.Address == "" || c.Token == "":
			return fmt.Errorf("contexts[%d]: name, address and token are needed", i)
		case strings.ContainsFunc(c.Name+c.Address+c.Token, unprintable):
			return fmt.Errorf("contexts[%d]: name, address or token has characters that can't be "+
				"printed", i)
		case c.Daemon != Agent && c.Daemon != Controller:
			return fmt.Errorf("contexts[%d]: unknown daemon %.20q; write agent or controller",
				i, c.Daemon)
		case slices.ContainsFunc(list[:i], func(o Context) bool { return o.Name == c.Name }):
			return fmt.Errorf("contexts[%d]: %.80q is there twice; delete one", i, c.Name)
		}
		for key, text := range map[string]*string{"ca": &c.CA, "certificate": &c.Certificate,
			"key": &c.Key} {
			if blocks := blocksOf(*text); blocks != "" || *text == "" {
				*text = blocks
				continue
			}
			return fmt.Errorf("contexts[%d]: %s has nothing in PEM, which begins with -----BEGIN",
				i, key)
		}
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// blocksOf is a text's blocks in PEM, without what is around them and their headers.
func blocksOf(text string) string {
	var blocks []byte
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return string(blocks)
		}
		if !strings.ContainsFunc(block.Type, unprintable) {
			blocks = append(blocks, pem.EncodeToMemory(&pem.Block{Type: block.Type,
				Bytes: block.Bytes})...)
		}
	}
}

// ReadContexts reads a file of contexts; one that is not there has none. It has tokens, so that it
// must not be open to other users.
func ReadContexts(name string) ([]Context, error) {
	text, err := readSecret("contexts", name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := ParseContexts(text)
	if err != nil {
		return nil, fmt.Errorf("contexts %s: %w", name, err)
	}
	return list, nil
}

// WriteContexts replaces a file of contexts, which its owner alone can read, in one step.
func WriteContexts(name string, list []Context) error {
	if err := check(list); err != nil {
		return err
	}
	text, err := yaml.Marshal(contexts{list})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("change contexts: %w", err)
	}
	return replace(name, string(text))
}

// ContextNamed finds a context; the error has api.NotFound.
func ContextNamed(list []Context, name string) (int, error) {
	i := slices.IndexFunc(list, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return 0, &api.Error{Code: api.NotFound, Message: fmt.Sprintf("there is no context %q; "+
			"sextant context list shows them", name)}
	}
	return i, nil
}
