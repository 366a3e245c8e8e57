package studyfile_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// The cores and the memory of a deployment are a number, or a range with a sensible end.
func TestBoundsOfADeployment(t *testing.T) {
	parse := func(bounds string) (definition.Definition, error) {
		return studyfile.Parse([]byte("name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [raspberry-pi-4]"+bounds+"}\n"), studyfile.YAML)
	}
	for bounds, want := range map[string]*definition.BatchRange{
		"": nil, ", cores: 2": {Low: 2, High: 2}, ", cores: {low: 1, high: 3}": {Low: 1, High: 3}, ", cores: {high: 3}": {Low: 1, High: 3},
	} {
		def, err := parse(bounds)
		if err != nil {
			t.Fatal(bounds, err)
		}
		if got := def.Inference.Cores; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %+v", bounds, got)
		}
	}
	for bounds, want := range map[string]string{
		", cores: 0": "inference.cores", ", cores: {low: 3, high: 2}": "must have a high that is at least low", ", memory_mib: 0": "inference.memory_mib",
		", memory_mib: lots": "inference.memory_mib", ", cores: {most: 2}": "inference.cores.most",
	} {
		if _, err := parse(bounds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bounds, err, want)
		}
	}
}

// Clocks are those of the devices, or stay as they are; measuring has an end.
func TestClocksAndMinutesOfADeployment(t *testing.T) {
	parse := func(bounds string) (definition.Definition, error) {
		return studyfile.Parse([]byte("name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [raspberry-pi-4, this-machine]"+bounds+"}\n"), studyfile.YAML)
	}
	for bounds, want := range map[string]definition.Inference{
		"": {}, ", clocks: [600, 1500]": {Clocks: []float64{600, 1500}}, ", clocks: 600": {Clocks: []float64{600}}, ", clocks: {pinned: false}": {Unpinned: true}, ", budget_minutes: 0.5": {BudgetMinutes: 0.5},
	} {
		def, err := parse(bounds)
		if err != nil {
			t.Fatal(bounds, err)
		}
		if got := *def.Inference; !reflect.DeepEqual(got.Clocks, want.Clocks) || got.Unpinned != want.Unpinned || got.BudgetMinutes != want.BudgetMinutes {
			t.Errorf("%q: %+v", bounds, got)
		}
	}
	for bounds, want := range map[string]string{
		", clocks: [650]":          "inference.clocks: has no clock of raspberry-pi-4: name one of 600, 700,",
		", clocks: []":             "inference.clocks: must have 1 to 64 clocks in MHz, or be {pinned: false}",
		", clocks: [fast]":         "inference.clocks[0]: must be a number",
		", clocks: {pinned: true}": "inference.clocks: must be a list of MHz, such as [600, 1500], or {pinned: false}",
		", clocks: {}":             "inference.clocks: must be a list of MHz",
		", clocks: {low: 3}":       "inference.clocks.low: is not a field of",
		", budget_minutes: 0":      "inference.budget_minutes: must be a number between 0.01 and",
		", budget_minutes: long":   "inference.budget_minutes: must be a number",
	} {
		if _, err := parse(bounds); err == nil || !strings.Contains(unplaced(err), want) {
			t.Errorf("%q: %v, want %q", bounds, err, want)
		}
	}
}

