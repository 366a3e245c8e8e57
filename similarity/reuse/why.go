package reuse

import (
	"fmt"
	"math"
	"strings"

	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

func whyGuess(configuration system.Configuration, runs int) string {
	return fmt.Sprintf("%s was best for the known workloads on machines of this type (%d were measured)", shown(configuration), runs)
}

// whyStart says by whose measurements a trial starts.
func (d decision) whyStart(setting trial.Setting) string {
	runs := severalTimed(d.seen.study)
	if setting.Phase == trial.Script {
		if runs = severalTimed(d.seen.script); runs == 0 {
			runs = severalTimed(d.seen.argued)
		}
	}
	why := strings.TrimSpace(fmt.Sprintf("%s is best by %d run%s of this %s %s", shown(setting.Configuration), runs, plural(runs), setting.Phase, d.by))
	if d.unlike > 0 {
		why += "; " + d.leftOut()
	}
	return why
}

// leftOut says which known runs do not count.
func (d decision) leftOut() string {
	return fmt.Sprintf("%d known run%s left out, as the ratios of costs differ", d.unlike, plural(d.unlike))
}

// kin says which other runs of the study and the script count.
func (d decision) kin() string {
	study, script, argued := severalTimed(d.seen.study), severalTimed(d.seen.script), severalTimed(d.seen.argued)
	switch {
	case study > 0 && script > 0:
		return fmt.Sprintf("with %d other run%s of this study and %d of this script", study, plural(study), script)
	case study > 0:
		return strings.TrimSpace(fmt.Sprintf("with %d other run%s of this study %s", study, plural(study), d.by))
	case script > 0:
		return fmt.Sprintf("with %d other run%s of this script", script, plural(script))
	case argued > 0 && !d.match.Similar:
		return fmt.Sprintf("with %d run%s of this script with other fixed parameters", argued, plural(argued))
	}
	return ""
}

// shown names a configuration.
func shown(configuration system.Configuration) string {
	if key := configuration.Key(); key != "" {
		return key
	}
	return "the configuration without knobs"
}

// why says in a sentence what the setting stands on.
func (d decision) why(setting trial.Setting, choice probing.Choice, model *probing.Model) string {
	var parts []string
	if d.drifted {
		parts = append(parts, "the profile has changed, so this is looked up anew")
	}
	if d.unlike > 0 {
		parts = append(parts, d.leftOut())
	}
	kin := d.kin()
	switch {
	case kin != "":
		parts = append(parts, kin)
	case d.match.Similar:
		parts = append(parts, fmt.Sprintf("similar to %d known run%s (workload %s, confidence %.0f %%)",
			len(d.match.Members), plural(len(d.match.Members)), d.match.Workload, 100*d.match.Confidence))
	case d.input.Epoch.Features == nil:
		parts = append(parts, "not profiled, so it is not looked up")
	default:
		parts = append(parts, "similar to no known workload")
	}
	switch {
	case setting.Phase == trial.Probing && d.input.Left == 0:
		parts = append(parts, "so far "+d.against(setting.Configuration, model), fmt.Sprintf("%d other%s may be better", max(1, choice.Surviving-1), plural(choice.Surviving-1)))
	case setting.Phase == trial.Probing:
		parts = append(parts, fmt.Sprintf("measuring %s, one of %d that may be the best", shown(setting.Configuration), max(1, choice.Surviving)))
	case setting.Phase == trial.Default && choice.Probe >= 0:
		parts = append(parts, "this run is too short to measure anything")
	default:
		parts = append(parts, d.against(setting.Configuration, model))
	}
	if len(choice.Indifferent) > 0 {
		parts = append(parts, strings.Join(choice.Indifferent, " and ")+" make"+third(len(choice.Indifferent))+" no difference")
	}
	return strings.Join(parts, "; ")
}

func plural(n int) string {
	if n <= 1 {
		return ""
	}
	return "s"
}

func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// against compares a configuration with the default one, as the candidates are:
// with what each takes of the machine.
func (d decision) against(configuration system.Configuration, model *probing.Model) string {
	standard := d.standard()
	if configuration.Equal(standard) {
		return shown(configuration) + ", the default, is the best"
	}
	chosen, other := d.candidate(configuration), d.candidate(standard)
	ratio, deviation := model.Ratio(chosen, other)
	if deviation > certain {
		return fmt.Sprintf("%s is %s; how it compares with the default %s was not measured here", shown(configuration), d.reason(configuration), shown(standard))
	}
	change := 100 * (math.Exp(ratio+chosen.LogWeight-other.LogWeight) - 1)
	quantity := map[system.Objective]string{system.Joules: "joules", system.Cost: "rent"}[d.input.Settings.Objective]
	if quantity == "" {
		quantity = "seconds"
		if chosen.LogWeight != other.LogWeight {
			quantity = "seconds of the machine"
		}
	}
	return fmt.Sprintf("%s takes an estimated %.0f %% %s %s than the default %s", shown(configuration), math.Abs(change), direction(change), quantity, shown(standard))
}

// reason says why a configuration is taken that was not compared.
func (d decision) reason(configuration system.Configuration) string {
	switch {
	case d.input.MachineBest != nil && configuration.Equal(d.input.MachineBest):
		return "the best for most known workloads"
	case d.standard().Demand(d.input.Situation.Machine) > d.input.Situation.Cores:
		return "what the free cores have room for"
	}
	if len(d.grid) > 1 {
		return "the best of those that were measured"
	}
	return "the only one there is"
}

func direction(change float64) string {
	if change > 0 {
		return "more"
	}
	return "fewer"
}
