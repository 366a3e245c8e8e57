package main

import (
	"fmt"
	"slices"
	"strings"
)

// parameter is one dimension of a space, as study files and the peers' drivers
// read it.
type parameter struct {
	Name   string    `json:"name,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	Type   string    `json:"type"`
	Low    *float64  `json:"low,omitempty"`
	High   *float64  `json:"high,omitempty"`
	Log    bool      `json:"log,omitempty"`
	Values []float64 `json:"values,omitempty"`
}

// unnamed is the parameter as a study file has it, whose key is the name.
func (p parameter) unnamed() parameter {
	p.Name = ""
	return p
}

func float(name string, low, high float64) parameter {
	return parameter{Name: name, Type: "float", Low: &low, High: &high}
}

func logarithmic(name string, low, high float64) parameter {
	return parameter{Name: name, Type: "float", Low: &low, High: &high, Log: true}
}

func whole(name string, low, high float64) parameter {
	return parameter{Name: name, Type: "int", Low: &low, High: &high, Log: true}
}

func ordinal(name string, values ...float64) parameter {
	return parameter{Name: name, Type: "ordinal", Values: values}
}

// workload is something to tune: a row of the thesis's table 6.2.
type workload struct {
	name string
	// kind is the thesis's type: I images, II text, III no neural network; GPU
	// for the one that needs such a machine.
	kind string
	// data is the data set. A warm ground truth has nothing measured on it.
	data  string
	space []parameter
	// usual is a configuration in the middle, whose epochs are timed.
	usual map[string]any
	// named: only where the command line names it, as it needs a package of its own.
	named bool
	// system are knobs tuned beside the threads, in the study file's words.
	system map[string]any
}

// The ladder of every study: 1, 3 and 9 epochs, of all data.
const (
	eta       = 3
	minEpochs = 1
	maxEpochs = 9
)

func workloads() []workload {
	image := []parameter{logarithmic("learning_rate", 1e-3, 1e-1), ordinal("batch_size", 32, 64, 128, 256, 512, 1024), float("dropout", 0, 0.5)}
	text := append(slices.Clone(image), whole("embedding", 32, 128))
	usualImage := map[string]any{"learning_rate": 0.02, "batch_size": 64, "dropout": 0.1}
	usualText := map[string]any{"learning_rate": 0.004, "batch_size": 64, "dropout": 0.3, "embedding": 64}
	return []workload{
		{name: "lenet-fmnist", kind: "I", data: "fmnist", space: image, usual: usualImage},
		{name: "lenet-mnist", kind: "I", data: "mnist", space: image, usual: usualImage},
		{name: "text-cnn", kind: "II", data: "fortunes", space: text, usual: usualText},
		{name: "text-lstm", kind: "II", data: "fortunes", space: text, usual: usualText},
		{name: "text-transformer", kind: "II", data: "fortunes", space: text, usual: usualText},
		{name: "boosting", kind: "III", data: "fmnist", named: true, space: []parameter{
			logarithmic("learning_rate", 0.02, 0.5), whole("leaves", 4, 63), float("features", 0.1, 1), whole("least_in_leaf", 5, 200),
		}, usual: map[string]any{"learning_rate": 0.1, "leaves": 31, "features": 0.5, "least_in_leaf": 20}},
		{name: "jacobi", kind: "III", data: "poisson", space: []parameter{
			logarithmic("over_relaxation", 2, 300), float("relaxation", 0.5, 1), whole("calm_sweeps", 4, 150),
		}, usual: map[string]any{"over_relaxation": 60, "relaxation": 0.8, "calm_sweeps": 30}},
		{name: "kmeans", kind: "III", data: "gaussians", space: []parameter{
			whole("clusters", 12, 96), ordinal("batch_size", 256, 512, 1024, 2048, 4096, 8192), float("memory", 0.3, 1), logarithmic("spread", 0.05, 2),
		}, usual: map[string]any{"clusters": 60, "batch_size": 1024, "memory": 0.95, "spread": 0.3}},
		{name: "bfs", kind: "III", data: "graph", space: []parameter{
			float("apart", 0, 12), float("central", -12, 12), float("first_share", 0.1, 1),
		}, usual: map[string]any{"apart": 1, "central": 0, "first_share": 1}},
		{name: "resnet", kind: "GPU", data: "fmnist", space: []parameter{
			logarithmic("learning_rate", 1e-3, 1), ordinal("batch_size", 64, 128, 256, 512, 1024), logarithmic("weight_decay", 1e-6, 1e-2),
		}, usual: map[string]any{"learning_rate": 0.1, "batch_size": 128, "weight_decay": 5e-4}, system: map[string]any{
			"loader_workers": map[string]any{"values": []int{0, 2, 4}}, "precision": map[string]any{"values": []string{"fp32", "bf16"}},
			"gpu_power_watts": map[string]any{"values": []int{700, 500, 350}},
		}},
	}
}

// chosen are the workloads of a command line, by their names or by the set.
func (o options) chosen() ([]workload, error) {
	wanted := strings.FieldsFunc(o.workloads, func(r rune) bool { return r == ',' })
	if len(wanted) == 0 {
		wanted = []string{"lenet-fmnist", "text-cnn"}
		if o.set == "full" {
			wanted = names(trainable(), func(w workload) string { return w.name })
		}
	}
	return pick(workloads(), wanted, func(w workload) string { return w.name })
}

// special workloads need a GPU or a package of their own.
func (w workload) special() bool { return w.kind == "GPU" || w.named }

// trainable are the workloads that need neither.
func trainable() []workload {
	return slices.DeleteFunc(workloads(), workload.special)
}

// pick returns those of all that are wanted, in that order.
func pick[T any](all []T, wanted []string, name func(T) string) ([]T, error) {
	var list []T
	for _, one := range wanted {
		at := slices.IndexFunc(all, func(t T) bool { return name(t) == one })
		if at < 0 {
			return nil, fmt.Errorf("there is no %s; there are %s", one, strings.Join(names(all, name), ", "))
		}
		list = append(list, all[at])
	}
	return list, nil
}
