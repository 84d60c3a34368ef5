// Package access says who may do what with a daemon's API over the network: tokens in a file, and
// the files of TLS, both read anew when they change.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sextant/agent/api"
)

// Token is what a file knows of a token: not the token itself, but its hash.
type Token struct {
	Label   string // for the log and the history of configurations
	Role    api.Permission
	Expires time.Time // the zero value: never
	hash    [sha256.Size]byte
}

// Roles are what a token may allow.
var Roles = []api.Permission{api.Read, api.Operate, api.Admin}

// Bounds of a file of tokens.
const (
	MaxTokens = 1000
	maxLabel  = 64
	maxFile   = 1 << 20 // bytes
	// prefix of all tokens: tools that look for secrets in texts find them by it
	prefix      = "sextant_"
	secretBytes = 32
	never       = "never"
	hashScheme  = "sha256:"
)

// NewToken makes a token. The text is what its holder shows, and is kept nowhere.
func NewToken(label string, role api.Permission, expires time.Time) (Token, string, error) {
	t := Token{Label: label, Role: role}
	if !expires.IsZero() {
		t.Expires = expires.UTC().Truncate(time.Second)
	}
	if err := t.check(); err != nil {
		return Token{}, "", err
	}
	var secret [secretBytes]byte
	rand.Read(secret[:]) // it never fails
	text := prefix + base64.RawURLEncoding.EncodeToString(secret[:])
	t.hash = sha256.Sum256([]byte(text))
	return t, text, nil
}

func (t Token) check() error {
	if !slices.Contains(Roles, t.Role) {
		return fmt.Errorf("unknown role %.20q; write read, operate or admin", t.Role)
	}
	ok := t.Label != "" && len(t.Label) <= maxLabel
	for _, r := range t.Label {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.@", r))
	}
	if !ok {
		return fmt.Errorf("%.80q is no label of a token; use 1 to %d letters, digits, dots, "+
			"dashes, underscores and @", t.Label, maxLabel)
	}
	return nil
}

// Expired reports whether a token is not valid any more.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// String is the line of a token in its file.
func (t Token) String() string {
	expires := never
	if !t.Expires.IsZero() {
		expires = t.Expires.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s %s %s %s%s", t.Label, t.Role, expires, hashScheme,
		hex.EncodeToString(t.hash[:]))
}

// ParseTokens reads a file of tokens: a line LABEL ROLE EXPIRY sha256:HASH for each. The expiry is
// a time as RFC 3339 has it, or never. Empty lines, and those that begin with #, say nothing.
func ParseTokens(text []byte) ([]Token, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has %d bytes; at most %d are read", len(text), maxFile)
	}
	var tokens []Token
	labels := map[string]int{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		t, err := parseToken(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if first, twice := labels[t.Label]; twice {
			return nil, fmt.Errorf("line %d: label %s is that of line %d, too; delete one of the "+
				"two", n, t.Label, first)
		}
		labels[t.Label] = n
		if tokens = append(tokens, t); len(tokens) > MaxTokens {
			return nil, fmt.Errorf("line %d: more than %d tokens; remove those that have expired",
				n, MaxTokens)
		}
	}
	return tokens, nil
}

func parseToken(words []string) (Token, error) {
	if len(words) != 4 {
		return Token{}, errors.New("it is no token; write LABEL ROLE EXPIRY sha256:HASH, or use " +
			"sextant token add")
	}
	t := Token{Label: words[0], Role: api.Permission(words[1])}
	if err := t.check(); err != nil {
		return Token{}, err
	}
	if words[2] != never {
		var err error
		if t.Expires, err = time.Parse(time.RFC3339, words[2]); err != nil || t.Expires.IsZero() {
			return Token{}, fmt.Errorf("%.40q is no time; write it like 2027-01-31T12:00:00Z, or "+
				"never", words[2])
		}
	}
	text, scheme := strings.CutPrefix(words[3], hashScheme)
	hash, err := hex.DecodeString(text)
	if !scheme || err != nil || len(hash) != len(t.hash) {
		return Token{}, fmt.Errorf("the last word is no hash; use sextant token add")
	}
	copy(t.hash[:], hash)
	return t, nil
}

// holder returns the token whose text is shown. All are compared, so that the time it takes says
// nothing of which one it was, or how much of it was right.
func holder(tokens []Token, text string) (found Token, ok bool) {
	hash := sha256.Sum256([]byte(text))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}
