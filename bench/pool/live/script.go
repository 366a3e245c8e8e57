package live

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/e2e/socket"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// The variables that a study gives its script: the file that gets a line for each epoch
// trained, and whether it checkpoints.
const variableLedger, variableKeeps = "LIVE_LEDGER", "LIVE_KEEPS"

// IsScript reports whether this process is the script of a trial.
func IsScript() bool { return os.Getenv(variableLedger) != "" }

// Train sleeps for as long as each epoch takes with the trial's share of the data, but
// for a millisecond of work. When it is to make way it checkpoints, if it is one that
// does.
func Train() error {
	first, firstErr := strconv.Atoi(os.Getenv("TANDEM_FIRST_EPOCH"))
	last, lastErr := strconv.Atoi(os.Getenv("TANDEM_EPOCHS"))
	fraction, fractionErr := strconv.ParseFloat(os.Getenv("TANDEM_DATA_FRACTION"), 64)
	ledger, ledgerErr := os.OpenFile(os.Getenv(variableLedger), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err := errors.Join(firstErr, lastErr, fractionErr, ledgerErr); err != nil {
		return err
	}
	defer ledger.Close()
	ctx, worker := context.Background(), socket.Dial()
	for epoch := first; epoch <= last; epoch++ {
		began, loss := time.Now(), 1/float64(epoch)
		for time.Since(began) < time.Millisecond {
			loss += 1e-12 * math.Sin(loss)
		}
		time.Sleep(time.Until(began.Add(time.Duration(fraction * float64(second)))))
		if _, err := ledger.WriteString("epoch\n"); err != nil {
			return err
		}
		var directive protocol.Directive
		if err := worker.Post(ctx, "/v1/report", map[string]any{"epoch": epoch, "metrics": map[string]float64{"loss": loss}}, &directive); err != nil {
			return err
		}
		if directive.Action == protocol.Pause && os.Getenv(variableKeeps) != "" {
			state := filepath.Join(os.Getenv("TANDEM_CHECKPOINT_DIR"), "state")
			if err := os.WriteFile(state, []byte(strconv.Itoa(epoch)), 0o600); err != nil {
				return err
			}
			if err := worker.Post(ctx, "/v1/checkpoint", map[string]any{"epoch": epoch}, nil); err != nil {
				return err
			}
		}
		if directive.Action != protocol.Continue {
			return nil
		}
	}
	return nil
}
