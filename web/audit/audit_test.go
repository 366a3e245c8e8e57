package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/audit"
)

func open(t testing.TB, path string, options audit.Options) *audit.Log {
	t.Helper()
	log, err := audit.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func add(t testing.TB, log *audit.Log, count int) {
	t.Helper()
	for i := range count {
		entry := audit.Entry{Action: "delete-study", Outcome: audit.Asked, Who: "user:alice", Token: "3fX9kQ2mLp0a", From: "192.0.2.1:99", On: fmt.Sprintf("study %d", i)}
		if err := log.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
}

// written makes a closed log of so many lines and returns its head.
func written(t testing.TB, path string, lines int, options audit.Options) string {
	t.Helper()
	log := open(t, path, options)
	add(t, log, lines)
	_, head := log.Head()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return head
}

func logFiles(t testing.TB, path string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func entries(t testing.TB, path string) []audit.Entry {
	t.Helper()
	list, err := audit.Newest(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestTheChainGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	path, at := filepath.Join(t.TempDir(), "audit"), time.Date(2026, 3, 29, 0, 59, 59, 5, time.FixedZone("", 3600))
	for round := range 3 {
		log := open(t, path, audit.Options{Now: func() time.Time { return at }})
		add(t, log, 2)
		sequence, head := log.Head()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Verify(path, head)
		if err != nil || report.Lines != int64(2*round+2) || report.Last != sequence || report.Head != head || report.First != 1 || report.Files != 1 || report.Unfinished {
			t.Fatalf("%+v: %v", report, err)
		}
		if err := log.Append(audit.Entry{}); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a closed log takes more: %v", err)
		}
	}
	list := entries(t, path)
	want := audit.Entry{
		Sequence: 5, At: at.UTC(), Action: "delete-study", Outcome: audit.Asked, Who: "user:alice", Token: "3fX9kQ2mLp0a", From: "192.0.2.1:99", On: "study 0",
		Previous: list[3].Hash, Hash: list[4].Hash,
	}
	if len(list) != 6 || list[4] != want {
		t.Errorf("%d lines, the fifth %+v, want %+v", len(list), list[4], want)
	}
	for name, mode := range map[string]os.FileMode{path: os.ModeDir | 0o700, logFiles(t, path)[0]: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
}

// TestEveryChangeOfAByteIsFound changes each byte of a log, one at a time.
func TestEveryChangeOfAByteIsFound(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	head := written(t, path, 4, audit.Options{})
	file := logFiles(t, path)[0]
	content := read(t, file)
	for at := range content {
		for _, change := range []byte{1, 0x20, 0x80} {
			changed := slices.Clone(content)
			changed[at] ^= change
			write(t, file, changed)
			_, err := audit.Verify(path, head)
			var fault *audit.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("byte %d changed by %#x: %v", at, change, err)
			}
			line := bytes.Count(content[:at], []byte("\n")) + 1
			if at < len(content)-1 && fault.Line != line && fault.Line != line+1 {
				t.Errorf("byte %d in line %d changed: found in line %d (%v)", at, line, fault.Line, err)
			}
		}
	}
}

func TestLinesThatAreRemovedMovedOrPutInAreFound(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	head := written(t, path, 6, audit.Options{})
	file := logFiles(t, path)[0]
	content := read(t, file)
	lines := bytes.SplitAfter(content, []byte("\n"))[:6]
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	list := entries(t, path)
	forged := list[3]
	forged.On = "nothing of importance"
	for name, c := range map[string]struct {
		content []byte
		line    int
		says    string
	}{
		"the first removed":         {join(lines[1:]...), 1, "removed"},
		"one in the middle removed": {join(lines[0], lines[1], lines[3], lines[4], lines[5]), 3, "removed"},
		"two changed places":        {join(lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]), 2, "moved"},
		"one twice":                 {join(lines[0], lines[1], lines[1], lines[2], lines[3], lines[4], lines[5]), 3, "put in"},
		"one replaced, with hashes": {join(lines[0], lines[1], lines[2], []byte(forged.Hashed()+"\n"), lines[4], lines[5]), 5, "changed or replaced"},
		"cut in the middle":         {join(lines[0], lines[1], lines[2][:30], lines[4]), 3, "cannot be read"},
		"an empty line":             {join(lines[0], []byte("\n"), lines[1]), 2, "not a line"},
		"a field put in":            {join(lines[0], bytes.Replace(lines[1], []byte(`{`), []byte(`{"x":1,`), 1), lines[2]), 2, "unknown field"},
		"a long line":               {join(lines[0], bytes.Repeat([]byte("x"), 1<<17), []byte("\n")), 2, "65536"},
		"the end cut off":           {join(lines[:4]...), 0, "cut off"},
		"everything removed":        {nil, 0, "cut off"},
	} {
		write(t, file, c.content)
		_, err := audit.Verify(path, head)
		var fault *audit.Fault
		if !errors.As(err, &fault) || fault.Line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want line %d and %q", name, err, c.line, c.says)
		}
	}
	write(t, file, content)
	if _, err := audit.Verify(path, strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "no line has the hash") {
		t.Errorf("a hash that no line has: %v", err)
	}
	if _, err := audit.Verify(path, list[2].Hash); err != nil {
		t.Errorf("the hash of an earlier line: %v", err)
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	small := audit.Options{FileBytes: 1200, Files: 3}
	var head string
	for range 4 { // also over restarts
		head = written(t, path, 20, small)
	}
	report, err := audit.Verify(path, head)
	if err != nil || report.Files != 3 || report.First == 1 || report.Last < 80 || report.Lines != report.Last-report.First+1 {
		t.Fatalf("%+v: %v", report, err)
	}
	files := logFiles(t, path)
	var size int
	for _, file := range files {
		size += len(read(t, file))
	}
	if size > 3*2000 {
		t.Errorf("the log has %d bytes", size)
	}
	// What rotation removes, the log says; what somebody removes, it does not.
	for at, says := range map[int]string{0: "no line says that they were removed", 1: "were removed", 2: "no line says that they were removed"} {
		content := read(t, files[at])
		if err := os.Remove(files[at]); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Verify(path, head); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("without file %d: %v", at, err)
		}
		write(t, files[at], content)
	}
	lines := bytes.SplitAfter(read(t, files[0]), []byte("\n"))
	write(t, files[0], bytes.Join(lines[1:], nil))
	if _, err := audit.Verify(path, head); err == nil || !strings.Contains(err.Error(), "should be called") {
		t.Errorf("without the first line that is left: %v", err)
	}
}

// TestAnUnfinishedLineIsCutOff cuts the log after each byte of its last line,
// as a crash may.
func TestAnUnfinishedLineIsCutOff(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	written(t, path, 2, audit.Options{})
	file := logFiles(t, path)[0]
	content := read(t, file)
	first := bytes.IndexByte(content, '\n') + 1
	for size := 0; size < len(content); size += 1 + size%37 { // not every one: each is several waits for the disk
		write(t, file, content[:size])
		report, err := audit.Verify(path, "")
		if whole := bytes.LastIndexByte(content[:size], '\n') + 1; err != nil || report.Unfinished != (size > whole) {
			t.Fatalf("after %d bytes: %+v, %v", size, report, err)
		}
		log := open(t, path, audit.Options{})
		add(t, log, 1)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		kept := 0
		if size >= first {
			kept = 1
		}
		list := entries(t, path)
		repaired := slices.ContainsFunc(list, func(e audit.Entry) bool { return e.Action == "repair-audit-log" })
		torn := size > 0 && size != first
		if _, err := audit.Verify(path, ""); err != nil || repaired != torn || len(list) != kept+1+map[bool]int{true: 1}[torn] {
			t.Fatalf("after %d bytes: %d lines, repaired %v: %v", size, len(list), repaired, err)
		}
	}
}

func TestADamagedLogIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	written(t, path, 2, audit.Options{})
	file := logFiles(t, path)[0]
	content := read(t, file)
	content[len(content)-10] ^= 1
	write(t, file, content)
	_, err := audit.Open(path, audit.Options{})
	if !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), path) {
		t.Errorf("opened: %v", err)
	}
	if !bytes.Equal(read(t, file), content) {
		t.Error("it was written to")
	}
}

