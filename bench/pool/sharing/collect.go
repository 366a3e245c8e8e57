package sharing

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

//go:embed collect/*.py
var collector embed.FS

// recording is what trainings used on a machine, alone and in pairs.
type recording struct {
	// Resource says what the utilization is of.
	Resource string  `json:"resource"`
	Recorded string  `json:"recorded"`
	Machine  machine `json:"machine"`
	// Profiles are of networks that trained alone, for the prediction of
	// utilization.
	Profiles []profile `json:"profiles"`
	// Alone and Pairs are of the same workloads, for the prediction of
	// interference.
	Alone []aloneRun `json:"alone"`
	Pairs []pairRun  `json:"pairs"`
	// Failed says what could not be recorded.
	Failed []string `json:"failed,omitempty"`
}

type machine struct {
	Cores     int     `json:"cores"`
	Processor string  `json:"processor"`
	Torch     string  `json:"torch"`
	Load      float64 `json:"load"` // of the minute before, when it began
	Seconds   float64 `json:"seconds"`
}

type profile struct {
	utilization.Sample
	Architecture string  `json:"architecture"`
	StepSeconds  float64 `json:"step_seconds"`
	ONNX         string  `json:"onnx,omitempty"` // of a line of the collector
	Batch        int64   `json:"batch,omitempty"`
}

// row of a series: seconds since the start, steps done, share of the machine
// that was kept busy, megabytes.
type row [4]float64

type aloneRun struct {
	Workload     string `json:"workload"`
	Architecture string `json:"architecture"`
	Batch        int64  `json:"batch"`
	Threads      int    `json:"threads"`
	Counts       []int  `json:"counts"`
	Series       []row  `json:"series"`
}

type pairRun struct {
	First        string `json:"first"`
	Second       string `json:"second"`
	FirstSeries  []row  `json:"first_series"`
	SecondSeries []row  `json:"second_series"`
}

// ofCores is what the collector's utilization is of.
const ofCores = "share of the machine's cores kept busy; no GPU: a stand-in"

// collect has the collector train for some minutes, and keeps what it says.
func collect(ctx context.Context, python string, minutes float64, path string) error {
	folder, err := os.MkdirTemp("", "tandem-collect-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is below the system's temporary folder
	scripts, err := fs.Sub(collector, "collect")
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, scripts); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, python, filepath.Join(folder, "collect.py"), filepath.Join(folder, "onnx"), "--minutes", strconv.FormatFloat(minutes, 'g', -1, 64))
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("-python %s: %w", python, err)
	}
	r := &recording{Resource: ofCores, Recorded: time.Now().UTC().Format(time.DateOnly)}
	graphs := map[string]graph.Graph{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		if err := r.add(lines.Bytes(), filepath.Join(folder, "onnx"), graphs); err != nil {
			return fmt.Errorf("the collector said %.200q: %w", lines.Text(), err)
		}
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("-python %s: %w: %s", python, err, lastLines(complaint.String()))
	}
	fmt.Printf("%d profiles, %d runs alone, %d pairs, %d failed\n", len(r.Profiles), len(r.Alone), len(r.Pairs), len(r.Failed))
	return r.write(path)
}

func lastLines(text string) string { return text[max(0, len(text)-2000):] }

// add takes a line of the collector.
func (r *recording) add(line []byte, folder string, graphs map[string]graph.Graph) error {
	var kind struct {
		Kind string `json:"kind"`
		What string `json:"what"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "machine":
		return json.Unmarshal(line, &r.Machine)
	case "profile":
		var one profile
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		if err := readGraph(one.ONNX, folder, graphs); err != nil {
			r.fail(err.Error()) // the others are worth keeping
			return nil
		}
		one.Features = utilization.Describe(graphs[one.ONNX], one.Batch)
		one.ONNX, one.Batch = "", 0
		r.Profiles = append(r.Profiles, one)
	case "alone":
		var one aloneRun
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		r.Alone = append(r.Alone, one)
	case "pair":
		var one pairRun
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		r.Pairs = append(r.Pairs, one)
	case "failed":
		r.fail(kind.What)
	}
	return nil
}

func (r *recording) fail(what string) {
	r.Failed = append(r.Failed, what)
	fmt.Fprintln(os.Stderr, "failed:", what)
}

// readGraph reads a network once.
func readGraph(name, folder string, graphs map[string]graph.Graph) error {
	if _, known := graphs[name]; known {
		return nil
	}
	file, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the collector wrote it
	if err != nil {
		return err
	}
	g, err := onnx.Read(file, onnx.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	graphs[name] = g
	return nil
}

// write keeps a recording with a line for each run, so that a change of one is
// seen as that.
func (r *recording) write(path string) error {
	document, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for _, begin := range []string{`{"features":`, `{"workload":`, `{"first":`} {
		document = bytes.ReplaceAll(document, []byte(begin), append([]byte("\n"), begin...))
	}
	return os.WriteFile(path, append(document, '\n'), 0o644) //nolint:gosec // nothing in it is secret
}

func readRecording(path string) (*recording, error) {
	document, err := os.ReadFile(path) //nolint:gosec // the user named it
	if err != nil {
		return nil, fmt.Errorf("the recorded profiles are not there (-profiles FILE; -collect FILE records some): %w", err)
	}
	var r recording
	if err := json.Unmarshal(document, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}
