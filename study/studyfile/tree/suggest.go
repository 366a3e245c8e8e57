package tree

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// elsewhere are names of Ray Tune, Katib, Optuna and W&B in lower case, and what they
// are here: a field of the same section, or one with its whole path.
var elsewhere = map[string]string{
	"metric": "objective.metric", "objectivemetricname": "objective.metric", "mode": "objective.direction", "goal": "objective.target",
	"type": "direction", "distribution": "type", "parametertype": "type", "min": "low", "max": "high", "choices": "values", "list": "values",
	"num_samples": "stop.trials", "n_trials": "stop.trials", "maxtrialcount": "stop.trials", "run_cap": "stop.trials",
	"maxfailedtrialcount": "stop.failures", "time_budget_s": "stop.seconds", "timeout": "stop.seconds",
	"max_concurrent_trials": "parallel", "paralleltrialcount": "parallel", "n_jobs": "parallel",
	"max_t": "budget.epochs.max", "max_iter": "budget.epochs.max", "r_l": "budget.epochs.max",
	"grace_period": "budget.epochs.min", "min_iter": "budget.epochs.min", "reduction_factor": "budget.eta",
	"algorithm": "search.method", "search_alg": "search.method", "sampler": "search.method", "points_to_evaluate": "search.initial",
	"parameters": "space", "param_space": "space", "cpu": "cores", "resources_per_trial": "resources",
	"working_dir": "directory", "program": "command", "max_failures": "retry.failures",
}

// suggest ends a message about an unknown name with what it is called here, with the
// known one that was probably meant, or with all that are known.
func suggest(name string, known []string) string {
	if here := elsewhere[strings.ToLower(name)]; strings.Contains(here, ".") || slices.Contains(known, here) {
		return "write " + here
	}
	if meant := problem.Meant(name, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "it has " + strings.Join(known, ", ")
}

var (
	aside = regexp.MustCompile(`^must be (one of )?| \([^)]*\)|, not .*|[:;].*`)
	words = regexp.MustCompile(`^[a-z0-9_-]+(, [a-z0-9_-]+)+$`)
)

// Suggest adds to each fault of a text that is none of several words the one that was
// probably meant.
func Suggest(faults []problem.Field) {
	for i, fault := range faults {
		list := strings.ReplaceAll(aside.ReplaceAllString(fault.Message, ""), " or ", ", ")
		if given, text := fault.Value.(string); text && words.MatchString(list) {
			if meant := problem.Meant(given, strings.Split(list, ", ")); meant != "" {
				faults[i].Message += "; did you mean " + meant + "?"
			}
		}
	}
}
