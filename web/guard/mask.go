package guard

import (
	"net/http"

	"github.com/tandem-tune/tandem/web/auth"
)

// A hash names a checkpoint. A reader with a link downloads none, so its answers show
// only the beginning of a SHA-256: in each field, sentence and log.
const (
	hashDigits  = 64
	shownDigits = 8
)

// forward lets a request through to the backend, and hides hashes from readers with a link.
func (g *Guard) forward(w http.ResponseWriter, r *http.Request) {
	if TokenOf(r.Context()).Scope != auth.Link {
		g.backend.ServeHTTP(w, r)
		return
	}
	masked := &mask{ResponseWriter: w}
	g.backend.ServeHTTP(masked, r)
	masked.end()
}

// mask replaces the digits of each hash that is written through it by as many
// stars, all but the first ones.
type mask struct {
	http.ResponseWriter
	digits int    // of the present run
	held   []byte // may turn out to be of a hash
}

// Write writes the data that may be shown; digits at its end wait for the next data.
func (m *mask) Write(data []byte) (int, error) {
	shown := make([]byte, 0, len(m.held)+len(data))
	for _, c := range data {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			shown = append(append(shown, m.held...), c)
			m.digits, m.held = 0, m.held[:0]
			continue
		}
		switch m.digits++; {
		case m.digits <= shownDigits:
			shown = append(shown, c)
		case m.digits < hashDigits:
			m.held = append(m.held, c)
		default:
			for range len(m.held) + 1 {
				shown = append(shown, '*')
			}
			m.held = m.held[:0]
		}
	}
	_, err := m.ResponseWriter.Write(shown)
	return len(data), err
}

// end writes the digits that turned out to be of no hash.
func (m *mask) end() {
	if len(m.held) > 0 {
		_, _ = m.ResponseWriter.Write(m.held) // only a client that hung up fails this
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (m *mask) Unwrap() http.ResponseWriter { return m.ResponseWriter }
