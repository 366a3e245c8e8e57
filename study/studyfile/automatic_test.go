package studyfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// TestWhatIsTunedByDefault reads studies that say nothing of the system, or one word.
func TestWhatIsTunedByDefault(t *testing.T) {
	t.Parallel()
	const file = "name: s\ncommand: [train]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\n"
	for name, one := range map[string]struct {
		more, instead string
		tunes         bool
		says          string
	}{
		"nothing":           {"", "", true, "cpu_threads is tuned while trials train, from 1 to the cores of a worker; loader_workers likewise"},
		"auto":              {"system: auto", "", true, "threads are tuned only if resources.gpus is set"},
		"cores":             {"resources: {cores: 4, gpus: 0}", "", true, "if the script calls trial.loader_workers(). Other knobs are not tuned"},
		"off":               {"system: off", "", false, "as system is off"},
		"false":             {"system: false", "", false, "as system is off"},
		"constants":         {"system: {cpu_threads: 2}", "", false, "lists no values"},
		"values":            {"system: {loader_workers: {values: [0, 2]}}", "", true, "tuned while trials train: loader_workers. Nothing else"},
		"variable":          {"environment: {MKL_NUM_THREADS: 1}", "", false, "as environment sets MKL_NUM_THREADS"},
		"variable and auto": {"system: auto\nenvironment: {OMP_NUM_THREADS: 1}", "", false, "List cpu_threads under system to tune it anyway."},
		"variable and knob": {"system: {cpu_threads: auto}\nenvironment: {OMP_NUM_THREADS: 1}", "", true, "cpu_threads"},
		"shared GPU":        {"resources: {gpu_share: 0.5}", "", false, "share GPUs"},
		"seconds":           {"budget: {seconds: 60}", "", false, "the budget counts seconds"},
		"objective":         {"", "accuracy / train_seconds", false, "the objective of depends on them"},
		"constraint":        {"constraints: [{metric: train_joules, max: 9}]", "", false, "the constraint train_joules depends on them"},
		"no command":        {"", "command", false, "in a process of yours"},
	} {
		text := file + one.more
		switch one.instead {
		case "":
		case "command":
			text = strings.Replace(text, "command: [train]\n", "", 1)
		default:
			text = strings.Replace(text, "metric: accuracy", "name: of, expression: "+one.instead, 1)
		}
		def, err := studyfile.Parse([]byte(text), studyfile.YAML)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tuning := def.Tuning(); (tuning != nil) != one.tunes {
			t.Errorf("%s: tunes %v", name, tuning)
		}
		if says := strings.Join(def.Plan().System, " "); !strings.Contains(says, one.says) || !strings.HasPrefix(says, "System: ") {
			t.Errorf("%s: says %q, want %q", name, says, one.says)
		}
	}
}

// TestStudiesStoredBeforeStayUntuned: a definition that was stored without the section was
// stored when nothing was tuned by default, and says so when it is shown.
func TestStudiesStoredBeforeStayUntuned(t *testing.T) {
	t.Parallel()
	def, err := definition.Stored([]byte(`{"name": "old", "command": ["train"], "objective": [], "space": {"parameters": []}}`))
	if err != nil || def.Tuning() != nil {
		t.Fatalf("it tunes %v, %v", def.Tuning(), err)
	}
	if shown, err := json.Marshal(def); err != nil || !strings.Contains(string(shown), `"system":"off"`) {
		t.Errorf("it is shown as %s, %v: sent again, it would be tuned", shown, err)
	}
	def, err = definition.Stored([]byte(`{"name": "told", "objective": [], "space": {"parameters": []}}`))
	if err != nil || !def.System.IsZero() {
		t.Errorf("a study without a command has the system %+v, %v", def.System, err)
	}
}
