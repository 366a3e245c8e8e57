// Package selector answers: which machines may run the trials of a study, by what they
// are and not by how much room they have?
package selector

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Selector is what a study wants of machines; the zero value takes every one.
type Selector struct {
	// GPUTypes are models, any of which will do: all GPUs of the machine are of them.
	// Words of the driver's name are enough, in any case: A100 for NVIDIA A100-SXM4-40GB.
	GPUTypes []string `json:"gpu_type,omitempty" doc:"models of GPUs, any of which will do"`
	// GPUMemoryGiB is the memory of each of its GPUs at least, as it is sold. A driver
	// tells up to a tenth less. 0: any.
	GPUMemoryGiB float64 `json:"gpu_memory_gib,omitempty" doc:"memory of each GPU at least, as it is sold"`
	// Labels are those that its worker has, with these values.
	Labels map[string]string `json:"labels,omitempty" doc:"labels of the worker"`
	// Tolerates are taints that do not keep the trials from a worker. Each taint of a
	// worker keeps those away that do not tolerate it.
	Tolerates []string `json:"tolerates,omitempty" doc:"taints of workers that do not keep the trials away"`
	// TimeLimitSeconds is how long its worker must stay at least; 0: any time.
	TimeLimitSeconds float64 `json:"time_limit_seconds,omitempty" doc:"seconds that the worker must stay at least"`
}

// Bounds of what is wanted, and of the labels of a worker.
const (
	MostGPUTypes = 16
	MostGPUType  = 64
	MostLabels   = 32
	MostTaints   = 32
	mostKey      = 128
	mostValue    = 63
)

// Machine is what a worker's machine has.
type Machine struct {
	// GPUs are their names, and GPUMemoryBytes the memory of each; 0: not known.
	GPUs           []string
	GPUMemoryBytes []int64
	Labels         map[string]string
	// Taints keep trials away that do not tolerate them.
	Taints []string
	// Left is how long it stays; 0: nobody takes it away.
	Left time.Duration
}

// Suits reports whether the machine has all that is wanted.
func (s Selector) Suits(m Machine) bool {
	if s.WantsGPUs() && len(m.GPUs) == 0 {
		return false
	}
	for i, gpu := range m.GPUs {
		if len(s.GPUTypes) > 0 && !slices.ContainsFunc(s.GPUTypes, func(model string) bool { return names(model, gpu) }) {
			return false
		}
		if s.GPUMemoryGiB > 0 && m.gibibytes(i) < 0.9*s.GPUMemoryGiB {
			return false
		}
	}
	for key, value := range s.Labels {
		if m.Labels[key] != value {
			return false
		}
	}
	return len(s.keeps(m)) == 0 && (m.Left == 0 || m.Left.Seconds() >= s.TimeLimitSeconds)
}

// keeps are the machine's taints that are not tolerated.
func (s Selector) keeps(m Machine) []string {
	return slices.DeleteFunc(slices.Clone(m.Taints), func(taint string) bool { return slices.Contains(s.Tolerates, taint) })
}

// WantsGPUs reports whether it asks for GPUs of a kind.
func (s Selector) WantsGPUs() bool { return len(s.GPUTypes) > 0 || s.GPUMemoryGiB > 0 }

// names reports whether the words of the model follow each other in the GPU's name.
func names(model, gpu string) bool {
	return strings.Contains(words(gpu), words(model))
}

func words(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return " " + strings.Join(parts, " ") + " "
}

// gibibytes is the memory of a GPU; 0: not known.
func (m Machine) gibibytes(gpu int) float64 {
	if gpu >= len(m.GPUMemoryBytes) {
		return 0
	}
	return float64(m.GPUMemoryBytes[gpu]) / (1 << 30)
}

// Split has each thing that is wanted by itself, for machines without taints.
func (s Selector) Split() (parts []Selector) {
	if len(s.GPUTypes) > 0 {
		parts = append(parts, Selector{GPUTypes: s.GPUTypes})
	}
	if s.GPUMemoryGiB > 0 {
		parts = append(parts, Selector{GPUMemoryGiB: s.GPUMemoryGiB})
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		parts = append(parts, Selector{Labels: map[string]string{key: s.Labels[key]}})
	}
	if s.TimeLimitSeconds > 0 {
		parts = append(parts, Selector{TimeLimitSeconds: s.TimeLimitSeconds})
	}
	return parts
}

