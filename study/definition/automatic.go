package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/system"
)

// Tuning is what is tuned while trials run; nil for nothing. Automatic tunes the
// threads, unless the study sets them itself or its results depend on them; which other
// knobs the script reads is known when it runs.
func (d Definition) Tuning() *system.Settings {
	switch {
	case d.System.Word != Automatic:
		return d.System.Tuning
	case d.untuned() != "":
		return nil
	}
	return &system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{{Name: system.CPUThreads}}}
}

// untuned is why automatic tuning leaves the threads alone; empty where it does not.
func (d Definition) untuned() string {
	for _, name := range system.ThreadVariables() {
		if _, set := d.Environment[name]; set {
			return "environment sets " + name
		}
	}
	switch {
	case d.SharesGPUs():
		return "trials share GPUs and divide the cores likewise"
	case d.Budget.Policy.Measured():
		return fmt.Sprintf("the budget counts %s, which depend on them", d.Budget.Policy)
	}
	for _, one := range d.Objectives {
		if dependsOnTime(one.Metric + one.Expression) {
			return fmt.Sprintf("the objective %s depends on them", one.Label())
		}
	}
	for _, one := range d.Constraints {
		if dependsOnTime(one.Metric + one.Expression) {
			return fmt.Sprintf("the constraint %s depends on them", one.Label())
		}
	}
	return ""
}

// dependsOnTime reports whether a metric or formula uses what an epoch took.
func dependsOnTime(formula string) bool {
	return slices.ContainsFunc([]string{"train_seconds", "train_joules", TrainCost, TrainCO2}, func(name string) bool { return strings.Contains(formula, name) })
}

// SystemPlan says in one or two sentences what of the system is tuned while trials
// run, what is not, and why.
func (d Definition) SystemPlan() []string {
	tuning, word := d.Tuning(), d.System.Word
	if tuning == nil && len(d.Command) == 0 {
		return []string{"System: nothing is tuned, as trials run in a process of yours."}
	}
	if tuning == nil {
		switch why := d.untuned(); {
		case word == Automatic:
			return []string{fmt.Sprintf("System: nothing is tuned, as %s. List cpu_threads under system to tune it anyway.", why)}
		case word == Off:
			return []string{"System: nothing is tuned, as system is off."}
		}
		return []string{"System: nothing is tuned, as the section system lists no values to try."}
	}
	var names []string
	for _, knob := range tuning.Tuned {
		names = append(names, knob.Name)
	}
	if word != Automatic {
		return []string{fmt.Sprintf("System: tuned while trials train: %s. Nothing else is tuned, as system lists no values for it.", strings.Join(names, ", "))}
	}
	most := "the cores of a worker"
	if cores := d.Asked().Cores; cores > 0 {
		most = fmt.Sprintf("the %d cores that resources keeps", cores)
	}
	rest := "Other knobs are not tuned, as they need values under system."
	if least, most := d.GPUsEach(); least == 0 && most == 0 && d.Asked().GPUs == nil {
		rest = "Where there are GPUs, threads are tuned only if resources.gpus is set."
	}
	return []string{fmt.Sprintf("System: cpu_threads is tuned while trials train, from 1 to %s; loader_workers likewise, from 0, if the script calls trial.loader_workers().", most), rest}
}
