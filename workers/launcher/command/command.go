// Package command starts workers by four commands of the site: for engines without a
// package of their own, such as PBS, LSF, HTCondor, or machines that are woken.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// Commands are the site's own, each a list of words and run without a shell.
type Commands struct {
	// Submit is run for each worker, with the job's script on its standard input. Words
	// in braces stand for what the worker needs ([Placeholders]).
	Submit []string `yaml:"submit"`
	// List prints each job as a JSON object: id, name as it was submitted, state
	// (pending, running, leaving, ended), and node, why and cause where they are known.
	List []string `yaml:"list"`
	// Cancel takes jobs back; their ids are added to it.
	Cancel []string `yaml:"cancel"`
	// Why prints a sentence that says why a job waits; its id is added. It is optional.
	Why []string `yaml:"why"`
}

// Engine starts workers by commands.
type Engine struct {
	options  engine.Options
	commands Commands
}

var _ launcher.Engine = (*Engine)(nil)

// New returns an engine of the commands.
func New(options engine.Options, commands Commands) (*Engine, error) {
	for _, one := range []struct {
		field string
		words []string
	}{{"submit", commands.Submit}, {"list", commands.List}, {"cancel", commands.Cancel}} {
		if len(one.words) == 0 {
			return nil, fmt.Errorf("%s is missing: name the command, as in %s: [qsub, -N, '{name}']", one.field, one.field)
		}
		if _, err := exec.LookPath(one.words[0]); err != nil {
			return nil, fmt.Errorf("%s: %q is no program that can be run here: %w", one.field, one.words[0], err)
		}
	}
	known := (&Engine{options: options}).values(launcher.Shape{}, "")
	for _, word := range commands.Submit {
		for _, found := range placeholder.FindAllStringSubmatch(word, -1) {
			if _, is := known[found[1]]; !is {
				return nil, fmt.Errorf("submit: {%s} is not known: %s are", found[1], Placeholders)
			}
		}
	}
	return &Engine{options, commands}, nil
}

// Placeholders are the words in braces that [Commands.Submit] may have.
const Placeholders = "{name}, {shape}, {gpus}, {gpu_type}, {labels} (NAME=VALUE,...), {cores}, {memory_mib}, {minutes}, {walltime} (HH:MM:SS) and {log}"

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// values are what the placeholders stand for.
func (e *Engine) values(s launcher.Shape, name string) map[string]string {
	limit := int(s.TimeLimit / time.Second)
	return map[string]string{
		"name": name, "shape": s.Name, "gpus": strconv.Itoa(s.GPUs), "gpu_type": s.GPUType, "labels": selector.Shown(s.Labels), "cores": strconv.Itoa(s.Cores),
		"memory_mib": strconv.Itoa(int(s.MemoryGiB * 1024)), "minutes": strconv.Itoa(limit / 60),
		"walltime": fmt.Sprintf("%02d:%02d:%02d", limit/3600, limit/60%60, limit%60), "log": e.log(name),
	}
}

func (e *Engine) log(name string) string { return filepath.Join(e.options.Logs, name+".log") }

// Launch submits the workers one after the other, until one is refused.
func (e *Engine) Launch(ctx context.Context, order launcher.Order) error {
	for i := range order.Count {
		launch := order.Launch(i)
		values := e.values(order.Shape, e.options.Name+"."+order.Shape.Name+"."+launch)
		words := []string{}
		for _, word := range e.commands.Submit {
			words = append(words, placeholder.ReplaceAllStringFunc(word, func(found string) string { return values[found[1:len(found)-1]] }))
		}
		words = append(words, order.Shape.Options...)
		script := e.options.Script(order.Shape, "", `"${TMPDIR:-/tmp}"/tandem-`+launch, launch)
		if _, err := engine.Run(ctx, script, words[0], words[1:]...); err != nil {
			return fmt.Errorf("submit, for worker %d of %d: %w", i+1, order.Count, err)
		}
	}
	return nil
}

// listed is what the command of the list prints of a job.
type listed struct {
	ID, Name, Node, Why string
	State               launcher.State
	Cause               protocol.Cause
}

// List asks for all jobs at once. Those of other names are not ours.
func (e *Engine) List(ctx context.Context) ([]launcher.Job, error) {
	said, err := engine.Run(ctx, "", e.commands.List[0], e.commands.List[1:]...)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var jobs []launcher.Job
	for decoder := json.NewDecoder(strings.NewReader(said)); ; {
		var one listed
		if err := decoder.Decode(&one); err == io.EOF {
			return jobs, nil
		} else if err != nil {
			return nil, fmt.Errorf("list: %w: it must print a JSON object for each job, not an array", err)
		}
		part := strings.Split(one.Name, ".")
		if len(part) != 3 || part[0] != e.options.Name {
			continue
		}
		job := launcher.Job{ID: one.ID, Launch: part[2], Shape: part[1], State: one.State, Node: one.Node, Why: one.Why, Cause: one.Cause}
		if err := e.complete(ctx, &job, one.Name); err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
}

// complete checks a job, and says why it waits or how it ended.
func (e *Engine) complete(ctx context.Context, job *launcher.Job, name string) error {
	switch job.State {
	case launcher.Pending:
		if job.Why == "" && len(e.commands.Why) > 0 {
			said, err := engine.Run(ctx, "", e.commands.Why[0], append(slices.Clone(e.commands.Why[1:]), job.ID)...)
			if err != nil {
				return fmt.Errorf("why: %w", err)
			}
			job.Why = strings.TrimSpace(said)
		}
		job.Why = cmp.Or(job.Why, "waits, and nobody says why")
	case launcher.Ended:
		if !slices.Contains(protocol.Causes(), job.Cause) {
			if job.Cause != "" {
				return fmt.Errorf("list: the cause of job %s is %q and must be one of %v", job.ID, job.Cause, protocol.Causes())
			}
			job.Cause = protocol.Finished
		}
		job.Why = cmp.Or(job.Why, job.Cause.Words())
		if job.Failed() {
			engine.Explain(job, e.log(name))
		}
	case launcher.Running, launcher.Leaving:
	default:
		return fmt.Errorf("list: the state of job %s is %q and must be pending, running, leaving or ended", job.ID, job.State)
	}
	return nil
}

// mostAtOnce is how many ids one command gets.
const mostAtOnce = 500

// Cancel takes jobs back.
func (e *Engine) Cancel(ctx context.Context, ids []string) error {
	for batch := range slices.Chunk(ids, mostAtOnce) {
		if _, err := engine.Run(ctx, "", e.commands.Cancel[0], append(slices.Clone(e.commands.Cancel[1:]), batch...)...); err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
	return nil
}

// Doctor tries the list. It changes nothing.
func (e *Engine) Doctor(ctx context.Context) []launcher.Finding {
	found := []launcher.Finding{{Name: "submit, cancel", Good: true, Says: "the programs are there; nothing was submitted"}}
	jobs, err := e.List(ctx)
	if err != nil {
		return append(found, launcher.Finding{Name: "list", Good: false, Says: err.Error()})
	}
	return append(found, launcher.Finding{Name: "list", Good: true, Says: fmt.Sprintf("it prints jobs as it must; %d are of this launcher", len(jobs))})
}
