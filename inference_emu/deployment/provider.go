package deployment

import (
	"cmp"
	"fmt"
	"slices"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// having are the providers of the settings that the device can use beside the CPU's own.
func (t Target) having(settings Settings) (list []string) {
	for _, one := range settings.Providers {
		if slices.Contains(t.Providers, one) {
			list = append(list, one)
		}
	}
	return list
}

// unprovided are the settings that were measured on the CPU, and not by the provider.
func (t Target) unprovided(a emu.Architecture, settings Settings, provider string) (cells []Cell) {
	s := site{architecture: a, device: t.Device, settings: settings}
	space, by := s.space(), t
	by.Provider = provider
	done := by.runsOf(a)
	for _, run := range t.runsOf(a) {
		if s.holds(space, run) && !slices.ContainsFunc(done, func(one emu.Run) bool { return one.Batch == run.Batch && one.Threads == run.Threads }) {
			cells = append(cells, Cell{run.Batch, run.Threads, provider})
		}
	}
	return cells
}

// provided are the variants by each provider of the settings, those by the CPU's own first.
func (s Settings) provided(variants []Variant) []Variant {
	all := slices.Clone(variants)
	for _, provider := range s.Providers[min(1, len(s.Providers)):] {
		for _, one := range variants {
			one.Provider = provider
			all = append(all, one)
		}
	}
	return all
}

// shown is the provider's name, where several are compared.
func (s site) shown() string {
	if len(s.settings.Providers) == 0 {
		return ""
	}
	return cmp.Or(s.provider, emu.CPU)
}

// with sets something in the configuration and in those of the front.
func (d *Deployment) with(set func(*tuning.Configuration)) {
	set(&d.Configuration)
	for i := range d.Front {
		set(&d.Front[i].Configuration)
	}
}

// byOpenVINO is how a program asks for it, and checked how it looks whether it got it: ONNX
// Runtime would fall back on the CPU.
const (
	byOpenVINO = `[("OpenVINOExecutionProvider", {"device_type": "CPU", "num_of_threads": "%d"}), "CPUExecutionProvider"]`
	checked    = `if session.get_providers()[0] != "OpenVINOExecutionProvider":
    raise SystemExit("this onnxruntime cannot use OpenVINO: pip uninstall onnxruntime; pip install onnxruntime-openvino")
`
)

// session are the providers that the program names, and what it checks of them.
func (d Deployment) session() (providers, check string) {
	if d.Configuration.Provider != emu.OpenVINO {
		return `["CPUExecutionProvider"]`, ""
	}
	return fmt.Sprintf(byOpenVINO, max(1, d.Configuration.Cores)), checked
}

// Package is the Python package of ONNX Runtime that the program needs.
func (d Deployment) Package() string {
	if d.Configuration.Provider != emu.OpenVINO {
		return "onnxruntime"
	}
	return "onnxruntime-openvino"
}
