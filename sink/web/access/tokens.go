package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// Token is an API token without its secret.
type Token struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // what it is for
	Role      Role   `json:"role"` // viewer, operator or admin
	CreatedMS int64  `json:"created_ms"`
	CreatedBy string `json:"created_by,omitempty"`
	ExpiresMS int64  `json:"expires_ms,omitempty"`   // absent if it does not expire
	UsedMS    int64  `json:"last_used_ms,omitempty"` // absent if it was not used; up to a minute old after a crash
	UsedFrom  string `json:"last_used_from,omitempty"`
}

// stored is a token as it is in the file.
type stored struct {
	Token
	Hash string `json:"hash"` // SHA-256 of the secret, in hexadecimal

	sum [sha256.Size]byte
}

// tokenFile is the file of tokens.
type tokenFile struct {
	Version int      `json:"version"`
	Tokens  []stored `json:"tokens"`
}

const (
	tokenPrefix   = "hop_"
	tokenIDLen    = 8 // hexadecimal digits
	tokenSecret   = 32
	tokenVersion  = 1
	maxTokenBytes = 1 << 10 // of one in the file
	usedEvery     = time.Minute
)

// tokens are the API tokens of a file, in the order in which they were made.
type tokens struct {
	path string
	max  int

	mu    sync.Mutex
	all   []stored
	dirty bool // the time of a last use is not in the file
}

// openTokens reads the file of tokens, if there is one.
func openTokens(path string, most int) (*tokens, error) {
	t := &tokens{path: path, max: most}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := int64(maxTokens * maxTokenBytes)
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil {
		t.all, err = parseTokens(b)
	}
	if err != nil {
		return nil, fmt.Errorf("tokens %s: %w: restore the file, or remove it and make the tokens anew", path, err)
	}
	return t, nil
}

