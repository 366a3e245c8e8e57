package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
)

// page is what the template shows.
type page struct {
	Title, Policy       string
	Style               template.CSS
	Description, Status string
	// Source says where and when the page is from.
	Source    string
	Answer    string
	Winner    *table
	Notes     []string
	Estimates []string
	Costs     *table
	Figures   []figure
	Board     *table
	Programs  []program
	// Commands are what gets the answer from the server, as typed.
	Commands   []string
	Definition string
	// Left says what of the definition is left out.
	Left string
}

// program runs the winner's model on a device.
type program struct{ Device, Code string }

func pageOf(s Source) page {
	view := page{
		Title: s.Study.Name, Policy: contentPolicy(), Style: template.CSS(style), //nolint:gosec // it is a constant of this program
		Description: s.Study.Definition.Description, Status: statusOf(s.Study), Source: sourceOf(s),
		Answer: answerOf(s), Winner: winnerOf(s.Recommendation), Notes: s.Recommendation.Notes,
		Estimates: estimatesOf(s), Costs: costsOf(s), Board: boardOf(s), Commands: commandsOf(s),
	}
	view.Figures = append(append(bestFigures(s), curvesFigure(s), parallelFigure(s), importanceFigure(s)), paretoFigures(s)...)
	view.Figures = append(view.Figures, timelineFigure(s))
	for _, f := range []figure{systemFigure(s), edgeFigure(s)} {
		if f.Summary != "" { // most studies tune no system and deploy nothing
			view.Figures = append(view.Figures, f)
		}
	}
	running, without := runnable(s.Recommendation.Deployments)
	view.Notes = append(slices.Clone(view.Notes), without...)
	for _, one := range running {
		view.Programs = append(view.Programs, program{one.Title, one.Code})
	}
	view.Definition, view.Left = definitionOf(s.Study.Definition)
	return view
}

func statusOf(study protocol.StudyView) string {
	if study.Reason == "" {
		return string(study.Status)
	}
	return string(study.Status) + ": " + study.Reason
}

func sourceOf(s Source) string {
	text := fmt.Sprintf("Study %s of %s, created %s", s.Study.ID, s.Study.Owner, s.Study.Created.UTC().Format("2006-01-02 15:04 UTC"))
	if s.Server != "" {
		text += ", on " + s.Server
	}
	text += fmt.Sprintf(". Written %s by tandem %s.", s.Written.UTC().Format("2006-01-02 15:04 UTC"), s.Program)
	if !s.Study.Status.Over() {
		text += " The study is not over: a later report may say something else."
	}
	return text
}

func answerOf(s Source) string {
	best := s.Recommendation.Best
	if best == nil {
		return "There is no recommendation: no trial has been measured."
	}
	return fmt.Sprintf("Trial %d is recommended: %s %s with %s.", best.Number, best.Metric, format.BestValue(*best), format.Budget(best.Budget))
}

// winnerOf are the recommended trial's parameters, and what else it reached.
func winnerOf(answer protocol.Recommendation) *table {
	if answer.Best == nil {
		return nil
	}
	t := &table{Caption: "The recommended trial", Heading: []string{"What", "Value", "Is"}}
	add := func(name, value, is string) {
		t.Rows = append(t.Rows, []cell{words(name), {Text: value, Number: true}, words(is)})
	}
	if answer.Pareto != nil {
		for i, one := range answer.Pareto.Objectives[1:] {
			if i+1 < len(answer.Best.Values) {
				add(one.Name, format.Number(answer.Best.Values[i+1]), "objective")
			}
		}
	}
	for _, name := range sorted(answer.Best.Params) {
		add(name, format.Value(answer.Best.Params[name]), "parameter")
	}
	for _, name := range sorted(answer.System) {
		add(name, format.Value(answer.System[name]), "system parameter")
	}
	for _, name := range sorted(answer.Metrics) {
		add(name, format.Number(answer.Metrics[name]), "metric of its last epoch")
	}
	add("training time", format.Seconds(float64(answer.Seconds)), "cost of this training")
	add("energy", format.Energy(answer.Energy), "cost of this training")
	if answer.Checkpoint != nil {
		add("checkpoint", fmt.Sprintf("epoch %d, %s", answer.Checkpoint.Epoch, format.Size(answer.Checkpoint.Bytes)), "artifact "+clipped(answer.Checkpoint.Artifact, 13))
	}
	return t
}

func costsOf(s Source) *table {
	p := s.Study.Progress
	t := &table{Caption: "What the study cost", Heading: []string{"What", "Amount"}}
	add := func(what, amount string) { t.Rows = append(t.Rows, []cell{words(what), numeral(amount)}) }
	add("Time it ran", format.Seconds(p.ElapsedSeconds))
	add("Training time of all trials", format.Seconds(p.TrialSeconds))
	add("Energy of all trainings", format.Energy(p.Energy))
	add("Epochs", fmt.Sprint(p.Epochs))
	add("Passes over the data", fmt.Sprintf("%.1f", p.DataPasses))
	trials := fmt.Sprint(p.Created)
	if p.MaxTrials > 0 {
		trials += fmt.Sprintf(" of %d", p.MaxTrials)
	}
	add("Configurations tried", trials)
	add("Trials by state", format.States(p.Trials))
	add("Promotions to a higher rung", fmt.Sprint(p.Promotions))
	add("Trainings continued from a checkpoint", fmt.Sprint(p.Resumes))
	if p.Repeats > 0 {
		add("Repeats of the best, with other seeds", fmt.Sprint(p.Repeats))
	}
	if p.Saved != nil {
		add("Saved by tuning the system", savedWithInterval(*p.Saved))
	}
	return t
}

