package edgecmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
)

// maxModelBytes bounds the model files that are read into memory: the most that
// the format allows.
const maxModelBytes = 1<<31 - 1

// inspectFlags are the flags of "tandem edge inspect".
type inspectFlags struct {
	batch      int64
	by         string
	json       bool
	dimensions map[string]string
}

func inspectCommand() *cobra.Command {
	var flags inspectFlags
	command := &cobra.Command{
		Use:   "inspect MODEL.onnx",
		Short: "Say what an inference of a model costs: operations, bytes, memory, parameters",
		Long: `Say what an inference of a model costs: operations, bytes, parameters and the
most memory that its activations need, by operator or by class of operators, and
the key of its architecture. Nothing is run and no weight is read. A
multiplication and an addition count as two operations; docs/edge.md says what
else is counted.`,
		Example: `  tandem edge inspect model.onnx
  tandem edge inspect model.onnx --batch 32 --by operator
  tandem edge inspect text.onnx --dimension sequence=128 --json`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return term.Misuse("give one model file: tandem edge inspect MODEL.onnx")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return flags.run(command.OutOrStdout(), args[0])
		},
	}
	command.Flags().Int64Var(&flags.batch, "batch", 1, "samples in one inference")
	command.Flags().StringVar(&flags.by, "by", "class", "rows of the table: class or operator")
	command.Flags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	command.Flags().StringToStringVar(&flags.dimensions, "dimension", nil, "sizes of dimensions that the file leaves open, as `name=size`")
	return command
}

// inspected is what "tandem edge inspect --json" prints.
type inspected struct {
	Name      string           `json:"name"`
	Key       string           `json:"key"`
	Cost      graph.Cost       `json:"cost"`
	Inputs    []graph.Tensor   `json:"inputs"`
	Outputs   []graph.Tensor   `json:"outputs"`
	Operators []graph.Operator `json:"operators,omitempty"`
}

func (f *inspectFlags) run(out io.Writer, path string) error {
	if f.by != "class" && f.by != "operator" {
		return term.Misuse("--by %q: it is class or operator", f.by)
	}
	if f.batch < 1 || f.batch > 1<<20 {
		return term.Misuse("--batch %d: it is from 1 to %d", f.batch, 1<<20)
	}
	g, err := readModel(path, f.dimensions)
	if err != nil {
		return err
	}
	cost := g.Cost(f.batch)
	if f.json {
		document := inspected{Name: g.Name, Key: g.Key(), Cost: cost, Inputs: g.Inputs, Outputs: g.Outputs}
		if f.by == "operator" {
			document.Operators = g.Operators
		}
		return term.WriteJSON(out, document)
	}
	if f.by == "operator" {
		err = printOperators(out, g, f.batch)
	} else {
		err = printClasses(out, cost)
	}
	if err != nil {
		return err
	}
	return printInspected(out, g, cost)
}

// readModel reads the graph of a model file; dimensions are the sizes that the
// file leaves open. Its errors name the file, and what to add to the command.
func readModel(path string, dimensions map[string]string) (graph.Graph, error) {
	options := onnx.Options{Dimensions: map[string]int64{}}
	for name, text := range dimensions {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil || size < 1 {
			return graph.Graph{}, term.Misuse("--dimension %s=%s: the size is a number from 1", name, text)
		}
		options.Dimensions[name] = size
	}
	g, err := readGraph(path, options)
	var known *problem.Error
	switch open := errors.As(err, &known) && len(known.Fields) > 0; {
	case err == nil:
		return g, nil
	case open:
		return graph.Graph{}, term.Misuse("%s: %s; give sizes with --dimension name=size", path, oneLine(*known))
	case len(dimensions) > 0:
		return graph.Graph{}, term.Misuse("%s with --dimension %s: %w; other sizes may fit", path, shownDimensions(dimensions), err)
	}
	return graph.Graph{}, term.Misuse("%s: %w", path, err)
}

// oneLine is all that is wrong, in a line.
func oneLine(e problem.Error) string {
	parts := make([]string, len(e.Fields))
	for i, one := range e.Fields {
		parts[i] = one.String()
	}
	return e.Detail + ": " + strings.Join(parts, "; ")
}

// shownDimensions are sizes as the flag takes them.
func shownDimensions(dimensions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		parts = append(parts, name+"="+dimensions[name])
	}
	return strings.Join(parts, ",")
}

