package unlike

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

	"github.com/tandem-tune/tandem/e2e/socket"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/workload"
)

// The variables that a study gives its script.
const (
	variableRounds = "UNLIKE_ROUNDS"
	variablePause  = "UNLIKE_PAUSE"
)

// IsScript reports whether this process is the script of a trial.
func IsScript() bool { return os.Getenv(variableRounds) != "" }

// Train trains: an epoch is some rounds of clustering points by k-means, which
// keep all cores busy, and a pause, which keeps none. The state is the last epoch;
// it must come back as it was saved, wherever the trial goes on.
func Train() error {
	first, firstErr := strconv.Atoi(os.Getenv("TANDEM_FIRST_EPOCH"))
	last, lastErr := strconv.Atoi(os.Getenv("TANDEM_EPOCHS"))
	rounds, roundsErr := strconv.Atoi(os.Getenv(variableRounds))
	pause, pauseErr := time.ParseDuration(os.Getenv(variablePause))
	var params struct {
		Rate float64 `json:"rate"`
	}
	if err := errors.Join(firstErr, lastErr, roundsErr, pauseErr, json.Unmarshal([]byte(os.Getenv("TANDEM_PARAMS")), &params)); err != nil {
		return err
	}
	state := filepath.Join(os.Getenv("TANDEM_CHECKPOINT_DIR"), "state")
	if err := restored(state, first-1); err != nil {
		return err
	}
	threads, err := strconv.Atoi(os.Getenv("OMP_NUM_THREADS"))
	if err != nil {
		threads = 1
	}
	work := func(int) float64 { return 0 }
	if rounds > 0 {
		work = workload.Tasks()[0].Prepare()
	}
	worker := socket.Dial()
	for epoch := first; epoch <= last; epoch++ {
		for range rounds {
			work(threads)
		}
		time.Sleep(pause)
		loss := (params.Rate-0.3)*(params.Rate-0.3) + 1/float64(epoch)
		if more, err := keep(context.Background(), worker, state, epoch, loss); err != nil || !more {
			return err
		}
	}
	return nil
}

// keep reports the epoch and publishes its state. It waits for the worker, as the
// next epoch has its state in the same file. more is whether the trial goes on here.
func keep(ctx context.Context, worker socket.Client, state string, epoch int, loss float64) (more bool, err error) {
	var directive protocol.Directive
	if err := worker.Post(ctx, "/v1/report", map[string]any{"epoch": epoch, "metrics": map[string]float64{"loss": loss}}, &directive); err != nil || directive.Action == protocol.Stop {
		return false, err
	}
	if err := os.WriteFile(state, []byte(strconv.Itoa(epoch)), 0o600); err != nil {
		return false, err
	}
	err = worker.Post(ctx, "/v1/checkpoint", map[string]any{"epoch": epoch}, nil)
	return directive.Action == protocol.Continue, err
}

// restored makes sure that the state is that of the epoch.
func restored(state string, epoch int) error {
	text, err := os.ReadFile(state)
	if errors.Is(err, fs.ErrNotExist) && epoch == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if found, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || found != epoch {
		return fmt.Errorf("the state is %q, and the last epoch that was trained is %d", text, epoch)
	}
	return nil
}
