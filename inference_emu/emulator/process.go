package emulator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	onnxruntime "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Process is the other end of [Run]: it is called in the process that Run starts,
// does one job and returns the exit code. It reads its order from the standard
// input, the model from descriptor 3 and answers on descriptor 4.
func Process() int {
	p := &process{orders: bufio.NewReader(os.Stdin), answers: json.NewEncoder(os.NewFile(answerDescriptor, "answers"))}
	err := p.run()
	if err == nil {
		return 0
	}
	failed := failedMessage{Code: problem.CodeOf(err), Detail: err.Error()}
	if err := p.answers.Encode(message{Failed: &failed}); err != nil {
		fmt.Fprintln(os.Stderr, err) // the other end is gone
	}
	return 1
}

// process is the state of the locked-in process.
type process struct {
	orders  *bufio.Reader
	answers *json.Encoder
	order   order
	memory  *memoryGauge
	model   []byte
	// names, inputs and outputs are what the file declares.
	names           []declared
	inputs, outputs []onnxruntime.InputOutputInfo
}

func (p *process) run() error {
	// The cores of this thread are set, and inherited by those that the session
	// starts.
	runtime.LockOSThread()
	line, err := p.orders.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := json.Unmarshal(line, &p.order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if p.memory, err = openMemoryGauge(); err != nil {
		return err
	}
	if p.order.Inspect {
		return p.inspect()
	}
	if err := p.prepare(); err != nil {
		return err
	}
	// From here on the file is looked at.
	if err := p.refuse(); err != nil {
		return err
	}
	if err := p.look(); err != nil {
		return err
	}
	// Collecting garbage would disturb what is measured; it is done in between.
	debug.SetGCPercent(-1)
	for _, cell := range p.order.Cells {
		if err := p.measure(cell); err != nil {
			return err
		}
	}
	return nil
}

// prepare loads the library and the bytes of the file, and locks the process in
// before anything has looked at them.
func (p *process) prepare() error {
	layers, err := limit(p.order)
	if err != nil {
		return err
	}
	onnxruntime.SetSharedLibraryPath(p.order.Library)
	if err := onnxruntime.InitializeEnvironment(onnxruntime.WithLogLevelFatal()); err != nil {
		return problem.New(problem.NotFound, "ONNX Runtime at %s cannot be used: %w", p.order.Library, err)
	}
	version := onnxruntime.GetVersion()
	if err := onnxruntime.DisableTelemetry(); err != nil {
		return fmt.Errorf("turn telemetry off: %w", err)
	}
	if err := loadProvider(p.order); err != nil {
		return err
	}
	if p.model, err = readModel(p.order.Limits.ModelBytes); err != nil {
		return err
	}
	now, err := p.memory.read()
	if err != nil {
		return err
	}
	folder := ""
	if p.order.Cells[0].Provider != "" {
		folder = filepath.Dir(p.order.Library)
	}
	more, err := lockIn(now.data+p.order.Limits.MemoryBytes+stacks(p.order.Cells), folder)
	if err != nil {
		return err
	}
	return p.answers.Encode(message{Ready: &readyMessage{Runtime: version, LibraryBytes: now.resident, Layers: append(layers, more...)}})
}

// stackBytes is what each thread has for its stack, which counts as data, though
// nearly nothing of it is used.
const stackBytes = 8 << 20

// stacks are what the threads of a session take for theirs; one thread is there
// already.
func stacks(cells []placed) int64 {
	threads := 1
	for _, cell := range cells {
		threads = max(threads, cell.Threads)
	}
	return int64(threads-1) * stackBytes
}

func modelSize(limit int64) (int64, error) {
	var about unix.Stat_t
	if err := unix.Fstat(modelDescriptor, &about); err != nil {
		return 0, fmt.Errorf("look at the model: %w", err)
	}
	if about.Size > limit {
		return 0, tooLarge(about.Size, limit)
	}
	return about.Size, nil
}

// mapModel is the file without its weights being read.
func mapModel(limit int64) ([]byte, error) {
	size, err := modelSize(limit)
	if err != nil {
		return nil, err
	}
	return Map(os.NewFile(modelDescriptor, "model"), size)
}

func readModel(limit int64) ([]byte, error) {
	size, err := modelSize(limit)
	if err != nil {
		return nil, err
	}
	content := make([]byte, size)
	for at := 0; at < len(content); {
		n, err := unix.Pread(modelDescriptor, content[at:], int64(at))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("read the model: %w", err)
		case n == 0:
			return nil, problem.New(problem.Invalid, "the model became shorter while it was read")
		default:
			at += n
		}
	}
	return content, nil
}

// await waits until the other end has taken note.
func (p *process) await() error {
	if _, err := p.orders.ReadByte(); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("nobody listens any more")
		}
		return err
	}
	return nil
}

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() (seconds float64, preempted int64, err error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9, usage.Nivcsw, nil
}
