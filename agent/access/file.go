package access

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// stamp tells one content of a file from another one without reading it.
type stamp struct {
	inode            uint64
	size             int64
	changed, written time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), written: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = sys.Ino, time.Unix(sys.Ctim.Unix())
	}
	return s
}

// watched is a value that is made of files, made again when one of them has changed. It is for any
// number of goroutines.
type watched[T any] struct {
	files []string
	load  func() (T, error)

	mu     sync.Mutex
	stamps []stamp
	loaded bool
	value  T
	err    error
}

// get returns the value, and whether it was made anew.
func (w *watched[T]) get() (value T, anew bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamps := make([]stamp, len(w.files))
	for i, name := range w.files {
		// a file that is not there is a change, too; load says what is wrong with it
		if info, err := os.Stat(name); err == nil {
			stamps[i] = stampOf(info)
		}
	}
	same := w.loaded
	for i := range stamps {
		same = same && stamps[i] == w.stamps[i]
	}
	if !same {
		w.value, w.err = w.load()
		w.stamps, w.loaded, anew = stamps, true, true
	}
	return w.value, anew, w.err
}

// readSecret reads a file that must not be open to other users.
func readSecret(key, name string) ([]byte, error) {
	text, err := api.ReadSecretFile(name, 0o027)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", key, name, err)
	}
	return text, nil
}

func loadTokens(name string) ([]Token, error) {
	text, err := readSecret("tokens", name)
	if err != nil {
		return nil, err
	}
	tokens, err := ParseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("tokens %s: %w", name, err)
	}
	return tokens, nil
}

// ReadTokens reads a file of tokens; one that is not there has none.
func ReadTokens(name string) ([]Token, error) {
	tokens, err := loadTokens(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tokens, err
}

// Header begins a new file of tokens.
const header = "# LABEL ROLE EXPIRY HASH: tokens of the API; sextant token changes this file\n"

// EditTokens changes a file of tokens: it gives edit those that are there, and replaces the file in
// one step by what edit returns. Comments stay. Others who edit it wait meanwhile.
func EditTokens(name string, edit func([]Token) ([]Token, error)) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("change %s: %w", name, err)
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	tokens, err := ReadTokens(name)
	if err != nil {
		return err
	}
	next, err := edit(tokens)
	if err != nil {
		return err
	}
	return replace(name, comments(name)+lines(next))
}

// comments are the lines of a file that are no tokens.
func comments(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return header
	}
	var kept strings.Builder
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) == 0 || trimmed[0] == '#' {
			kept.Write(append(bytes.TrimRight(line, "\n"), '\n'))
		}
	}
	return kept.String()
}

func lines(tokens []Token) string {
	var text strings.Builder
	for _, t := range tokens {
		fmt.Fprintln(&text, t)
	}
	return text.String()
}

// replace writes a file beside the one of that name, with its owner and mode, and renames it.
func replace(name, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".sextant-*") // for its owner alone
	if err != nil {
		return fmt.Errorf("change %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("change %s: %w", name, err)
		}
	}()
	if info, err := os.Stat(name); err == nil {
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil {
				return err
			}
		}
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
