package main

import (
	"encoding/json"
	"fmt"
	"maps"
)

// document is the study file of an arm on a workload, in JSON.
func (o options) document(w workload, a arm, name string, seed int) ([]byte, error) {
	space := map[string]parameter{}
	for _, one := range w.space {
		space[one.Name] = one.unnamed()
	}
	objective := map[string]any{"metric": "accuracy", "direction": "maximize"}
	if a.asParameters {
		space["threads"] = threadsParameter()
		// Section 6.4.2: the ratio of accuracy to duration.
		objective = map[string]any{"expression": "accuracy / train_seconds", "direction": "maximize", "name": "accuracy_per_second"}
	}
	study := map[string]any{
		"name":        name,
		"command":     []string{o.python, "train.py", "--workload", w.name},
		"environment": map[string]string{"PIPETUNE_DATA": o.data, "PIPETUNE_SCALE": fmt.Sprint(o.scale), "PYTHONPATH": o.client, "PYTHONUNBUFFERED": "1"},
		"objective":   objective,
		"space":       space,
		"budget":      o.ladder(),
		"search":      map[string]any{"method": "bohb", "seed": seed},
		"stop":        map[string]any{"data_passes": o.passes},
		"system":      "off",
	}
	if a.tuned {
		system := map[string]any{"cpu_threads": map[string]any{"values": threadCounts()}, "objective": "seconds"}
		maps.Copy(system, w.system)
		study["system"] = system
	}
	return json.Marshal(study)
}

// ladder is the budget of the study's trials. Without a ladder they are all
// trained in full.
func (o options) ladder() map[string]any {
	if o.full {
		return map[string]any{"epochs": maxEpochs}
	}
	return map[string]any{"policy": "epochs", "epochs": map[string]int{"min": minEpochs, "max": maxEpochs}, "eta": eta}
}

// threadsParameter is the number of threads as a dimension of the space.
func threadsParameter() parameter {
	var values []float64
	for _, count := range threadCounts() {
		values = append(values, float64(count))
	}
	return parameter{Kind: "system", Type: "ordinal", Values: values}
}

// threadCounts are the powers of two below the machine's cores, and these.
func threadCounts() []int {
	var counts []int
	for n := 1; n < cores(); n *= 2 {
		counts = append(counts, n)
	}
	return append(counts, cores())
}

// studyName says what a study is for; names are unique on a server.
func studyName(w workload, a arm, seed int) string {
	return fmt.Sprintf("%s-%s-%d", w.name, a.name, seed)
}
