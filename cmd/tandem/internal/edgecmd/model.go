package edgecmd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

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
