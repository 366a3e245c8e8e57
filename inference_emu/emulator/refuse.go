package emulator

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// refuse keeps what is too large for its limits from the library, which would find out
// late, and files of other formats. Whatever else is wrong the library says: it knows more operators.
func (p *process) refuse() error {
	defer debug.FreeOSMemory() // so that it is not taken for the model's
	g, err := onnx.Read(p.model, onnx.Options{Dimensions: p.order.Inputs.Dimensions})
	if problem.Is(err, problem.Exhausted) {
		return problem.New(problem.Exhausted, "the model is not loaded, for a size or memory limit: %w", err)
	}
	if err != nil {
		return document.Foreign(p.model)
	}
	for _, op := range g.Operators {
		for _, name := range op.Outputs {
			if bytes := g.Tensors[name].Bytes(); bytes > p.order.Limits.MemoryBytes {
				return problem.New(problem.Exhausted, "the model is not loaded: what %s %q writes has %d MiB, more than the memory of %d MiB that the model may have: allow more with --memory",
					op.Kind, op.Name, bytes>>20, p.order.Limits.MemoryBytes>>20)
			}
		}
	}
	return nil
}

// Map is the content of a file of the size, of which only what is looked at is read. If the
// file becomes shorter meanwhile, looking ends in a fault (debug.SetPanicOnFault).
func Map(file *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	content, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return content, nil
}

// Unmap gives back what [Map] returned.
func Unmap(content []byte) {
	if content != nil {
		_ = unix.Munmap(content) // nothing can be done about it
	}
}
