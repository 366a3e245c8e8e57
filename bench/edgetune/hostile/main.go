// Command hostile runs commands of "tandem edge" on files that nobody should trust,
// and says what each took: its exit code, seconds, memory and lines.
//
//	go run ./bench/edgetune/hostile -tandem BINARY [-onnxruntime FOLDER] [-folder KEEP]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/onnx/onnxtest"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	write := flags.Bool("write", false, "write the files into the folder, and no more")
	binary := flags.String("tandem", "tandem", "the program")
	runtime := flags.String("onnxruntime", "", "ONNX Runtime's folder; without it nothing is run")
	folder := flags.String("folder", "", "folder for the files, which are kept there")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *folder == "" {
		made, err := os.MkdirTemp("", "hostile-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		*folder = made
	}
	if *write {
		return writeAll(*folder)
	}
	// In a process of its own: the memory of a process that starts others counts as theirs.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if said, err := exec.Command(self, "-write", "-folder", *folder).CombinedOutput(); err != nil {
		return fmt.Errorf("write the files: %w: %s", err, said)
	}
	names, err := os.ReadFile(filepath.Join(*folder, "names"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| file | command | exit code | seconds | CPU seconds | MiB | lines | error |\n|---|---|---|---|---|---|---|---|")
	var slowest, busiest, largest, longest float64
	for i, name := range strings.Split(strings.TrimSpace(string(names)), "\n") {
		path := filepath.Join(*folder, fmt.Sprintf("%02d.onnx", i))
		commands := [][]string{{"deploy", path}}
		if *runtime != "" {
			commands = append(commands, []string{"run", path, "--onnxruntime", *runtime, "--seconds", "0.2", "--timeout", "5s"})
		}
		for _, command := range commands {
			took := measure(*binary, append([]string{"edge"}, command...))
			slowest, busiest, largest, longest = max(slowest, took.seconds), max(busiest, took.busy), max(largest, took.mebibytes), max(longest, float64(took.lines))
			fmt.Fprintf(out, "| %s | %s | %d | %.2f | %.2f | %.0f | %d | %.160s |\n", name, command[0], took.code, took.seconds, took.busy, took.mebibytes, took.lines, strings.ReplaceAll(took.words, "|", "/"))
		}
	}
	fmt.Fprintf(out, "\nAt most %.2f s, %.2f s of CPU, %.0f MiB, %.0f lines.\n", slowest, busiest, largest, longest)
	return nil
}

// writeAll writes the files and their names.
func writeAll(folder string) error {
	files := map[string][]byte{}
	var names strings.Builder
	for i, one := range onnxtest.Hostile() {
		files[fmt.Sprintf("%02d.onnx", i)] = one.Content()
		names.WriteString(one.Name + "\n")
	}
	files["names"] = []byte(names.String())
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

type took struct {
	code, lines              int
	seconds, busy, mebibytes float64
	words                    string
}

// measure runs a command, with the processes that it starts.
func measure(binary string, arguments []string) took {
	command := exec.Command(binary, arguments...)
	var said bytes.Buffer
	command.Stderr = &said
	began := time.Now()
	_ = command.Run() // how it ended is in its state
	t := took{seconds: time.Since(began).Seconds(), words: strings.TrimSpace(said.String())}
	t.lines = strings.Count(t.words, "\n") + 1
	t.busy = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.mebibytes = float64(usage.Maxrss) / 1024
	}
	t.code = command.ProcessState.ExitCode()
	return t
}
