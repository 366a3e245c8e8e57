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

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
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
func Scopes() []Scope { return []Scope{Admin, User, Worker, Viewer, Link, Launcher, Enrolment, Device} }

// Request is what a token is made from.
type Request struct {
	Name  string
	Scope Scope
	// Worker is the machine that a worker's token is for: empty for the first
	// that uses it, [AnyWorker] for any number of them.
	Worker string
	// Subject is the id of the study that a link opens, or the launch of an enrolment.
	Subject string
	// Parent is the id of the token that an enrolment is made with, and ends with.
	Parent string
	// Life is how long it is valid; 0: it never expires.
	Life time.Duration
}

// Issue makes a token, stores it without its secret and returns the secret: it
// cannot be shown again.
//
// The error is invalid and names every fault of the request: a name that is
// empty, or none for a user; an unknown scope; a worker for another scope; a
// negative life; a link without a study or an end; an enrolment without a launch, a parent
// or an end.
func Issue(ctx context.Context, store Store, request Request) (string, Token, error) {
	if err := request.check(); err != nil {
		return "", Token{}, err
	}
	token := Token{ID: draw(idLetters), Name: request.Name, Scope: request.Scope, Worker: request.Worker, Subject: request.Subject, Created: time.Now().UTC()}
	if request.Scope == Enrolment {
		token.ID = request.Parent + "." + token.ID
	}
	if request.Life != 0 {
		expires := token.Created.Add(request.Life)
		token.Expires = &expires
	}
	secret, err := insert(ctx, store, string(token.Scope), &token)
	return secret, token, err
}

func (r Request) check() error {
	var faults []problem.Field
	fault := func(path string, value any, message string) {
		faults = append(faults, problem.Field{Path: path, Value: value, Message: message})
	}
	switch {
	case r.Name == "" || len(r.Name) > maxName:
		fault("name", r.Name, "must have 1 to 128 bytes: say who or what uses the token")
	case r.Scope == User && !access.IsUser(r.Name):
		fault("name", r.Name, "must name a user: 1 to 64 lower-case letters, digits and . _ -, the first a letter or a digit, and not admin")
	case r.Scope == Launcher && r.Name != access.AnyUser && !access.IsUser(r.Name):
		fault("name", r.Name, "must name the user whose trials its workers run, or be * for the trials of all users")
	}
	if !slices.Contains(Scopes(), r.Scope) || (r.Scope == Enrolment) != (r.Parent != "") {
		fault("scope", string(r.Scope), "must be admin, user, worker, viewer, launcher or device; links are made for a study, enrolments by a launcher")
	}
	if r.Worker != "" && r.Scope != Worker {
		fault("worker", r.Worker, "must be empty: only a token with the scope worker belongs to a machine")
	}
	if len(r.Worker) > maxName {
		fault("worker", r.Worker, "must have at most 128 bytes, as names of workers do")
	}
	bound := r.Scope == Link || r.Scope == Enrolment
	if (r.Subject == "") == bound {
		fault("study", r.Subject, "must be the id of the study that a link opens, and empty for other tokens")
	}
	if bound && r.Life == 0 {
		fault("ttl_seconds", 0, "must be positive: a link and an enrolment expire")
	}
	if r.Life < 0 {
		fault("ttl_seconds", r.Life.Seconds(), "must be positive, or 0 for a token that never expires")
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
	return seal(kind, token.ID, secret), nil
}

// seal writes a token.
func seal(kind, id, secret string) string {
	text := mark + "_" + kind + "_" + id + "_" + secret
	return text + "_" + checksum(text)
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
	if len(parts) != 4 || parts[0] != mark || strings.Trim(parts[2], letters+".") != "" || len(parts[3]) != secretLetters {
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
