package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// maxLine bounds one event.
const maxLine = 16 << 20

// Events follows what happens in a study behind the sequence, until the
// context ends. A broken connection is made again, and goes on behind the last
// event. What ends it for good (the study was deleted, the token is no longer
// valid, nobody answers for as long as the client's patience) comes as the
// last error.
func (c StudyCalls) Events(ctx context.Context, study string, after int64) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			stream, err := c.send(ctx, request{
				method: http.MethodGet, path: path("studies", study, "events"), query: "after=" + strconv.FormatInt(after, 10),
				last: strconv.FormatInt(after, 10), stream: true,
			})
			if err != nil {
				yield(protocol.Event{}, err)
				return
			}
			reached, more := deliver(stream, after, yield)
			stream.Close()
			if !more {
				return
			}
			if reached > after {
				after, pause = reached, firstPause
			}
			if err := sleep(ctx, pause); err != nil {
				yield(protocol.Event{}, err)
				return
			}
		}
	}
}

// deliver yields the stream's events until it ends. It returns the last
// sequence and whether more is wanted.
func deliver(stream io.Reader, after int64, yield func(protocol.Event, error) bool) (int64, bool) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxLine)
	var data strings.Builder
	for lines.Scan() {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data.WriteString(strings.TrimPrefix(text, " "))
			continue
		}
		if line != "" || data.Len() == 0 {
			continue // an id or a kind, which the data have too, or a sign of life
		}
		var event protocol.Event
		err := json.Unmarshal([]byte(data.String()), &event)
		data.Reset()
		if err != nil {
			yield(event, problem.New(problem.Internal, "an event behind %d is not what this client understands: %w", after, err))
			return after, false
		}
		if event.Sequence <= after {
			continue
		}
		after = event.Sequence
		if !yield(event, nil) {
			return after, false
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		yield(protocol.Event{}, problem.New(problem.Exhausted, "an event behind %d has more than %d bytes", after, maxLine))
		return after, false
	}
	return after, true
}
