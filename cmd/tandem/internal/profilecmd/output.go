package profilecmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

const (
	// longestEpochLine bounds what is looked at as a report of an epoch.
	longestEpochLine = 1 << 20
	// outputLinger is how long output is awaited from what a command left
	// behind and still holds its standard output.
	outputLinger = 2 * time.Second
)

// alone is how our Python client prints an epoch where there is no worker.
var alone = regexp.MustCompile(`^epoch (\d+)/\d+  `)

// epochReader passes a command's output on and finds the epochs in it. A nil
// one does nothing.
type epochReader struct {
	to      io.Writer
	in, out *os.File
	reading sync.WaitGroup
	part    []byte
}

func newEpochReader(to io.Writer) (*epochReader, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the command's output: %w", err)
	}
	return &epochReader{to: to, in: in, out: out}, nil
}

// follow reads until the command and all it started have closed their ends.
func (r *epochReader) follow(epoch func(number int)) {
	if r == nil {
		return
	}
	_ = r.in.Close() // the command has its own
	r.reading.Go(func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := r.out.Read(buffer)
			// Whoever closed our output does not stop the measurement.
			_, _ = r.to.Write(buffer[:n])
			r.split(buffer[:n], epoch)
			if err != nil {
				r.split([]byte("\n"), epoch)
				return
			}
		}
	})
}

// split finds the lines; of too long ones nothing is kept.
func (r *epochReader) split(text []byte, epoch func(number int)) {
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if r.part = append(r.part, line...); len(r.part) > longestEpochLine {
			r.part = r.part[:longestEpochLine+1]
		}
		if !ended {
			return
		}
		if number, ok := epochOf(r.part); ok {
			epoch(number)
		}
		r.part, text = r.part[:0], rest
	}
}

func epochOf(line []byte) (int, bool) {
	if match := alone.FindSubmatch(line); match != nil {
		number, err := strconv.Atoi(string(match[1]))
		return number, err == nil
	}
	return script.ReportedEpoch(line)
}

// drain waits for what is still on its way.
func (r *epochReader) drain() {
	if r == nil {
		return
	}
	_ = r.in.Close()
	_ = r.out.SetReadDeadline(time.Now().Add(outputLinger)) // pipes have deadlines
	r.reading.Wait()
	_ = r.out.Close() // read-only: nothing can be lost
}

// inTurn is written to by several goroutines.
type inTurn struct {
	mutex sync.Mutex
	to    io.Writer
}

// Write writes while nobody else does.
func (w *inTurn) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.to.Write(p)
}