func TestManyWriteAtOnce(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	log := open(t, path, audit.Options{FileBytes: 20000, Files: 1000})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 25 {
				if err := log.Append(audit.Entry{Action: "test", Outcome: audit.Done, On: fmt.Sprintf("%d of %d", i, worker)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.Verify(path, ""); err != nil || report.Lines != 200 || report.Files < 2 {
		t.Fatalf("%+v: %v", report, err)
	}
	next := map[string]int{}
	for _, entry := range entries(t, path) {
		var i, worker int
		if _, err := fmt.Sscanf(entry.On, "%d of %d", &i, &worker); err != nil {
			t.Fatal(err)
		}
		if name := fmt.Sprint(worker); next[name] != i {
			t.Errorf("worker %s wrote %d behind %d", name, i, next[name]-1)
		} else {
			next[name]++
		}
	}
}

func TestAFullDiskRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	log := open(t, path, audit.Options{FileBytes: 1})
	add(t, log, 2)
	away := path + "-away"
	if err := os.Rename(path, away); err != nil { // no file can be begun now
		t.Fatal(err)
	}
	for range 3 {
		if err := log.Append(audit.Entry{Action: "lost", Outcome: audit.Done}); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "make room") {
			t.Fatalf("written nowhere: %v", err)
		}
	}
	if err := os.Rename(away, path); err != nil {
		t.Fatal(err)
	}
	add(t, log, 2)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.Verify(path, ""); err != nil || report.Lines != 4 || slices.ContainsFunc(entries(t, path), func(e audit.Entry) bool { return e.Action == "lost" }) {
		t.Errorf("%+v: %v", report, err)
	}
}

func TestAFailedDiskEndsTheLog(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	log := open(t, path, audit.Options{})
	add(t, log, 2)
	if err := log.Fail(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := log.Append(audit.Entry{Action: "lost", Outcome: audit.Done}); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "started again") {
			t.Fatalf("written nowhere: %v", err)
		}
	}
	if report, err := audit.Verify(path, ""); err != nil || report.Lines != 2 {
		t.Errorf("%+v: %v", report, err)
	}
}

