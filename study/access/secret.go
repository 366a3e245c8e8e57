package access

import (
	"fmt"
	"log/slog"
)

// Secret is a text that must not be seen. Printed, logged or encoded it is
// "***"; only [Secret.Reveal] gives it out.
type Secret string

const hidden = "***"

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns "***".
func (s Secret) String() string { return hidden }

// Format writes "***" for every verb.
func (s Secret) Format(out fmt.State, _ rune) { fmt.Fprint(out, hidden) }

// LogValue returns "***".
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns "***".
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
