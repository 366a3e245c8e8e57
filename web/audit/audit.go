// Package audit keeps a log of who did what that matters for security, so that
// nobody can change it afterwards without being found out.
//
// The log is a folder of files with one JSON object a line. Each line holds the
// SHA-256 of the line before and one of itself: a line that was edited, removed
// or put in breaks the chain at a place that [Verify] names. Files are rotated
// by size and the oldest ones go, which the log itself says.
//
// Its one invariant: a line that [Log.Append] returned nil for is on the disk.
// What is logged is the caller's decision, and that it holds no secret the
// caller's duty; the package knows neither HTTP nor tokens.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Entry is one line of the log.
type Entry struct {
	// Sequence counts the lines from 1.
	Sequence int64 `json:"sequence"`
	// At is the server's time, in UTC.
	At time.Time `json:"at"`
	// Action is what was asked for, such as "revoke-token".
	Action string `json:"action"`
	// Outcome is what came of it.
	Outcome Outcome `json:"outcome"`
	// Who is the scope and the name of the token, such as "user:alice"; Token
	// its public id. Both are empty where nobody is known.
	Who   string `json:"who,omitempty"`
	Token string `json:"token,omitempty"`
	// From is the network address the request came from.
	From string `json:"from,omitempty"`
	// On is what it was asked of.
	On string `json:"on,omitempty"`
	// Program is what the client calls itself, such as "tandem/1.0 (agent claude-ai 0.1)".
	Program string `json:"program,omitempty"`
	// Detail says more in words.
	Detail string `json:"detail,omitempty"`
	// Count is how many like it this line stands for, when more than one: those
	// that came too often to have lines of their own.
	Count int `json:"count,omitempty"`
	// Previous is the Hash of the line before; empty in the first.
	Previous string `json:"previous"`
	// Hash is the SHA-256 of the line up to this field, in hexadecimal.
	Hash string `json:"hash,omitempty"`
}

// Outcome is what came of an action.
type Outcome string

// The outcomes.
const (
	// Asked is written before the action. It was done if no line behind it says
	// that it failed.
	Asked   Outcome = "asked"
	Done    Outcome = "done"
	Failed  Outcome = "failed"  // it was allowed, and could not be done
	Refused Outcome = "refused" // it was not allowed
)

// maxText bounds each text of an entry, in bytes.
const maxText = 512

// bounded cuts the texts of an entry to their length, and leaves nothing in
// them that a terminal or another program could take for more than text.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Action, &e.Who, &e.Token, &e.From, &e.On, &e.Program, &e.Detail} {
		*text = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(*text, "\uFFFD"))
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "") + "..."
		}
	}
	return e
}

// hashMark stands before the hash at the end of a line.
const hashMark = `,"hash":"`

// line returns the entry as its line, without the line break, and its hash.
func (e Entry) line() ([]byte, string, error) {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		return nil, "", fmt.Errorf("encode an entry of the audit log: %w", err)
	}
	text = text[:len(text)-1] // the brace
	hash := hashOf(text)
	return append(text, hashMark+hash+`"}`...), hash, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// parseLine reads a line and checks its own hash.
func parseLine(line []byte) (Entry, error) {
	var entry Entry
	at := bytes.LastIndex(line, []byte(hashMark))
	if at < 0 {
		return entry, fmt.Errorf("it is not a line of this log")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entry); err != nil {
		return entry, fmt.Errorf("it cannot be read: %w", err)
	}
	if hashOf(line[:at]) != entry.Hash || string(line[at:]) != hashMark+entry.Hash+`"}` {
		return entry, fmt.Errorf("it was changed: its hash is not the one it was written with")
	}
	return entry, nil
}
