// Package engine is what the engines of a launcher have in common: the script that starts
// a worker, the commands that they run, and what a worker said last.
package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// Options are those of every engine.
type Options struct {
	// Name tells the jobs of this launcher from those of others of the same user.
	Name string
	// Logs is the folder of the jobs' output, on a disk that all nodes have.
	Logs string
	// Worker is the command line of a worker: the program, "worker" and its flags,
	// without a token's text.
	Worker []string
	// Enrolments is the folder of the launches' tokens; empty: workers have another.
	Enrolments Enrolments
	// Home and Path are those that workers start with; empty: those that they are given.
	Home, Path string
}

// margin is how long before the time limit a worker counts itself as ended.
const margin = time.Minute

// Script is a script of the shell that becomes a worker of the shape. The command start
// comes before the worker's; scratch, its folder, and launch are words of the shell.
func (o Options) Script(s launcher.Shape, start, scratch, launch string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# A worker that tandem launch ordered.\n")
	if o.Home != "" {
		b.WriteString("export HOME=" + Quote(o.Home))
		if o.Path != "" {
			b.WriteString(" PATH=" + Quote(o.Path))
		}
		b.WriteString("\n")
	}
	for _, line := range s.Setup {
		b.WriteString(line + "\n")
	}
	worker := append(append([]string{}, o.Worker...), "--slots", strconv.Itoa(s.Trials), "--end-at", (s.TimeLimit - margin).String())
	if len(s.Labels) > 0 {
		worker = append(worker, "--label", selector.Shown(s.Labels))
	}
	if len(s.Taints) > 0 {
		worker = append(worker, "--taint", strings.Join(s.Taints, ","))
	}
	b.WriteString("exec " + start)
	for i, word := range worker {
		b.WriteString(" " + Quote(word))
		if i == 1 { // before the user's flags, which may say otherwise
			b.WriteString(" --scratch " + scratch)
		}
	}
	if o.Enrolments != "" {
		b.WriteString(" --token-file " + Quote(string(o.Enrolments)) + "/" + launch)
	}
	b.WriteString(" --launch " + launch + "\n")
	return b.String()
}

// Quote makes one word of the shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Explain adds to a job that failed what its worker said last, and where. A job whose
// output is gone keeps the engine's word.
func Explain(job *launcher.Job, log string) {
	content, err := os.ReadFile(log) //nolint:gosec // a log in our own folder
	if said := LastWords(content); err == nil && said != "" {
		job.Why += ": " + said
	}
	if job.Node != "" {
		job.Why += " (on " + job.Node + ")"
	}
}

const mostOfLine = 400

// LastWords is the last line that a worker wrote, or else what it started.
func LastWords(content []byte) string {
	content = bytes.TrimSpace(content)
	last := content[bytes.LastIndexByte(content, '\n')+1:]
	for line := range bytes.Lines(content) { // the engine's own words come last and say less
		if bytes.HasPrefix(line, []byte("tandem: ")) {
			last = bytes.TrimSpace(line[len("tandem: "):])
		}
	}
	return strings.ToValidUTF8(string(last[:min(len(last), mostOfLine)]), "")
}

// patience is how long a command may take: a busy controller takes seconds.
const patience = time.Minute

// Run runs a command of the engine without a shell and returns what it printed.
func Run(ctx context.Context, input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // the site's own command
	command.WaitDelay = time.Second
	command.Env = environment()
	command.Stdin = strings.NewReader(input)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		said := strings.TrimSpace(errors.String())
		return "", fmt.Errorf("%s: %w: %s", name, err, said[:min(len(said), 1000)])
	}
	return out.String(), nil
}

// environment is this process's without Tandem's variables: one may be a token.
func environment() (list []string) {
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "TANDEM_") {
			list = append(list, one)
		}
	}
	return list
}

// CheckTokenFile refuses a token that others of the machine could read.
func CheckTokenFile(path string) error {
	if err := checkPrivate(path); err != nil {
		return err
	}
	return checkPrivate(filepath.Dir(path))
}

func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s may be entered or read by others (mode %04o): chmod go= %s", path, mode, path)
	}
	return nil
}
