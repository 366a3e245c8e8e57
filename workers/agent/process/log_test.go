package process

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

// read takes a log as the server gets it.
func read(t interface{ Fatalf(string, ...any) }, book *Log) string {
	var log strings.Builder
	for {
		text, offset := book.Chunk()
		if text == "" {
			return log.String()
		}
		if offset != int64(log.Len()) || len(text) > logChunk || !utf8.ValidString(text) {
			t.Fatalf("a piece of %d bytes at %d behind %d bytes", len(text), offset, log.Len())
		}
		log.WriteString(text)
		book.Sent(len(text))
	}
}

func TestLogIsTheOutputAsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		output := rapid.SliceOfN(rapid.SampledFrom([]byte("a\n\x00\xff\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")), 0, 200).Draw(t, "output")
		book, stream := NewLog(), textStream{}
		early := ""
		for rest := output; len(rest) > 0; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			book.write(stream.text(rest[:cut]))
			rest = rest[cut:]
		}
		book.write(stream.end())
		book.Close()
		got := early + read(t, book)
		if want := printable(string(output)); flat(got) != flat(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// flat makes runs of the replacement character one: how many bad bytes one of
// them stands for depends on how they arrived.
func flat(text string) string {
	for strings.Contains(text, "\uFFFD\uFFFD") {
		text = strings.ReplaceAll(text, "\uFFFD\uFFFD", "\uFFFD")
	}
	return text
}

func TestLogKeepsBothEnds(t *testing.T) {
	for _, size := range []int{0, 1, logHead, logHead + 1, logHead + logTail, logHead + logTail + 1, 5 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			book := NewLog()
			written := make([]byte, 0, size)
			for i := 0; len(written) < size; i++ {
				line := fmt.Sprintf("%d é\n", i)
				line = script.Truncate(line, size-len(written))
				if line == "" {
					line = "."
				}
				written = append(written, line...)
				book.write(line)
			}
			book.Close()
			book.write("too late")
			got := read(t, book)
			head, tail := min(len(written), logHead-3), max(0, len(written)-logTail+3)
			if !strings.HasPrefix(got, string(written[:head])) || !strings.HasSuffix(got, string(written[tail:])) {
				t.Errorf("an end of the log is missing")
			}
			if said := strings.Contains(got, "left out here"); said != (len(got) < len(written) || len(written) > logHead+logTail) {
				t.Errorf("%d of %d bytes kept, said so: %v", len(got), len(written), said)
			}
			if len(got) > logHead+logTail+100 {
				t.Errorf("%d bytes are too many", len(got))
			}
		})
	}
}

func TestLinesDoNotDependOnHowTheyArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		output := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n")), 0, 100).Draw(t, "output")
		var lines []string
		splitter := &lineSplitter{line: func(line []byte) { lines = append(lines, string(line)) }}
		for rest := output; len(rest) > 0; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			splitter.write(rest[:cut])
			rest = rest[cut:]
		}
		splitter.end()
		want := strings.Split(string(output), "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		if fmt.Sprintf("%q", lines) != fmt.Sprintf("%q", want) {
			t.Fatalf("got %q, want %q", lines, want)
		}
	})
}

func TestEndlessLineIsPassedOver(t *testing.T) {
	var lines []string
	splitter := &lineSplitter{line: func(line []byte) { lines = append(lines, string(line)) }}
	for range 100 {
		splitter.write(bytes.Repeat([]byte("x"), 64<<10))
		if cap(splitter.part) > 4*script.LongestLine {
			t.Fatalf("%d bytes are held", cap(splitter.part))
		}
	}
	splitter.write([]byte("\nnext\n"))
	if len(lines) != 1 || lines[0] != "next" {
		t.Errorf("got %d lines", len(lines))
	}
}

func TestLastLines(t *testing.T) {
	last := &lastBytes{}
	last.write(bytes.Repeat([]byte("noise "), 10_000))
	last.write([]byte("\n10%\r20%\n\nValueError: no\xff \n\n"))
	if got := fmt.Sprintf("%q", last.Lines(3)); got != "[\"10%\" \"20%\" \"ValueError: no\uFFFD\"]" {
		t.Errorf("got %s", got)
	}
}
