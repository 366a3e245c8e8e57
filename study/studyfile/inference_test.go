package studyfile_test

import (
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
