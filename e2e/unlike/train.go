package unlike

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
// it must come back as it was saved, wherever the trial goes on. Each epoch has a
// file of its own: the script does not wait until the worker has read the last one.
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
	folder := os.Getenv("TANDEM_CHECKPOINT_DIR")
	if err := restored(folder, first-1); err != nil {
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
	for epoch := first; epoch <= last; epoch++ {
		for range rounds {
			work(threads)
		}
		time.Sleep(pause)
		if err := os.WriteFile(folder+".new", []byte(strconv.Itoa(epoch)), 0o600); err != nil {
			return err
		}
		if err := os.Rename(folder+".new", state(folder, epoch)); err != nil {
			return err
		}
		fmt.Printf("{\"epoch\": %d, \"checkpoint\": true, \"loss\": %g}\n", epoch, (params.Rate-0.3)*(params.Rate-0.3)+1/float64(epoch))
	}
	return nil
}

// state is the file of the epoch's state.
func state(folder string, epoch int) string {
	return filepath.Join(folder, "state-"+strconv.Itoa(epoch))
}

// restored makes sure that the state of the epoch came back.
func restored(folder string, epoch int) error {
	text, err := os.ReadFile(state(folder, epoch))
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
