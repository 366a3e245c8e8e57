package agent

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

// pipeLinger is how long output is awaited from processes that hold the pipe
// open after the command's group was killed.
const pipeLinger = 2 * time.Second

// capture reads a command's output: everything into the log, lines of standard
// output to whoever looks for reports, and the end of standard error.
type capture struct {
	log     *logBook
	line    func([]byte)
	readers sync.WaitGroup
	pipes   []*os.File
	errors  lastBytes
}

// sink takes what comes out of a stream, and is told when it has ended.
type sink interface {
	write(p []byte)
	end()
}

// pipe returns the end a command writes to. The caller closes it when the
// command has it.
func (c *capture) pipe(to sink) (*os.File, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.pipes = append(c.pipes, in)
	c.readers.Go(func() {
		stream := textStream{}
		buffer := make([]byte, 64<<10)
		for {
			n, err := in.Read(buffer)
			if n > 0 {
				c.log.write(stream.text(buffer[:n]))
				to.write(buffer[:n])
			}
			if err != nil {
				c.log.write(stream.end())
				to.end()
				return
			}
		}
	})
	return out, nil
}

func (c *capture) open() (stdout, stderr *os.File, err error) {
	if stdout, err = c.pipe(&lineSplitter{line: c.line}); err != nil {
		return nil, nil, err
	}
	if stderr, err = c.pipe(&c.errors); err != nil {
		_ = stdout.Close() // ends its reader
		return nil, nil, err
	}
	return stdout, stderr, nil
}

// drain waits for what is still on its way after the command has ended.
func (c *capture) drain() {
	for _, pipe := range c.pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(pipeLinger)) // pipes have deadlines
	}
	c.readers.Wait()
	for _, pipe := range c.pipes {
		_ = pipe.Close() // read-only: nothing can be lost
	}
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
		if len(s.part)+len(piece) > longestLine {
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

// lines are the last ones with anything in them, at most so many. Progress
// bars return the carriage instead of ending the line.
func (l *lastBytes) lines(most int) []string {
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