// estimatesOf says which numbers of the page are estimates, and what they stand on.
func estimatesOf(s Source) []string {
	var list []string
	p := s.Study.Progress
	if p.Energy.Estimated() {
		list = append(list, "Joules: "+p.Energy.Method+".")
	}
	if best := s.Recommendation.Best; best != nil && best.Estimated {
		list = append(list, fmt.Sprintf("Values of %s: joules or inferences that were not measured went into them.", best.Metric))
	}
	if p.Saved != nil && p.Saved.SecondsLow == nil {
		list = append(list, "What tuning the system saved: the same epoch is never run with both configurations.")
	}
	if bound := p.RegretBound; bound != nil {
		list = append(list, fmt.Sprintf("At most %.3g of %s is left to gain, at %g %% confidence, by a model of %s.", float64(bound.Value),
			s.Study.Definition.Objectives[0].Label(), 100*bound.Confidence, format.Count(bound.Results, "full result")))
	}
	for _, one := range s.Recommendation.Deployments {
		if one.Runs() && one.Estimated() {
			list = append(list, fmt.Sprintf("Inference on %s: %s.", one.Title, one.Method))
		}
		if !one.Estimated() && one.EnergyEstimated() {
			list = append(list, fmt.Sprintf("Joules of inference on %s: %s.", one.Title, one.EnergyMethod))
		}
	}
	return list
}

// boardOf is the leaderboard.
func boardOf(s Source) *table {
	def := s.Study.Definition
	t := &table{Caption: "Trials, the best first", Heading: []string{"Rank", "Trial"}}
	for _, one := range def.Objectives {
		t.Heading = append(t.Heading, one.Label())
	}
	if len(def.Constraints) > 0 {
		t.Heading = append(t.Heading, "Violation")
	}
	t.Heading = append(t.Heading, "State", "Rung", "Epochs", "Time", "Energy")
	for _, p := range def.Space.Parameters {
		t.Heading = append(t.Heading, p.Name)
	}
	for _, one := range s.Trials[:min(len(s.Trials), maxRows)] {
		t.Rows = append(t.Rows, boardRow(one, def))
	}
	if left := len(s.Trials) - maxRows; left > 0 {
		t.Caption += fmt.Sprintf("; %d of %d are left out ('tandem study export %s' has all)", left, len(s.Trials), s.Study.Name)
	}
	return t
}

func boardRow(one protocol.RankedTrial, def definition.Definition) []cell {
	rank, rung := "-", one.Rung
	if one.Rank > 0 && len(one.Results) > 0 {
		rank, rung = fmt.Sprint(one.Rank), one.Results[len(one.Results)-1].Rung
	}
	row := []cell{numeral(rank), numeral(fmt.Sprint(one.Number))}
	for objective := range def.Objectives {
		said := "-"
		if value, measured := one.Value(objective); measured {
			said = format.Number(value)
			if one.Results[len(one.Results)-1].Estimated {
				said += " (estimate)"
			}
		}
		if one.Repeated != nil && objective < len(one.Repeated.Mean) {
			said = format.Mean(*one.Repeated, objective)
		}
		row = append(row, cell{Text: said, Number: true, Strong: objective == 0})
	}
	if len(def.Constraints) > 0 {
		row = append(row, numeral(violationOf(one)))
	}
	state := string(one.State)
	if one.RepeatOf != nil {
		state += fmt.Sprintf(" (repeats trial %d)", *one.RepeatOf)
	}
	row = append(row, words(state), numeral(fmt.Sprint(rung)), numeral(fmt.Sprint(one.Epochs)), numeral(format.Seconds(float64(one.Seconds))), numeral(format.Energy(one.Energy)))
	for _, p := range def.Space.Parameters {
		value, has := one.Configuration[p.Name]
		switch {
		case !has:
			row = append(row, numeral("-"))
		case len(p.Values) > 0:
			row = append(row, words(format.Value(value)))
		default:
			row = append(row, numeral(format.Value(value)))
		}
	}
	return row
}

func violationOf(one protocol.RankedTrial) string {
	switch {
	case len(one.Results) == 0:
		return "-"
	case one.Results[len(one.Results)-1].Violation == 0:
		return "none"
	}
	return format.Number(one.Results[len(one.Results)-1].Violation)
}

// commandsOf are what gets the answer, and the winner's checkpoint.
func commandsOf(s Source) []string {
	list := []string{
		"tandem study recommend " + quoted(s.Study.ID) + " --json   # parameters, system, checkpoint and deployments",
		"tandem study export " + quoted(s.Study.ID) + " -o trials.csv   # every trial",
	}
	if c := s.Recommendation.Checkpoint; c != nil && s.Server != "" {
		list = append(list, fmt.Sprintf(`curl --fail --header "Authorization: Bearer $TANDEM_TOKEN" --output checkpoint.tar %s`, quoted(s.Server+"/api/v1/artifacts/"+c.Artifact)))
	}
	return list
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// definitionOf is the study file as JSON, which YAML's readers read too. What an
// environment is set to stays at home.
func definitionOf(def definition.Definition) (text, left string) {
	if len(def.Environment) > 0 {
		names := make(map[string]string, len(def.Environment))
		for name := range def.Environment {
			names[name] = "..."
		}
		def.Environment, left = names, "The values of environment variables are left out."
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(def); err != nil {
		return "", "The definition cannot be written: " + err.Error()
	}
	text = out.String()
	if len(text) > maxDefinition {
		cut := strings.LastIndexByte(text[:maxDefinition], '\n')
		text, left = text[:cut], strings.TrimSpace(left+fmt.Sprintf(" The last %d bytes of the definition are left out.", len(text)-cut))
	}
	return text, left
}
