package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/problem"
)

// A token is written tandem_<kind>_<id>_<secret>_<checksum>. The kind is the
// scope, or "session". 43 letters of base 62 hold 256 random bits, so a plain
// SHA-256 is enough to store. The fixed shape lets scanners find leaked
// tokens, and the checksum tells a token that was copied in part from a wrong
// one without asking the store.
const (
	mark          = "tandem"
	sessionKind   = "session"
	idLetters     = 12
	secretLetters = 43
	letters       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

const (
	maxName  = 128
	maxToken = 256
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{Admin, Worker, Viewer} }

// Issue makes a token, stores it without its secret and returns the secret: it
// cannot be shown again. A ttl of 0 means that it never expires.
//
// The error is invalid for an empty name, an unknown scope or a negative ttl.
func Issue(ctx context.Context, store Store, name string, scope Scope, ttl time.Duration) (string, Token, error) {
	token := Token{ID: draw(idLetters), Name: name, Scope: scope, Created: time.Now().UTC()}
	if ttl != 0 {
		expires := token.Created.Add(ttl)
		token.Expires = &expires
	}
	if err := check(token, ttl); err != nil {
		return "", Token{}, err
	}
	secret, err := insert(ctx, store, string(scope), &token)
	return secret, token, err
}

func check(token Token, ttl time.Duration) error {
	var faults []problem.Field
	if token.Name == "" || len(token.Name) > maxName {
		faults = append(faults, problem.Field{Path: "name", Value: token.Name, Message: "must have 1 to 128 bytes: say who or what uses the token"})
	}
	if !slices.Contains(Scopes(), token.Scope) {
		faults = append(faults, problem.Field{Path: "scope", Value: string(token.Scope), Message: "must be admin, worker or viewer"})
	}
	if ttl < 0 {
		faults = append(faults, problem.Field{Path: "ttl_seconds", Value: ttl.Seconds(), Message: "must be positive, or 0 for a token that never expires"})
	}
	if len(faults) > 0 {
		return problem.WithFields("the token is not valid", faults)
	}
	return nil
}

// insert draws the secret, stores its hash with the token and returns it.
func insert(ctx context.Context, store Store, kind string, token *Token) (string, error) {
	secret := draw(secretLetters)
	token.Hash = sha256.Sum256([]byte(secret))
	if err := store.InsertToken(ctx, *token); err != nil {
		return "", err
	}
	text := mark + "_" + kind + "_" + token.ID + "_" + secret
	return text + "_" + checksum(text), nil
}

// parsed is a token as it was shown to us; nothing of it is known to be true.
type parsed struct{ kind, id, secret string }

// parse takes a token's text apart.
func parse(text string) (parsed, error) {
	damaged := problem.New(problem.Unauthorized, "this is not a whole token: it must be copied from tandem_ to its last letter")
	if len(text) > maxToken {
		return parsed{}, damaged
	}
	end := strings.LastIndexByte(text, '_')
	if end < 0 || checksum(text[:end]) != text[end+1:] {
		return parsed{}, damaged
	}
	parts := strings.Split(text[:end], "_")
	if len(parts) != 4 || parts[0] != mark || len(parts[3]) != secretLetters {
		return parsed{}, damaged
	}
	return parsed{kind: parts[1], id: parts[2], secret: parts[3]}, nil
}

// proves reports whether the secret is the token's, in constant time.
func (p parsed) proves(token Token) bool {
	hash := sha256.Sum256([]byte(p.secret))
	return subtle.ConstantTimeCompare(hash[:], token.Hash[:]) == 1
}

// draw returns random letters, each equally likely.
func draw(count int) string {
	var drawn strings.Builder
	var bytes [64]byte
	for drawn.Len() < count {
		rand.Read(bytes[:]) // never fails: crypto/rand ends the process instead
		for _, b := range bytes {
			// 248 is the largest multiple of 62 below 256: what is above would favour the first letters.
			if b < 248 && drawn.Len() < count {
				drawn.WriteByte(letters[int(b)%len(letters)])
			}
		}
	}
	return drawn.String()
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	var out [6]byte // 62^6 > 2^32
	for i := range out {
		out[i] = letters[sum%uint32(len(letters))]
		sum /= uint32(len(letters))
	}
	return string(out[:])
}
