package process

import (
	"slices"
	"strings"
)

// shortestSecret is how many bytes a secret has at least: what is shorter is in
// every text by chance.
const shortestSecret = 6

// hidden stands for a secret in what a command writes.
const hidden = "***"

// Redactor takes secrets out of a text that comes in pieces. It holds back what may
// be the beginning of one.
type Redactor struct {
	Secrets []string // the longest first
	rest    string
}

// NewRedactor takes out the values, and their lines where they have several: a log
// shows them apart.
func NewRedactor(values map[string]string) *Redactor {
	m := &Redactor{}
	for _, value := range values {
		m.Secrets = append(m.Secrets, value)
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				m.Secrets = append(m.Secrets, line)
			}
		}
	}
	slices.SortFunc(m.Secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	m.Secrets = slices.Compact(m.Secrets)
	return m
}

// text is what of the piece, and of what was held back, can be shown.
func (m *Redactor) text(piece string) string {
	if len(m.Secrets) == 0 {
		return piece
	}
	text := m.clean(m.rest + piece)
	keep := 0
	for _, secret := range m.Secrets {
		for length := min(len(secret)-1, len(text)); length > keep; length-- {
			if strings.HasSuffix(text, secret[:length]) {
				keep = length
				break
			}
		}
	}
	m.rest = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// end is what was held back.
func (m *Redactor) end() string {
	rest := m.rest
	m.rest = ""
	return rest
}

func (m *Redactor) clean(text string) string {
	for _, secret := range m.Secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
