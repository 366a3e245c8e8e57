package replayed

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	poolreplay "github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/trace"
	"github.com/tandem-tune/tandem/internal/problem"
)

// read reads the machines and the trace, and cuts and stretches it as asked.
func (f replayFlags) read() (trace.Trace, trace.Machines, error) {
	machines, err := f.readMachines()
	if err != nil {
		return trace.Trace{}, machines, err
	}
	read, err := f.readJobs(machines)
	if err != nil {
		return read, machines, err
	}
	slices.SortStableFunc(read.Jobs, func(a, b poolreplay.Job) int { return cmp.Compare(a.Arrives, b.Arrives) })
	if f.jobs > 0 && f.jobs < len(read.Jobs) {
		read.Notes = append(read.Notes, fmt.Sprintf("Only the first %d of %d jobs are played (-jobs).", f.jobs, len(read.Jobs)))
		read.Jobs = read.Jobs[:f.jobs]
	}
	if f.stretch != 1 {
		for i := range read.Jobs {
			read.Jobs[i].Arrives *= f.stretch
		}
		read.Notes = append(read.Notes, fmt.Sprintf("Jobs arrive at %g times the recorded times (-stretch).", f.stretch))
	}
	if len(read.Jobs) == 0 {
		return read, machines, problem.New(problem.Invalid, "%s: there is no job in it that the machines can run. %s", strings.Join(f.traces, ", "), strings.Join(read.Notes, " "))
	}
	return read, machines, nil
}

func (f replayFlags) readMachines() (trace.Machines, error) {
	data, err := os.ReadFile(f.machines)
	if err != nil {
		return trace.Machines{}, fmt.Errorf("read the machines: %w", err)
	}
	machines, err := trace.ReadMachines(f.machines, data)
	if err != nil {
		return machines, err
	}
	if f.format != "alibaba" {
		if len(machines.Cluster.Machines) == 0 {
			return machines, problem.New(problem.Invalid, "%s: it has no machines: say how many there are of its types, as machines: [{type: name, count: 4}]", f.machines)
		}
		return machines, nil
	}
	nodes, err := openTrace(f.nodes)
	if err != nil {
		return machines, err
	}
	defer nodes.Close() //nolint:errcheck // it was only read
	return trace.AlibabaNodes(f.nodes, nodes, machines)
}

func (f replayFlags) readJobs(machines trace.Machines) (trace.Trace, error) {
	var exports []trace.Export
	for _, path := range f.traces {
		file, err := openTrace(path)
		if err != nil {
			return trace.Trace{}, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		exports = append(exports, trace.Export{File: path, In: file})
	}
	path, in := exports[0].File, exports[0].In
	switch f.format {
	case "gavel":
		file, err := openTrace(f.throughputs)
		if err != nil {
			return trace.Trace{}, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		throughputs, err := trace.ReadThroughputs(f.throughputs, file)
		if err != nil {
			return trace.Trace{}, err
		}
		return trace.Gavel(path, in, throughputs, machines)
	case "muri":
		return trace.Muri(path, in, machines)
	case "alibaba":
		return trace.AlibabaPods(path, in, machines)
	case "helios":
		return trace.Helios(path, in, machines)
	}
	return trace.Tandem(exports, machines)
}

// openTrace opens a file that may be packed by gzip.
func openTrace(path string) (io.ReadCloser, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, problem.New(problem.Invalid, "%s: %w", path, err)
	}
	const most = 1 << 30
	data, err := io.ReadAll(io.LimitReader(unpacked, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("it unpacks to more than %d bytes", most)
	}
	if err != nil {
		return nil, problem.New(problem.Invalid, "%s: %w", path, err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}