func TestTextsStayTextsOfTheirLength(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	log := open(t, path, audit.Options{})
	odd := "a\nb\x1b[31m\x00\xff\u2028é" + strings.Repeat("ü", 1000)
	if err := log.Append(audit.Entry{Action: odd, Who: odd, Token: odd, From: odd, On: odd, Detail: odd}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if content := read(t, logFiles(t, path)[0]); bytes.Count(content, []byte("\n")) != 1 || !json.Valid(content) || len(content) > 6*700 {
		t.Errorf("%d bytes: %s", len(content), content)
	}
	if got := entries(t, path)[0].On; !strings.HasPrefix(got, "a b [31m \uFFFD") || len(got) > 520 || !strings.HasSuffix(got, "ü...") {
		t.Errorf("%q", got)
	}
	if _, err := audit.Verify(path, ""); err != nil {
		t.Error(err)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	at := time.Now()
	limiter := audit.NewLimiter(func() time.Time { return at })
	lines, counted := 0, 0
	attempt := func(kind string) {
		if count := limiter.Count(kind); count > 0 {
			lines++
			counted += count
		}
	}
	for range 1000 {
		attempt("one")
	}
	if lines != 10 || counted != 10 {
		t.Errorf("%d lines for %d attempts", lines, counted)
	}
	at = at.Add(time.Minute)
	attempt("one")
	if lines != 11 || counted != 1001 {
		t.Errorf("a minute later %d lines for %d attempts of 1001", lines, counted)
	}
	for kind := range 30000 {
		attempt(fmt.Sprint("kind ", kind))
	}
	if lines > 71 {
		t.Errorf("%d lines in a minute", lines)
	}
}

func TestALogHasOneWriter(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	log := open(t, path, audit.Options{})
	add(t, log, 1)
	if _, err := audit.Open(path, audit.Options{}); !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second one: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	written(t, path, 1, audit.Options{})
	if report, err := audit.Verify(path, ""); err != nil || report.Lines != 2 {
		t.Errorf("%+v: %v", report, err)
	}
}

// The newest lines are the last ones of the log, whatever file they are in.
func TestTheNewestLines(t *testing.T) {
	path := t.TempDir()
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		if err := log.Append(audit.Entry{Action: "number", Detail: strconv.Itoa(i), Outcome: audit.Done}); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]string{3: "22", 10: "15", 25: "0", 100: "0"} {
		list, err := audit.Newest(path, most)
		if err != nil || len(list) != min(most, 25) || list[0].Detail != want || list[len(list)-1].Detail != "24" {
			t.Errorf("of %d: %+v, %v", most, list, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
