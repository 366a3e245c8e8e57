package process

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

// The log of a lease keeps its beginning, which is sent while the command runs,
// and its end, which is sent when it has ended.
const (
	logHead  = 512 << 10
	logTail  = 512 << 10
	logChunk = 64 << 10
)

// Log collects a run's output as text: valid UTF-8 without zero bytes.
type Log struct {
	mutex   sync.Mutex
	pending []byte // not sent yet
	offset  int64  // of pending in the log
	head    int    // how much still goes there at once
	tail    []byte
	dropped int64
	closed  bool
}

// NewLog is an empty log.
func NewLog() *Log { return &Log{head: logHead} }

// textStream is one of the streams that go into a log; it holds back a
// character whose bytes have not all arrived.
type textStream struct{ rest []byte }

// text makes bytes of the stream printable text.
func (s *textStream) text(p []byte) string {
	p = append(s.rest, p...)
	s.rest = nil
	// A character has at most four bytes: look for one that has just begun.
	for i := max(0, len(p)-3); i < len(p); i++ {
		if utf8.RuneStart(p[i]) && !utf8.FullRune(p[i:]) {
			s.rest = append([]byte(nil), p[i:]...)
			p = p[:i]
			break
		}
	}
	return printable(string(p))
}

// end is what was held back.
func (s *textStream) end() string {
	rest := printable(string(s.rest))
	s.rest = nil
	return rest
}

func printable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func (l *Log) write(text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return
	}
	if l.head > 0 {
		cut := len(script.Truncate(text, l.head))
		l.pending = append(l.pending, text[:cut]...)
		l.head -= cut
		if text = text[cut:]; text == "" {
			return
		}
		l.head = 0
	}
	l.tail = append(l.tail, text...)
	if surplus := len(l.tail) - logTail; surplus > logTail {
		l.dropped += int64(surplus)
		l.tail = append(l.tail[:0], l.tail[surplus:]...)
	}
}

// Note adds a line of our own.
func (l *Log) Note(format string, args ...any) {
	l.write("tandem: " + printable(fmt.Sprintf(format, args...)) + "\n")
}

// Close makes the end of the log ready to be sent; nothing can be added then.
func (l *Log) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	tail := l.tail
	if surplus := len(tail) - logTail; surplus > 0 {
		l.dropped += int64(surplus)
		tail = tail[surplus:]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
		l.dropped++
	}
	if l.dropped > 0 {
		l.pending = fmt.Appendf(l.pending, "\ntandem: %d bytes of the log are left out here\n", l.dropped)
	}
	l.pending = append(l.pending, tail...)
	l.tail = nil
}

// Chunk is the next piece to send, and where in the log it starts; empty when
// all is sent.
func (l *Log) Chunk() (text string, offset int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	piece := string(l.pending[:min(len(l.pending), logChunk+utf8.UTFMax)])
	return script.Truncate(piece, logChunk), l.offset
}

// Sent forgets a piece that has arrived.
func (l *Log) Sent(bytes int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.pending = append(l.pending[:0], l.pending[bytes:]...)
	l.offset += int64(bytes)
}
