package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

//go:embed onnx_runtime.py
var script string

// onnxRuntime infers in a process of its own: a line with the number of samples
// goes in, a line comes back when they are done.
type onnxRuntime struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// withONNX compares with ONNX Runtime; command is the interpreter and the
// arguments of the script.
func withONNX(p plan, command []string) error {
	process := exec.Command(command[0], append([]string{"-c", script}, command[1:]...)...)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("the interpreter with ONNX Runtime (-python): %w", err)
	}
	r := &onnxRuntime{in: in, out: bufio.NewReader(out)}
	err = r.greet()
	if err == nil {
		err = compare(os.Stdout, r, p)
	}
	in.Close() // ends the process
	if ended := process.Wait(); err == nil {
		err = ended
	}
	return err
}

// greet prints what the process says it runs.
func (r *onnxRuntime) greet() error {
	line, err := r.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("ONNX Runtime did not start: %w", err)
	}
	fmt.Print(line)
	return nil
}

func (r *onnxRuntime) infer(batch int) error {
	if _, err := fmt.Fprintln(r.in, batch); err != nil {
		return err
	}
	line, err := r.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "done" {
		err = fmt.Errorf("ONNX Runtime answered %q", line)
	}
	return err
}
