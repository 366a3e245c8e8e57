package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// Trial is what GET /v1/trial answers.
type Trial struct {
	Trial         trial.ID               `json:"trial_id"`
	Study         string                 `json:"study"`
	Number        int                    `json:"number"`
	Params        space.Configuration    `json:"params"`
	System        map[string]space.Value `json:"system"`
	Budget        budget.Budget          `json:"budget"`
	FirstEpoch    int                    `json:"first_epoch"`
	Rung          int                    `json:"rung"`
	Seed          uint64                 `json:"seed"`
	CheckpointDir string                 `json:"checkpoint_dir"`
	Objectives    []string               `json:"objectives"`
	Precisions    []string               `json:"precisions,omitempty"`
}

// TrialOf is the trial of a lease, with the wanted system configuration.
func TrialOf(lease protocol.Lease, wanted system.Configuration, checkpoint string) Trial {
	return Trial{
		Trial: lease.Trial, Study: lease.Study, Number: lease.Number,
		Params: orEmpty(lease.Params), System: orEmpty(wanted),
		Budget: lease.Budget, FirstEpoch: lease.FirstEpoch, Rung: lease.Rung, Seed: lease.Seed,
		CheckpointDir: checkpoint, Objectives: append([]string{}, lease.Objectives...),
		Precisions: lease.Precisions,
	}
}

// Variables tell the script what to train, and where its folders and its socket are.
func Variables(lease protocol.Lease, checkpoint, artifacts, socket string) (map[string]string, error) {
	values := map[string]string{
		"TANDEM_STUDY":          lease.Study,
		"TANDEM_TRIAL":          string(lease.Trial),
		"TANDEM_EPOCHS":         strconv.Itoa(lease.Budget.Epochs),
		"TANDEM_FIRST_EPOCH":    strconv.Itoa(lease.FirstEpoch),
		"TANDEM_DATA_FRACTION":  strconv.FormatFloat(lease.Budget.DataFraction, 'g', -1, 64),
		"TANDEM_RUNG":           strconv.Itoa(lease.Rung),
		"TANDEM_CHECKPOINT_DIR": checkpoint,
		"TANDEM_ARTIFACT_DIR":   artifacts,
		"TANDEM_SEED":           strconv.FormatUint(lease.Seed, 10),
		"TANDEM_SOCKET":         socket,
	}
	if b := lease.Budget; b.Seconds > 0 {
		values["TANDEM_SECONDS"] = strconv.FormatFloat(b.Seconds, 'g', -1, 64)
	}
	if b := lease.Budget; b.Joules > 0 {
		values["TANDEM_JOULES"] = strconv.FormatFloat(b.Joules, 'g', -1, 64)
	}
	for name, content := range map[string]any{
		"TANDEM_PARAMS":     orEmpty(lease.Params),
		"TANDEM_SYSTEM":     orEmpty(lease.System),
		"TANDEM_OBJECTIVES": append([]string{}, lease.Objectives...),
	} {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		values[name] = string(text)
	}
	return values, nil
}

// DatasetVariable is the variable with the folder of a data set.
func DatasetVariable(name string) string { return "TANDEM_DATA_" + strings.ToUpper(name) }

// orEmpty makes a missing object an empty one, which in JSON is another thing.
func orEmpty[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return M{}
	}
	return m
}
