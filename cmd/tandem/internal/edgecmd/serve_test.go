package edgecmd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// npy is a sample of the small network as numpy.save writes it, filled with one value.
func npy(value float32) []byte {
	header := fmt.Sprintf("%-117s\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 28, 28)}")
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	data = append(data, header...)
	for range 28 * 28 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
	}
	return data
}

// program is what "tandem edge deploy" prints with the arguments, changed, in a file.
func program(t *testing.T, change func(string) string, args ...string) string {
	t.Helper()
	text, err := said(t, append([]string{"deploy", smallModel, "--batch-high", "32", "--program"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "infer.py")
	if err := os.WriteFile(path, []byte(change(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serves starts the program and returns its address.
func serves(t *testing.T, python, path string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), python, path, smallModel, "--serve", "0")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() }) //nolint:errcheck // the test is over
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program did not begin to serve: %v", err)
	}
	return line[strings.Index(line, "http") : len(line)-1]
}

// reply is what the program answers to a sample.
type reply struct {
	status int
	batch  string
	body   []byte
}

func post(t *testing.T, client *http.Client, address string, body []byte) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return reply{}
	}
	got, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	if err != nil {
		t.Error(err)
	}
	return reply{got.StatusCode, got.Header.Get("Batch-Size"), answer}
}

// atOnce posts the samples at the same time.
func atOnce(t *testing.T, address string, samples ...[]byte) []reply {
	replies := make([]reply, len(samples))
	var group sync.WaitGroup
	for i, one := range samples {
		group.Go(func() { replies[i] = post(t, http.DefaultClient, address, one) })
	}
	group.Wait()
	return replies
}

var load = []string{"--device", "raspberry-pi-4", "--rate", "500/s", "--p99", "50ms"}

// policy writes another policy into the program.
func policy(most, wait string) func(string) string {
	return func(text string) string {
		return regexp.MustCompile(`(?m)^max_batch, wait_seconds = .*$`).ReplaceAllString(text, "max_batch, wait_seconds = "+most+", "+wait)
	}
}

// The program puts together what comes, by its policy: nobody waits when max_batch are
// there, nobody longer than wait_seconds, and each gets the answer to its own sample.
func TestTheProgramPutsSamplesTogether(t *testing.T) {
	python := withPython(t)
	unable := program(t, func(text string) string { return text }, "--device", "raspberry-pi-4")
	if said, err := exec.CommandContext(t.Context(), python, unable, smallModel, "--serve", "0").CombinedOutput(); err == nil || !strings.Contains(string(said), "--serve: programs for a rate") {
		t.Errorf("a program without a rate is asked to serve: %v, %s", err, said)
	}
	alone := serves(t, python, program(t, policy("1", "3600"), load...))
	full := serves(t, python, program(t, policy("4", "3600"), load...))
	short := serves(t, python, program(t, policy("4", "0.01"), load...))
	samples := [][]byte{npy(0), npy(1), npy(-3), npy(9)}
	want := atOnce(t, alone, samples...)
	got := atOnce(t, full, samples...)
	for i, one := range got {
		if one.status != 200 || one.batch != "4" || want[i].status != 200 || want[i].batch != "1" || len(one.body) != len(want[i].body) || !near(one.body, want[i].body) {
			t.Errorf("sample %d: status %d in a batch of %s, status %d in a batch of %s, the same answer %v", i, one.status, one.batch, want[i].status, want[i].batch, near(one.body, want[i].body))
		}
	}
	if near(got[0].body, got[3].body) {
		t.Error("two samples have the same answer: the test shows nothing")
	}
	if one := post(t, http.DefaultClient, short, samples[0]); one.status != 200 || one.batch != "1" {
		t.Errorf("one that is alone: status %d in a batch of %s", one.status, one.batch)
	}
	// A sample that is none harms nobody who shares its batch.
	mixed := atOnce(t, full, samples[0], samples[1], samples[2], bytes.Replace(npy(0), []byte("(1, 28, 28)"), []byte("(1, 14, 56)"), 1))
	for i, one := range mixed {
		if wrong := i == 3; (one.status == 400) != wrong || !wrong && !near(one.body, want[i].body) {
			t.Errorf("with a wrong one, sample %d: status %d, %s", i, one.status, one.body)
		}
	}
	for name, body := range map[string][]byte{"empty": {}, "no sample": []byte("sample"), "cut off": samples[0][:200]} {
		if one := post(t, http.DefaultClient, short, body); one.status != 400 || len(one.body) == 0 {
			t.Errorf("%s: status %d, %s", name, one.status, one.body)
		}
	}
}

// near reports whether two answers have the same numbers, but for rounding.
func near(a, b []byte) bool {
	if len(a) != len(b) || len(a) < 128 {
		return false
	}
	for at := 128; at+4 <= len(a); at += 4 {
		x, y := math.Float32frombits(binary.LittleEndian.Uint32(a[at:])), math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))
		if math.Abs(float64(x-y)) > 1e-3*(1+math.Abs(float64(y))) {
			return false
		}
	}
	return true
}

// The policy for a model that was measured here serves a real load from here. How far the
// measured 99th percentile is from the predicted one is for bench/edgetune/batching.
func TestTheProgramServesALoad(t *testing.T) {
	python := withPython(t)
	runs := filepath.Join(t.TempDir(), "runs.json")
	withONNXRuntime(t)
	var measured, faults bytes.Buffer
	if code := execute(t, []string{"edge", "run", smallModel, "--batch", "1,8,32", "--threads", "1,2", "--seconds", "0.1", "--json"}, &measured, &faults); code != 0 {
		t.Fatal(faults.String())
	}
	if err := os.WriteFile(runs, measured.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const rate, requests = 200.0, 400
	args := []string{"--device", "this-machine", "--measured", smallModel + "=" + runs, "--rate", "200/s", "--p99", "100ms"}
	predicted, err := said(t, append([]string{"deploy", smallModel, "--batch-high", "32"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	address := serves(t, python, program(t, func(text string) string { return text }, args...))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: requests}}
	post(t, client, address, npy(0))
	seconds := make([]float64, requests)
	var group sync.WaitGroup
	begin := time.Now()
	for i, at := range (batching.Poisson{Rate: rate}).Times(requests, 1) {
		due := begin.Add(time.Duration(at * float64(time.Second)))
		time.Sleep(time.Until(due))
		group.Go(func() {
			if one := post(t, client, address, npy(float32(i%9))); one.status != 200 {
				t.Errorf("request %d: status %d, %s", i, one.status, one.body)
			}
			seconds[i] = time.Since(due).Seconds()
		})
	}
	group.Wait()
	slices.Sort(seconds)
	t.Logf("measured by the client: p99 %.3g ms of %d requests at %g/s\n%s", 1e3*seconds[requests*99/100], requests, rate, predicted)
}
