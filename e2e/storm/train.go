package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/socket"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// The variables that the study gives its script.
const (
	variableLedger = "STORM_LEDGER"
	variableEpoch  = "STORM_EPOCH"
)

// IsScript reports whether this process is the script of a storm's trial.
func IsScript() bool { return os.Getenv(variableLedger) != "" }

// training is one run of the script. It has no model: a curve, and a state that
// must come back as it was saved.
type training struct {
	worker              socket.Client
	ledger, state       string
	trial               trial.ID
	rung, first, epochs int
	pause               time.Duration
	// behind is a checkpoint that is on its way; the next answer says that it is there.
	behind []history.Operation
	params map[string]float64
}

// Train runs the script of a trial. It notes in the ledger what it sends before
// it sends it, and what was acknowledged.
func Train(ctx context.Context) error {
	t, err := newTraining()
	if err != nil {
		return err
	}
	if err := t.restore(); err != nil {
		return err
	}
	for epoch := t.first; epoch <= t.epochs; epoch++ {
		time.Sleep(t.pause)
		directive, err := t.report(ctx, epoch)
		if err != nil || directive.Action == protocol.Stop {
			return err
		}
		if err := t.checkpoint(ctx, epoch, directive.Action == protocol.Continue); err != nil {
			return err
		}
		if directive.Action == protocol.Pause {
			return nil
		}
	}
	return nil
}

func newTraining() (*training, error) {
	t := &training{
		worker: socket.Dial(), ledger: os.Getenv(variableLedger), trial: trial.ID(os.Getenv("TANDEM_TRIAL")),
		state: filepath.Join(os.Getenv("TANDEM_CHECKPOINT_DIR"), "state"),
	}
	var err error
	if t.pause, err = time.ParseDuration(os.Getenv(variableEpoch)); err != nil {
		return nil, err
	}
	for name, into := range map[string]*int{"TANDEM_RUNG": &t.rung, "TANDEM_FIRST_EPOCH": &t.first, "TANDEM_EPOCHS": &t.epochs} {
		if *into, err = strconv.Atoi(os.Getenv(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, json.Unmarshal([]byte(os.Getenv("TANDEM_PARAMS")), &t.params)
}

// restore makes sure that the state is that of the epoch before the first one.
func (t *training) restore() error {
	trained := 0
	text, err := os.ReadFile(t.state)
	if err == nil {
		trained, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if trained != t.first-1 {
		return fmt.Errorf("the state is that of epoch %d, and the first epoch to train is %d", trained, t.first)
	}
	return nil
}

// loss depends on nothing but the configuration and the epoch.
func (t *training) loss(epoch int) trial.Float {
	x, y := t.params["x"], t.params["y"]
	return trial.Float((x-1)*(x-1) + (y-0.01)*(y-0.01) + 1/float64(epoch))
}

func (t *training) report(ctx context.Context, epoch int) (protocol.Directive, error) {
	said := history.Operation{
		Kind: history.Report, Trial: t.trial, Rung: t.rung, Epoch: epoch, Metrics: map[string]trial.Float{"loss": t.loss(epoch)},
	}
	var directive protocol.Directive
	err := t.note(said)
	if err == nil {
		err = t.worker.Post(ctx, "/v1/report", map[string]any{"epoch": epoch, "metrics": said.Metrics}, &directive)
	}
	if err != nil {
		return directive, err
	}
	said.Acknowledged, said.Void = true, directive.Action == protocol.Stop
	return directive, t.note(said)
}

// checkpoint waits for that of every second epoch, and for the last one, as the worker does.
func (t *training) checkpoint(ctx context.Context, epoch int, goesOn bool) error {
	path := "/v1/checkpoint"
	if epoch%2 == 1 {
		path += "?wait=false"
	}
	fresh := t.state + ".new"
	err := os.WriteFile(fresh, []byte(strconv.Itoa(epoch)), 0o600)
	if err == nil {
		err = os.Rename(fresh, t.state)
	}
	said := history.Operation{Kind: history.Checkpoint, Trial: t.trial, Rung: t.rung, Epoch: epoch}
	if err == nil {
		err = t.note(said)
	}
	if err == nil {
		err = t.worker.Post(ctx, path, map[string]any{"epoch": epoch}, nil)
	}
	if err != nil {
		return err
	}
	for _, one := range t.behind {
		err = errors.Join(err, t.note(one))
	}
	said.Acknowledged, t.behind = true, nil
	if goesOn && epoch%2 == 1 {
		t.behind = append(t.behind, said)
		return err
	}
	return errors.Join(err, t.note(said))
}

// note adds a line to the ledger, whole or not at all.
func (t *training) note(said history.Operation) error {
	line, err := json.Marshal(said)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(t.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// readLedger returns what all scripts have noted so far.
func readLedger(path string) ([]history.Operation, error) {
	var operations []history.Operation
	for i, line := range launch.Lines(path) {
		var one history.Operation
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, fmt.Errorf("line %d of the ledger: %w", i+1, err)
		}
		operations = append(operations, one)
	}
	return operations, nil
}
