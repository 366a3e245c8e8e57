package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
)

// Unmeasured says that the study's minutes of measuring are spent; empty while they are
// not. What was spent are the measured runs of its architectures since it was created, which
// are stored: a restart changes nothing.
func (s *Service) Unmeasured(ctx context.Context, want Wanted) (string, error) {
	section := want.Definition.Inference
	if section == nil || section.BudgetMinutes <= 0 {
		return "", nil
	}
	spent := 0.0
	for _, key := range want.Keys {
		a, err := s.store.Architecture(ctx, key)
		if problem.Is(err, problem.NotFound) {
			continue // so many newer ones were seen that it went
		}
		if err != nil {
			return "", err
		}
		for _, run := range a.Runs {
			if !run.At.Before(want.Created) && of(run, *section) {
				spent += run.Took() / 60
				if run.First.Before(want.Created) {
					spent -= run.Repeated / 60 // it may have been for others
				}
			}
		}
	}
	if spent < section.BudgetMinutes {
		return "", nil
	}
	return fmt.Sprintf("inferences were measured for %.3g minutes, and inference.budget_minutes is %g: what was not measured stays an estimate", spent, section.BudgetMinutes), nil
}

// of reports whether the run is of one of the section's devices, or of a worker: those have
// their type of machine.
func of(run emu.Run, section definition.Inference) bool {
	if slices.Contains(section.Names(), run.Machine) {
		return true
	}
	devices, err := catalogue()
	elsewhere := strings.HasPrefix(run.Machine, device.BoardPrefix) || err == nil && slices.ContainsFunc(devices, func(one device.Device) bool { return one.Name == run.Machine })
	return !elsewhere
}