// Without a scenario, and with the one that it is then, a study means the same; batch is
// throughput, with larger batches.
func TestScenarios(t *testing.T) {
	parse := func(section string) (definition.Definition, error) {
		return studyfile.Parse([]byte("name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [raspberry-pi-4]"+section+"}\n"), studyfile.YAML)
	}
	for one, other := range map[string]string{
		", scenario: single": "",
		", scenario: batch":  ", objective: throughput, batch_size: {low: 1, high: 32}",
		", scenario: batch, objective: energy, batch_size: 4": ", objective: energy, batch_size: 4",
		", scenario: {server: {rate: 200/s, p99_ms: 50}}":     ", scenario: {server: {rate: 200.0, p99_ms: 50}}, batch_size: {high: 32}",
		", scenario: {multi-stream: {streams: 8}}":            ", batch_size: {high: 32}, scenario: {multi-stream: {streams: 8}}",
	} {
		a, err := parse(one)
		b, fault := parse(other)
		if err != nil || fault != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%q is %+v (%v), %q is %+v (%v)", one, a.Inference, err, other, b.Inference, fault)
		}
	}
	for section, want := range map[string]string{
		", scenario: offline": "inference.scenario: must be single, batch, {server: {rate: 200/s, p99_ms: 50}} or {multi-stream: {streams: 8}}",
		", scenario: {}":      "inference.scenario: must be one of single",
		", scenario: {server: {rate: 200/s, p99_ms: 50}, multi-stream: {streams: 8}}": "inference.scenario: must be one of single",
		", scenario: {server: {rate: 200/s}}":                                         "inference.scenario.server.p99_ms: is missing",
		", scenario: {server: {p99_ms: 5}}":                                           "inference.scenario.server.rate: is missing",
		", scenario: {server: {rate: fast, p99_ms: 5}}":                               "inference.scenario.server.rate: must be requests a second, such as 200/s, above 0 and at most 1e+06 (got fast)",
		", scenario: {server: {rate: 0, p99_ms: 5}}":                                  "inference.scenario.server.rate: must be requests",
		", scenario: {server: {rate: .inf, p99_ms: 5}}":                               "inference.scenario.server.rate: must be requests",
		", scenario: {server: {rate: 5, p99_ms: 0}}":                                  "inference.scenario.server.p99_ms: must be a number between",
		", scenario: {server: {rate: 5, p99: 5}}":                                     "inference.scenario.server.p99: is not a field of",
		", scenario: {multi-stream: {streams: 0}}":                                    "inference.scenario.multi-stream.streams: must be a whole number",
		", scenario: {multi-stream: {}}":                                              "inference.scenario.multi-stream.streams: is missing",
		", scenario: batch, objective: latency":                                       "inference.scenario: needs objective: throughput or energy",
		", objective: throughput, scenario: {server: {rate: 5, p99_ms: 5}}":           "inference.objective: must be latency or energy",
	} {
		if _, err := parse(section); err == nil || !strings.Contains(unplaced(err), want) {
			t.Errorf("%q: %v, want %q", section, err, want)
		}
	}
	if _, err := studyfile.Parse([]byte("name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: edge.p99_ms, direction: minimize}\ncommand: [train]\ninference: {devices: [raspberry-pi-4]}\n"), studyfile.YAML); err == nil || !strings.Contains(unplaced(err), "inference.scenario: is missing: edge.p99_ms is of a load") {
		t.Errorf("edge.p99_ms without a scenario: %v", err)
	}
}

