package emulator

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/tandem-tune/tandem/internal/problem"
)

// session is a model that is ready to run with a batch.
type session struct {
	running     *onnxruntime.DynamicAdvancedSession
	inputs      []onnxruntime.Value
	outputs     []onnxruntime.Value
	loadSeconds float64
	described   []Input
	assumed     []string
}

// look reads what goes into the model and what comes out. Of a file that does not
// say so the library must say what it is.
func (p *process) look() error {
	inputs, outputs := declarations(p.model)
	p.names = slices.Concat(inputs, outputs)
	for _, one := range inputs {
		p.inputs = append(p.inputs, one.tensor)
	}
	for _, one := range outputs {
		p.outputs = append(p.outputs, one.tensor)
	}
	if len(inputs) > 0 && len(outputs) > 0 {
		return nil
	}
	options, err := sessionOptions(Cell{Threads: 1})
	if err != nil {
		return err
	}
	defer options.Destroy()
	session, err := onnxruntime.NewDynamicAdvancedSessionWithONNXData(p.model, nil, nil, options)
	if err != nil {
		return runtimeError("load the model", err)
	}
	defer session.Destroy()
	return problem.New(problem.Invalid, "the model has %d inputs and %d outputs: it needs one of each to be run", len(inputs), len(outputs))
}

// open makes the model ready and its inputs up. The threads of the session run on
// the cores of the calling thread.
func (p *process) open(cell Cell) (*session, error) {
	wanted, given := p.inputs, p.outputs
	s := &session{outputs: make([]onnxruntime.Value, len(given))}
	if err := s.feed(p, cell, wanted, given); err != nil {
		s.close()
		return nil, err
	}
	options, err := sessionOptions(cell)
	if err != nil {
		s.close()
		return nil, err
	}
	defer options.Destroy()
	began := time.Now()
	s.running, err = onnxruntime.NewDynamicAdvancedSessionWithONNXData(p.model, namesOf(wanted), namesOf(given), options)
	s.loadSeconds = time.Since(began).Seconds()
	if err != nil {
		s.close()
		return nil, runtimeError("load the model", err)
	}
	return s, nil
}

func sessionOptions(cell Cell) (*onnxruntime.SessionOptions, error) {
	options, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, runtimeError("make session options", err)
	}
	for _, set := range []error{
		options.SetIntraOpNumThreads(cell.Threads),
		options.SetInterOpNumThreads(1),
		options.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelEnableAll),
		options.SetLogSeverityLevel(onnxruntime.LoggingLevelFatal),
	} {
		if set != nil {
			options.Destroy()
			return nil, runtimeError("set session options", set)
		}
	}
	if err := provide(options, cell); err != nil {
		options.Destroy()
		return nil, runtimeError("use the execution provider "+cell.Provider, err)
	}
	return options, nil
}

// feed makes up a tensor for each input, and one for each output that the library's
// binding cannot: those of short floats.
func (s *session) feed(p *process, cell Cell, wanted, given []onnxruntime.InputOutputInfo) error {
	shaper := &shaper{inputs: p.order.Inputs, names: p.names, batch: int64(cell.Batch)}
	left := p.order.Limits.MemoryBytes
	for _, one := range wanted {
		shape, err := shaper.shape(one)
		if err != nil {
			return err
		}
		value, err := makeUp(one, shape, p.order.Inputs.IntegersBelow, left)
		if err != nil {
			return err
		}
		of := elementOf(one.DataType)
		left -= shape.FlattenedSize() * of.bytes
		s.inputs = append(s.inputs, value)
		s.described = append(s.described, Input{Name: one.Name, Type: of.name, Shape: shape})
	}
	s.assumed = shaper.assumed
	for at, one := range given {
		if one.DataType != onnxruntime.TensorElementDataTypeFloat16 && one.DataType != onnxruntime.TensorElementDataTypeBFloat16 {
			continue
		}
		shape, err := shaper.shape(one)
		if err != nil {
			return err
		}
		if s.outputs[at], err = makeUp(one, shape, 1, left); err != nil {
			s.outputs[at] = nil
			return err
		}
	}
	if !shaper.batched && !alreadyBatched(s.described, cell.Batch) {
		return problem.New(problem.Invalid, "the model takes no batch of %d: no input has an open batch dimension. Export it with one (torch.onnx.export: dynamic_axes={%q: {0: \"batch\"}}), or name it with --batch-dim", cell.Batch, wanted[0].Name)
	}
	return nil
}

// alreadyBatched reports whether the batch is 1, or what the model was exported
// for.
func alreadyBatched(inputs []Input, batch int) bool {
	return batch == 1 || inputs[0].Shape[0] == int64(batch)
}

func namesOf(tensors []onnxruntime.InputOutputInfo) []string {
	var names []string
	for _, one := range tensors {
		names = append(names, one.Name)
	}
	return names
}

// run infers once. The tensors for the outputs of the first run are used again by
// the later ones, as a server would.
func (s *session) run() (seconds float64, err error) {
	began := time.Now()
	err = s.running.Run(s.inputs, s.outputs)
	seconds = time.Since(began).Seconds()
	if err != nil {
		s.outputs = nil // some may be there only by half
		return 0, runtimeError("run the model", err)
	}
	s.dropUnusable()
	return seconds, nil
}

// dropUnusable frees outputs that a next run cannot write into.
func (s *session) dropUnusable() {
	for at, output := range s.outputs {
		_, text := output.(*onnxruntime.StringTensor)
		if text || output.GetONNXType() != onnxruntime.ONNXTypeTensor {
			_ = output.Destroy() // it only reports a second call
			s.outputs[at] = nil
		}
	}
}

// close frees what the session holds.
func (s *session) close() {
	for _, value := range append(s.inputs, s.outputs...) {
		if value != nil {
			_ = value.Destroy()
		}
	}
	if s.running != nil {
		_ = s.running.Destroy()
	}
	s.inputs, s.outputs = nil, nil
	runtime.GC()
}

// sourceLine is where in its source the library found something wrong: file, line
// and function.
var sourceLine = regexp.MustCompile(`/onnxruntime_src/\S+:\d+ [^(]*\(.*?\) `)

// runtimeError says what the library said, and whether memory was the reason.
func runtimeError(doing string, err error) error {
	text := err.Error()
	for _, wrapped := range []string{"Error creating C session: ", "Error running network: ", "Error creating C session from buffer: "} {
		text = strings.TrimPrefix(text, wrapped)
	}
	text = sourceLine.ReplaceAllString(text, "")
	const longest = 1000
	if len(text) > longest {
		text = text[:longest] + " ..."
	}
	if outOfMemory(text) {
		return problem.New(problem.Exhausted, "%s: the model needs more memory than it may have: allow more with --memory, or a smaller batch (ONNX Runtime: %s)", doing, text)
	}
	return problem.New(problem.Invalid, "%s: ONNX Runtime refuses: %s", doing, text)
}

// outOfMemory reports whether a text of the library, of the C++ library (which has
// a system error where a thread has no memory for its stack) or of
// Go's runtime says so.
func outOfMemory(text string) bool {
	said := []string{"bad_alloc", "Failed to allocate memory", "out of memory", "cannot allocate memory", "Cannot allocate memory", "pthread_create failed", "std::system_error"}
	return slices.ContainsFunc(said, func(one string) bool { return strings.Contains(text, one) })
}