// Tolerated is the machine without its taints; false: one, which is returned, keeps the
// trials away.
func (s Selector) Tolerated(m Machine) (Machine, string, bool) {
	keeps := s.keeps(m)
	if m.Taints = nil; len(keeps) > 0 {
		return m, keeps[0], false
	}
	return m, "", true
}

// String names what is wanted by the fields of a study file; empty: nothing.
func (s Selector) String() string {
	var said []string
	if len(s.GPUTypes) > 0 {
		said = append(said, "gpu_type "+strings.Join(s.GPUTypes, " or "))
	}
	if s.GPUMemoryGiB > 0 {
		said = append(said, "gpu_memory_gib "+strconv.FormatFloat(s.GPUMemoryGiB, 'g', -1, 64))
	}
	if len(s.Labels) > 0 {
		said = append(said, "labels "+Shown(s.Labels))
	}
	if s.TimeLimitSeconds > 0 {
		said = append(said, "time_limit_seconds "+strconv.FormatFloat(s.TimeLimitSeconds, 'f', -1, 64))
	}
	return strings.Join(said, ", ")
}

// Has says what the machine has of that which a part of [Selector.Split] wants.
func (s Selector) Has(m Machine) string {
	for key := range s.Labels {
		if value, has := m.Labels[key]; has {
			return key + "=" + value
		}
		return "no label " + key
	}
	if s.TimeLimitSeconds > 0 {
		return fmt.Sprintf("leaves in %.0f s", m.Left.Seconds())
	}
	var shown []string
	for i, gpu := range m.GPUs {
		if s.GPUMemoryGiB > 0 {
			if gpu = "GPUs that do not tell"; m.gibibytes(i) > 0 {
				gpu = fmt.Sprintf("%.3g GiB", m.gibibytes(i))
			}
		}
		if !slices.Contains(shown, gpu) {
			shown = append(shown, gpu)
		}
	}
	if len(shown) == 0 {
		return "no GPU"
	}
	return strings.Join(shown, " and ")
}

// Shown has labels in their order, with commas.
func Shown(labels map[string]string) string {
	var shown []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		shown = append(shown, key+"="+labels[key])
	}
	return strings.Join(shown, ",")
}

// What labels look like: Kubernetes takes them too.
var (
	key   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)
	value = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// Wrong says what is wrong with labels and what would be right; empty: nothing.
func Wrong(labels map[string]string) string {
	if len(labels) > MostLabels {
		return fmt.Sprintf("has %d labels: at most %d", len(labels), MostLabels)
	}
	for _, one := range slices.Sorted(maps.Keys(labels)) {
		switch text := labels[one]; {
		case len(one) > mostKey || !key.MatchString(one):
			return fmt.Sprintf("has the name %.140q: it must be 1 to %d letters, digits, dots, dashes, underscores and slashes, such as zone", one, mostKey)
		case len(text) > mostValue || !value.MatchString(text):
			return fmt.Sprintf("has %s=%.140q: a value must be 1 to %d letters, digits, dots, dashes and underscores, such as eu-1a", one, text, mostValue)
		}
	}
	return ""
}

// WrongTaints says what is wrong with taints and what would be right; empty: nothing.
func WrongTaints(taints []string) string {
	if len(taints) > MostTaints {
		return fmt.Sprintf("has %d taints: at most %d", len(taints), MostTaints)
	}
	for i, one := range taints {
		if len(one) > mostKey || !key.MatchString(one) {
			return fmt.Sprintf("has %.140q: a taint must be 1 to %d letters, digits, dots, dashes, underscores and slashes, such as spot", one, mostKey)
		}
		if slices.Contains(taints[:i], one) {
			return fmt.Sprintf("has %s twice: name it once", one)
		}
	}
	return ""
}