// A number of a deployment that there is none of is found before a trial is trained for it.
func TestNumbersOfADeploymentAreKnown(t *testing.T) {
	const file = "name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\ncommand: [train]\nbudget: {epochs: 1}\n"
	for text, want := range map[string]string{
		"objective: {metric: accuracy, direction: maximize}\nconstraints: {metric: edge.latency, max: 20}\ninference: {devices: [raspberry-pi-4]}":    "constraints: needs edge.latency, which is no number of a deployment: write one of edge.joules_per_sample, edge.latency_ms,",
		"objective: {expression: accuracy / edge.joules, name: ratio, direction: maximize}\ninference: {devices: [raspberry-pi-4]}":                   "objective: needs edge.joules, which is no number",
		"objective: {metric: accuracy, direction: maximize}\nconstraints: {metric: edge.latency_ms, max: 20}\ninference: {devices: [raspberry-pi-4]}": "",
		"objective: {metric: accuracy, direction: maximize}\nconstraints: {metric: edge.latency, max: 20}":                                            "", // which the script reports
	} {
		_, err := studyfile.Parse([]byte(file+text+"\n"), studyfile.YAML)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(unplaced(err), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// unplaced is what the error says, without lines.
func unplaced(err error) string {
	return regexp.MustCompile(` \(line \d+\)`).ReplaceAllString(err.Error(), "")
}

// A device that is described in place has the faults of one in a file, each with its
// field, its line, its value and the fix.
func TestAnOwnDeviceSaysWhatIsWrong(t *testing.T) {
	sound := string(read(t, "testdata/valid/edge.yaml"))
	for change, want := range map[[2]string]string{
		{"cores: {value: 4,", "cores: {value: 0,"}:                                   "inference.devices[1].clusters[0].cores.value: must be between 1 and 1024 (got 0)",
		{"bytes: {value: 2147483648, source: vendor}", "bytes: {value: 2147483648}"}: "inference.devices[1].memory.bytes.source: must say",
		{"name: my-board", "name: My Board"}:                                         "inference.devices[1].name: must be 1 to 64 small letters",
		{"name: my-board", "name: jetson-nano"}:                                      "inference.devices[1].name: is a name that Tandem knows: give yours another, such as my-jetson-nano (got jetson-nano)",
		{"name: my-board", "name: this-machine"}:                                     "inference.devices[1].name: is a name that Tandem knows",
		{"title: A board of mine", "titel: A board of mine"}:                         `inference.devices[1]: has an unknown field "titel": leave it out`,
		{"cores: {value: 4,", "cores: {value: four,"}:                                "inference.devices[1].clusters.cores.value: must be a whole number, not a string",
		{"cores: {value: 4,", "cores: {value: 0x4,"}:                                 "inference.devices[1].clusters[0].cores.value: is read differently by different versions of YAML",
		{"    - raspberry-pi-4", "    - {name: my-board}\n    - raspberry-pi-4"}:     "inference.devices[0].clusters: must be 1 to 8 groups",
		{"    - raspberry-pi-4", "    - my-board"}:                                   "inference.devices[0]: there is no device \"my-board\"",
		{"    - raspberry-pi-4", "    - {}"}:                                         "inference.devices[0].name: must be",
		{"    - raspberry-pi-4", "    - [raspberry-pi-4]"}:                           "inference.devices[0]: must be text, not a list",
	} {
		text := strings.Replace(sound, change[0], change[1], 1)
		if text == sound {
			t.Fatalf("there is no %q", change[0])
		}
		if _, err := studyfile.Parse([]byte(text), studyfile.YAML); err == nil || !strings.Contains(unplaced(err), want) {
			t.Errorf("%q: %v\nwant %q", change[1], err, want)
		}
	}
	twice := sound + strings.Replace(sound[strings.Index(sound, "    - name: my-board"):], "A board", "Another", 1)
	if _, err := studyfile.Parse([]byte(twice), studyfile.YAML); err == nil || !strings.Contains(unplaced(err), "inference.devices[2]: is there already: my-board") {
		t.Errorf("two of a name: %v", err)
	}
}

// fp32 is always compared, and first; a study without other precisions is as before.
func TestPrecisions(t *testing.T) {
	parse := func(section string) (definition.Definition, error) {
		return studyfile.Parse([]byte("name: edge\nspace: {lr: {type: float, low: 0.1, high: 1}}\nobjective: {metric: accuracy, direction: maximize}\nbudget: {epochs: 1}\ncommand: [train]\ninference: {devices: [raspberry-pi-4]"+section+"}\n"), studyfile.YAML)
	}
	for section, want := range map[string]string{
		"": "", ", precision: fp32": "", ", precision: int8": "fp32 int8", ", precision: [int8-dynamic, fp32, fp16]": "fp32 int8-dynamic fp16",
	} {
		def, err := parse(section)
		if err != nil || strings.Join(def.Inference.Precision, " ") != want || def.Inference.MayLose() != 0.01 {
			t.Errorf("%q: %+v, %v", section, def.Inference, err)
		}
	}
	for section, want := range map[string]string{
		"": "", ", providers: cpu": "", ", providers: openvino": "cpu openvino", ", providers: [openvino, cpu]": "cpu openvino", ", providers: auto": "cpu openvino",
	} {
		if def, err := parse(section); err != nil || strings.Join(def.Inference.Providers, " ") != want {
			t.Errorf("%q: %+v, %v", section, def.Inference, err)
		}
	}
	if def, err := parse(", precision: [int8], accuracy_loss: 0"); err != nil || def.Inference.MayLose() != 0 {
		t.Errorf("%+v, %v", def.Inference, err)
	}
	for section, want := range map[string]string{
		", precision: [int4]": "inference.precision[0]: must be one of fp32, fp16, int8, int8-dynamic; did you mean int8? (got int4)", ", precision: [int8, int8]": "inference.precision[1]: comes twice",
		", precision: {a: b}": "inference.precision", ", precision: [int8], accuracy_loss: 2": "inference.accuracy_loss: must be a number between 0 and 1",
		", providers: [cuda]": "inference.providers[0]: must be one of cpu, openvino", ", providers: [cpu, auto]": "inference.providers[1]: must be one of cpu, openvino",
		", accuracy_loss: 0.1": "inference.accuracy_loss: needs precision: [fp32, int8]",
	} {
		if _, err := parse(section); err == nil || !strings.Contains(unplaced(err), want) {
			t.Errorf("%q: %v, want %q", section, err, want)
		}
	}
}