// parseTokens reads the bytes of a file of tokens.
func parseTokens(b []byte) ([]stored, error) {
	if len(b) > maxTokens*maxTokenBytes {
		return nil, fmt.Errorf("longer than %d bytes", maxTokens*maxTokenBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var f tokenFile
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("byte %d: more than one value", d.InputOffset())
	}
	if f.Version != tokenVersion {
		return nil, fmt.Errorf("version %d is not known", f.Version)
	}
	if len(f.Tokens) > maxTokens {
		return nil, fmt.Errorf("%d tokens: at most %d are read", len(f.Tokens), maxTokens)
	}
	seen := map[string]bool{}
	for i := range f.Tokens {
		x := &f.Tokens[i]
		sum, err := hex.DecodeString(x.Hash)
		switch {
		case !isTokenID(x.ID) || seen[x.ID]:
			return nil, fmt.Errorf("token %d: id %.20q is no id, or there twice", i+1, x.ID)
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("token %s: hash is not %d hexadecimal digits", x.ID, 2*sha256.Size)
		case x.Role == NoRole:
			return nil, fmt.Errorf("token %s: has no role", x.ID)
		case checkName(x.Name) != nil:
			return nil, fmt.Errorf("token %s: name: %w", x.ID, errName)
		}
		seen[x.ID] = true
		x.sum = [sha256.Size]byte(sum)
	}
	return f.Tokens, nil
}

func isTokenID(id string) bool {
	return len(id) == tokenIDLen && strings.Trim(id, "0123456789abcdef") == ""
}

// splitToken returns the id and the secret of an API token. ok is false for what has another form.
func splitToken(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(rest) <= tokenIDLen+1 || rest[tokenIDLen] != '_' {
		return "", "", false
	}
	return rest[:tokenIDLen], rest[tokenIDLen+1:], isTokenID(rest[:tokenIDLen])
}

// write replaces the file by a list of tokens. The caller holds the lock.
func (t *tokens) write(list []stored) error {
	b, err := json.MarshalIndent(tokenFile{tokenVersion, list}, "", "\t")
	if err != nil {
		return err
	}
	return flock.ReplaceBytes(t.path, append(b, '\n'))
}

// create makes a token and returns its text, which is kept nowhere.
func (t *tokens) create(name string, role Role, by string, expires, now time.Time) (Token, string, error) {
	raw := make([]byte, tokenIDLen/2+tokenSecret)
	rand.Read(raw) // never fails
	x := stored{Token: Token{ID: hex.EncodeToString(raw[:tokenIDLen/2]), Name: name, Role: role, CreatedMS: now.UnixMilli(), CreatedBy: by}}
	if !expires.IsZero() {
		x.ExpiresMS = expires.UnixMilli()
	}
	secret := base64.RawURLEncoding.EncodeToString(raw[tokenIDLen/2:])
	x.sum = sha256.Sum256([]byte(secret))
	x.Hash = hex.EncodeToString(x.sum[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(t.all), func(x stored) bool { return x.ended(now) })
	switch {
	case len(kept) >= t.max:
		return Token{}, "", fmt.Errorf("there are %d tokens, and web.access.max_tokens allows no more: revoke one that is not used", len(kept))
	case slices.ContainsFunc(kept, func(y stored) bool { return y.Name == name }):
		return Token{}, "", fmt.Errorf("there is a token %q: revoke it, or choose another name", name)
	case slices.ContainsFunc(kept, func(y stored) bool { return y.ID == x.ID }):
		return Token{}, "", errors.New("the random id is taken: try again")
	}
	kept = append(kept, x)
	if err := t.write(kept); err != nil {
		return Token{}, "", err
	}
	t.all, t.dirty = kept, false
	return x.Token, tokenPrefix + x.ID + "_" + secret, nil
}

// revoke removes a token, which may be named by its id or its name.
func (t *tokens) revoke(idOrName string) (Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(x stored) bool { return x.ID == idOrName })
	if i < 0 {
		i = slices.IndexFunc(t.all, func(x stored) bool { return x.Name == idOrName })
	}
	if i < 0 {
		return Token{}, fmt.Errorf("there is no token %.40q", idOrName)
	}
	gone, kept := t.all[i].Token, slices.Delete(slices.Clone(t.all), i, i+1)
	if err := t.write(kept); err != nil {
		return Token{}, err
	}
	t.all, t.dirty = kept, false
	return gone, nil
}

func (x *stored) ended(now time.Time) bool { return x.ExpiresMS > 0 && now.UnixMilli() >= x.ExpiresMS }

// match returns the token of a text, and notes its use. The time that it takes depends on the id, which is no secret.
func (t *tokens) match(text, from string, now time.Time) (Token, bool) {
	id, secret, ok := splitToken(text)
	if t == nil || !ok {
		return Token{}, false
	}
	sum := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(x stored) bool { return x.ID == id })
	if i < 0 {
		return Token{}, false
	}
	x := &t.all[i]
	if subtle.ConstantTimeCompare(sum[:], x.sum[:]) != 1 || x.ended(now) {
		return Token{}, false
	}
	if ms := now.UnixMilli(); ms > x.UsedMS || from != x.UsedFrom {
		x.UsedMS, x.UsedFrom, t.dirty = ms, from, true
	}
	return x.Token, true
}

// valid reports whether a token is there and has not ended.
func (t *tokens) valid(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(x stored) bool { return x.ID == id })
	return i >= 0 && !t.all[i].ended(now)
}

// list returns the tokens that have not ended.
func (t *tokens) list(now time.Time) []Token {
	out := []Token{}
	if t == nil {
		return out
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.all {
		if !t.all[i].ended(now) {
			out = append(out, t.all[i].Token)
		}
	}
	return out
}

// flush writes the times of last use to the file, if there are new ones.
func (t *tokens) flush() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dirty {
		return nil
	}
	err := t.write(t.all)
	t.dirty = err != nil
	return err
}
