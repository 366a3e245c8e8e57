package dopeml

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Exploration is how a chooser finds out about backends that do not look best.
type Exploration string

// The ways to explore.
const (
	// Greedy never does: what is predicted best is chosen.
	Greedy Exploration = "none"
	// Optimism takes what would be best if every backend were as much better
	// than predicted as its deviation.
	Optimism Exploration = "optimism"
)

// Settings of a chooser; zeros are the defaults.
type Settings struct {
	// Exploration is [Greedy] by default.
	Exploration Exploration
	// Share is which part of the runs may be exploration, beyond one run of each
	// backend; 0.2 by default.
	Share float64
}

// Chooser learns from runs and chooses backends. It is not for several
// goroutines at once.
type Chooser struct {
	settings  Settings
	profiles  []Profile
	encoder   encoder
	rows      []Row
	predictor *ridge // nil when there are rows that it has not learned
	runs      []int  // of each backend
	explored  int
}

// New makes a chooser among these backends that has not learned anything.
func New(profiles []Profile, settings Settings) (*Chooser, error) {
	if err := Check(profiles); err != nil {
		return nil, err
	}
	if settings.Share == 0 {
		settings.Share = 0.2
	}
	switch settings.Exploration {
	case "":
		settings.Exploration = Greedy
	case Greedy, Optimism:
	default:
		return nil, problem.New(problem.Invalid, "there is no exploration %q; there are %s and %s", settings.Exploration, Greedy, Optimism)
	}
	if !(settings.Share > 0 && settings.Share <= 1) {
		return nil, problem.New(problem.Invalid, "the share of exploration is %v; 0 to 1 is possible", settings.Share)
	}
	return &Chooser{settings: settings, profiles: profiles, encoder: encoder{profiles}, runs: make([]int, len(profiles))}, nil
}

// Learn takes in runs, the oldest first.
func (c *Chooser) Learn(runs ...Run) error {
	for i, run := range runs {
		row, err := c.row(run)
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
		c.rows = append(c.rows, row)
		c.runs[row.Backend]++
		if run.Explored {
			c.explored++
		}
	}
	c.predictor = nil
	return nil
}

func (c *Chooser) row(run Run) (Row, error) {
	if path, message := run.fault(); path != "" {
		return Row{}, problem.WithFields("a run cannot be learned", []problem.Field{{Path: path, Message: message}})
	}
	for b, profile := range c.profiles {
		if profile.Name != run.Backend {
			continue
		}
		row := Row{Backend: b, Features: c.encoder.encode(run.Model, run.Request, b)}
		for m, value := range run.Measured.Values() {
			row.Targets = append(row.Targets, Measure(m).encode(value))
		}
		return row, nil
	}
	return Row{}, problem.New(problem.Invalid, "a run is of the backend %q, which is not among those to choose from: give it a profile, or leave its runs out", run.Backend)
}

// prediction is of one backend, in the units of predictors.
type prediction struct{ mean, deviation []float64 }

// values decodes a prediction that is so many deviations better than its mean;
// steps are in the order of the measures.
func (p prediction) values(profile Profile, steps func(Measure) float64) Values {
	values := unknown()
	for m := range measures {
		if code := p.mean[m]; !math.IsNaN(code) {
			values[m] = m.decode(code + steps(m)*p.deviation[m])
		}
	}
	if profile.GPUs == 0 { // known, not predicted
		values[GPUUtilization], values[GPUMemoryBytes] = 0, 0
	}
	return values
}

func (c *Chooser) predict(model Model, request Request) []prediction {
	if c.predictor == nil {
		shape := Shape{Backends: len(c.profiles), Condition: c.encoder.condition()}
		for m := range measures {
			shape.Logarithmic = append(shape.Logarithmic, m.logarithmic())
		}
		c.predictor = &ridge{shape: shape}
		c.predictor.Fit(c.rows)
	}
	list := make([]prediction, len(c.profiles))
	for b := range c.profiles {
		mean, deviation := c.predictor.Predict(c.encoder.encode(model, request, b))
		for o := range deviation {
			// Nothing says of a backend without runs how it differs from the others.
			if c.runs[b] == 0 && Measure(o).logarithmic() {
				deviation[o] = max(deviation[o], 1)
			}
		}
		list[b] = prediction{mean, deviation}
	}
	return list
}

// Choose chooses a backend for the requests. The same runs and the same
// question give the same choice; what is learned of it comes with the next run,
// whose Explored should be the choice's.
func (c *Chooser) Choose(model Model, request Request, wishes Wishes) (Choice, error) {
	if request.Batch == 0 {
		request.Batch = 1
	}
	if err := wishes.Check(); err != nil {
		return Choice{}, err
	}
	for _, one := range []struct{ path, message string }{pair(model.fault()), pair(request.fault())} {
		if one.path != "" {
			return Choice{}, problem.WithFields("the question cannot be answered", []problem.Field{{Path: one.path, Message: one.message}})
		}
	}
	if len(c.rows) == 0 && c.settings.Exploration == Greedy {
		return Choice{}, problem.New(problem.Invalid, "there are no runs to learn from: give runs of the backends, or choose an exploration, which tries them one after the other")
	}
	predictions := c.predict(model, request)
	choice := Choice{Chosen: -1}
	for b, profile := range c.profiles {
		option := newOption(profile, model, request, predictions[b])
		option.Runs = c.runs[b]
		option.rule(profile, model, wishes, len(c.rows) > 0)
		choice.Options = append(choice.Options, option)
	}
	choice.Chosen = c.best(choice.Options)
	choice.Greedy = choice.Chosen
	if other := c.explore(question{model, request, wishes}, choice, predictions); other >= 0 && other != choice.Chosen {
		choice.Chosen, choice.Explored = other, true
	}
	choice.explain(wishes)
	return choice, nil
}

func pair(path, message string) struct{ path, message string } {
	return struct{ path, message string }{path, message}
}

// best is the option of least loss that nothing rules out, of those that ran
// before if there are any; -1 if there is none.
func (c *Chooser) best(options []Option) int {
	best := -1
	for _, ran := range []bool{true, false} {
		for b, option := range options {
			if len(option.RuledOut) > 0 || math.IsNaN(option.loss) || (option.Runs > 0) != ran {
				continue
			}
			if best < 0 || option.loss < options[best].loss {
				best = b
			}
		}
		if best >= 0 {
			break
		}
	}
	return best
}

type question struct {
	model   Model
	request Request
	wishes  Wishes
}

// explore is what exploration would choose, or -1 when it is not its turn. What
// the predicted means rule out is not explored.
func (c *Chooser) explore(q question, choice Choice, predictions []prediction) int {
	budget := float64(len(c.profiles)) + c.settings.Share*float64(len(c.rows))
	if c.settings.Exploration == Greedy || float64(c.explored) >= budget {
		return -1
	}
	best, least := -1, math.Inf(1)
	for b, option := range choice.Options {
		if len(option.RuledOut) > 0 {
			continue
		}
		if option.Runs == 0 {
			return b
		}
		values := predictions[b].values(c.profiles[b], func(m Measure) float64 {
			if m == Accuracy {
				return 1
			}
			return -1
		})
		if loss := q.wishes.Loss(Judge(c.profiles[b], q.model, q.request, values)); loss < least {
			best, least = b, loss
		}
	}
	return best
}