// readGraph reads the graph of a model file without its weights.
func readGraph(path string, options onnx.Options) (g graph.Graph, err error) {
	file, err := os.Open(filepath.Clean(path))
	if at := new(fs.PathError); errors.As(err, &at) {
		return g, at.Err
	}
	if err != nil {
		return g, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return g, err
	}
	if !info.Mode().IsRegular() {
		return g, fmt.Errorf("it is not a file")
	}
	if info.Size() > maxModelBytes {
		return g, fmt.Errorf("it has %s, at most %s are read: save its weights in another file (onnx.save_model with save_as_external_data), they are not needed here", format.Size(info.Size()), format.Size(maxModelBytes))
	}
	data, err := emulator.Map(file, info.Size())
	if err != nil {
		return g, err
	}
	defer emulator.Unmap(data)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if _, ok := fault.(interface{ Addr() uintptr }); !ok {
				panic(fault)
			}
			err = errors.New("it became shorter while it was read")
		}
	}()
	return onnx.Read(data, options)
}

func printClasses(out io.Writer, cost graph.Cost) error {
	var rows [][]string
	for _, part := range cost.Classes {
		rows = append(rows, []string{string(part.Class), strconv.Itoa(part.Operators), shownOperations(part.Operations), show.Count(float64(part.Parameters)),
			format.Size(part.WeightBytes), format.Size(part.ReadBytes), format.Size(part.WrittenBytes)})
	}
	rows = append(rows, []string{"all", strconv.Itoa(cost.Operators), shownOperations(cost.Operations), show.Count(float64(cost.Parameters)),
		format.Size(cost.WeightBytes), format.Size(cost.ReadBytes), format.Size(cost.WrittenBytes)})
	return term.Table(out, []string{"CLASS", "OPERATORS", "OPERATIONS", "PARAMETERS", "WEIGHTS", "READ", "WRITTEN"}, rows)
}

func printOperators(out io.Writer, g graph.Graph, batch int64) error {
	var rows [][]string
	for _, op := range g.Operators {
		scale := g.Scale(op, batch)
		shape := ""
		if len(op.Outputs) > 0 {
			shape = shownShape(g.Tensors[op.Outputs[0]])
		}
		rows = append(rows, []string{format.Plain(op.Name), format.Plain(op.Kind), string(op.Class), shape, shownOperations(graph.Product(op.Operations, scale)),
			show.Count(float64(op.Parameters)), format.Size(op.WeightBytes), format.Size(graph.Product(op.ReadBytes, scale)), format.Size(graph.Product(op.WrittenBytes, scale))})
	}
	return term.Table(out, []string{"OPERATOR", "KIND", "CLASS", "OUTPUT", "OPERATIONS", "PARAMETERS", "WEIGHTS", "READ", "WRITTEN"}, rows)
}

// mostUncounted bounds the operators that are named.
const mostUncounted = 20

// printInspected prints what is about the model as a whole.
func printInspected(out io.Writer, g graph.Graph, cost graph.Cost) error {
	fmt.Fprintf(out, "\nBatch:        %d", cost.Batch)
	for _, input := range g.Inputs {
		fmt.Fprintf(out, ", %s %s %s", format.Plain(input.Name), input.Type, shownShape(input))
	}
	fmt.Fprintf(out, "\nOperations:   %s an inference, %s a sample (a multiplication and an addition are two)\n", shownOperations(cost.Operations), shownOperations(cost.Operations/cost.Batch))
	fmt.Fprintf(out, "Model:        %s parameters, %s stored\n", show.Count(float64(cost.Parameters)), format.Size(cost.StoredBytes))
	fmt.Fprintf(out, "Activations:  %s at most at once\n", format.Size(cost.PeakActivationBytes))
	if len(g.Inputs) > 0 && len(g.Inputs[0].Shape) > 1 && g.Inputs[0].Shape[0] > 1 {
		fmt.Fprintf(out, "Note:         the file fixes the first dimension of %s: a sample is here %d of it\n", format.Plain(g.Inputs[0].Name), g.Inputs[0].Shape[0])
	}
	if names := cost.Uncounted; len(names) > 0 {
		more := ""
		if len(names) > mostUncounted {
			more = fmt.Sprintf(" and %d more", len(names)-mostUncounted)
		}
		fmt.Fprintf(out, "Not counted:  operations of %s%s\n", format.Plain(strings.Join(names[:min(len(names), mostUncounted)], ", ")), more)
	}
	_, err := fmt.Fprintf(out, "Architecture: %s\n", g.Key())
	return err
}

// shownOperations is a number of operations with its unit.
func shownOperations(count int64) string {
	units := []string{"", " k", " M", " G", " T", " P"}
	value, unit := float64(count), 0
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	return strconv.FormatFloat(value, 'g', 4, 64) + units[unit]
}

// shownShape is a shape for one sample.
func shownShape(t graph.Tensor) string {
	sizes := make([]string, len(t.Shape))
	for i, size := range t.Shape {
		sizes[i] = strconv.FormatInt(size, 10)
	}
	return strings.Join(sizes, "x")
}
