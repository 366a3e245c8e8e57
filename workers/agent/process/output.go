package process

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// PipeLinger is how long output is awaited from processes that hold the pipe
// open after the command's group was killed.
const PipeLinger = 2 * time.Second

// Capture reads a command's output: everything into the log, lines of standard
// output to whoever looks for reports, and the end of standard error.
type Capture struct {
	Log     *Log
	Heard   *atomic.Int64 // moment of the last output; nil: nobody wants to know
	Secrets []string      // see redactor
	Line    func([]byte)
	readers sync.WaitGroup
	from    Streams
	Errors  lastBytes
}

// Streams are the ends that we read of a command's standard output and error.
type Streams struct{ output, errors *os.File }

// openStreams returns the ends a command writes to as well. The caller closes
// those when the command has them.
func openStreams() (o Streams, stdout, stderr *os.File, err error) {
	if o.output, stdout, err = os.Pipe(); err != nil {
		return Streams{}, nil, nil, err
	}
	if o.errors, stderr, err = os.Pipe(); err != nil {
		_ = stdout.Close() // nothing is in it
		o.close()
		return Streams{}, nil, nil, err
	}
	return o, stdout, stderr, nil
}

func (o Streams) close() {
	_, _ = o.output.Close(), o.errors.Close() // read-only: nothing can be lost
}

// sink takes what comes out of a stream, and is told when it has ended.
type sink interface {
	write(p []byte)
	end()
}

// Read begins to read.
func (c *Capture) Read(from Streams) {
	c.from = from
	for pipe, to := range map[*os.File]sink{from.output: &lineSplitter{line: c.Line}, from.errors: &c.Errors} {
		_ = pipe.SetReadDeadline(time.Time{}) // pipes have deadlines
		c.readers.Go(func() { c.copy(pipe, to) })
	}
}

func (c *Capture) copy(pipe *os.File, to sink) {
	stream, masked, buffer := textStream{}, Redactor{Secrets: c.Secrets}, make([]byte, 64<<10)
	take := func(p []byte) {
		if c.Heard != nil {
			c.Heard.Store(int64(clock.Now()))
		}
		text := masked.text(stream.text(p))
		c.Log.write(text)
		if len(c.Secrets) > 0 {
			p = []byte(text)
		}
		to.write(p)
	}
	for {
		n, err := pipe.Read(buffer)
		if n > 0 {
			take(buffer[:n])
		}
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			takeRest(pipe, buffer, take)
		}
		rest := masked.text(stream.end()) + masked.end()
		c.Log.write(rest)
		if len(c.Secrets) > 0 {
			to.write([]byte(rest))
		}
		to.end()
		return
	}
}

// mostInPipe bounds what is taken out of a pipe without waiting, for a writer
// that never rests. The kernel gives no user more room in one.
const mostInPipe = 1 << 20

// takeRest takes what is in a pipe now. Once its deadline is over, reading says
// only that.
func takeRest(pipe *os.File, buffer []byte, take func([]byte)) {
	_ = pipe.SetReadDeadline(time.Time{})
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(descriptor uintptr) bool {
		for taken := 0; taken < mostInPipe; {
			n, err := unix.Read(int(descriptor), buffer) // pipes of the runtime do not block
			if err == unix.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			take(buffer[:n])
			taken += n
		}
		return true
	})
}

// Stop returns when all is read that comes within the patience, or was written
// before where there is none.
func (c *Capture) Stop(patience time.Duration) {
	deadline := time.Now().Add(patience)
	_, _ = c.from.output.SetReadDeadline(deadline), c.from.errors.SetReadDeadline(deadline)
	c.readers.Wait()
}

// lineSplitter finds the lines in a stream. Longer ones than a report can be
// are passed over.
type lineSplitter struct {
	line     func([]byte)
	part     []byte
	skipping bool
}

func (s *lineSplitter) write(p []byte) {
	for len(p) > 0 {
		piece, rest, ended := bytes.Cut(p, []byte("\n"))
		if len(s.part)+len(piece) > script.LongestLine {
			s.skipping, s.part = true, nil
		}
		if !s.skipping {
			s.part = append(s.part, piece...)
		}
		if !ended {
			return
		}
		if !s.skipping {
			s.line(s.part)
		}
		s.part, s.skipping, p = s.part[:0], false, rest
	}
}

// end takes what is left as a line: many programs do not end their last one.
func (s *lineSplitter) end() {
	if len(s.part) > 0 {
		s.line(s.part)
		s.part = nil
	}
}

// lastBytes keeps the end of a stream.
type lastBytes struct {
	mutex sync.Mutex
	kept  []byte
}

const lastKept = 4 << 10

func (l *lastBytes) write(p []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.kept = append(l.kept, p[max(0, len(p)-lastKept):]...)
	if surplus := len(l.kept) - lastKept; surplus > 0 {
		l.kept = append(l.kept[:0], l.kept[surplus:]...)
	}
}

func (l *lastBytes) end() {}

// Lines are the last ones with anything in them, at most so many. Progress
// bars return the carriage instead of ending the line.
func (l *lastBytes) Lines(most int) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text := strings.ReplaceAll(printable(string(l.kept)), "\r", "\n")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}
