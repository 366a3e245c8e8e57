package utilization

import (
	"fmt"
	"slices"
)

const (
	// LeastToLearn is how many trainings must have been seen before anything is
	// predicted, and leastFamilies of how many architectures: of fewer, nothing
	// is told apart.
	LeastToLearn  = 12
	leastFamilies = 3
	// MostToLearn is how many are learned from at most: what a server keeps of
	// them, and the time that it takes to learn, are bounded.
	MostToLearn = 256
)

// Learned is a model with how well it does on trainings that it did not see.
type Learned struct {
	Model *Model
	// Families are the architectures that it has seen, sorted.
	Families []string
	// BySample is how well trainings are predicted that were hidden, a fifth at a
	// time, and Mean what the mean of the others does there: a model that does no
	// better knows nothing.
	BySample, Mean Verdict
	// ByFamily is the same with all trainings of an architecture hidden together;
	// nil where new architectures are not predicted, and Unlike says why.
	ByFamily *Verdict
	Unlike   string
}

// Learn makes a model of trainings that were seen, by the profiles of a server,
// and judges it. The error says in words why there is none: too few trainings or
// architectures, or no better predictions than the mean's.
func Learn(samples []Sample) (*Learned, error) {
	parts := Families(samples)
	switch {
	case len(samples) < LeastToLearn:
		return nil, fmt.Errorf("%d trainings were seen alone on such a GPU with their architecture known: at least %d are needed", len(samples), LeastToLearn)
	case len(samples) > MostToLearn:
		return nil, fmt.Errorf("%d trainings: at most %d are learned from", len(samples), MostToLearn)
	case len(parts) < leastFamilies:
		return nil, fmt.Errorf("the %d trainings that were seen are of %d architectures: at least %d are needed", len(samples), len(parts), leastFamilies)
	}
	learned := &Learned{}
	for _, part := range parts {
		learned.Families = append(learned.Families, samples[part[0]].Family)
	}
	slices.Sort(learned.Families)
	var err error
	if learned.Model, err = Train(samples, Process); err != nil {
		return nil, err
	}
	drawn := DrawnParts(len(samples), 1)
	if learned.BySample, learned.Mean, err = learned.compare(samples, drawn); err != nil {
		return nil, err
	}
	if !knows(learned.BySample, learned.Mean) {
		return nil, fmt.Errorf("of %d trainings, what was hidden is predicted no better than by their mean (RMSLE %.3f against %.3f): more are needed", len(samples), learned.BySample.Utilization, learned.Mean.Utilization)
	}
	if learned.ByFamily, err = learned.byFamily(samples, dealt(parts)); err != nil {
		learned.Unlike = err.Error()
	}
	return learned, nil
}

// compare judges a process and the mean. How wide bands are is taken from the model
// of all: to find it anew for each part would take many times as long.
func (l *Learned) compare(samples []Sample, parts [][]int) (process, mean Verdict, err error) {
	for method, into := range map[Method]*Verdict{Process: &process, Mean: &mean} {
		*into, err = judge(samples, parts, func(rest []Sample) (*Model, error) {
			inputs, targets := rows(rest)
			m := &Model{utilization: fit(inputs, targets[0], method), memory: fit(inputs, targets[1], method)}
			m.utilization.residual, m.memory.residual = l.Model.utilization.residual, l.Model.memory.residual
			return m, nil
		})
		if err != nil {
			return process, mean, err
		}
	}
	return process, mean, nil
}

// knows reports whether a model does better than the mean of all, by a twentieth
// at least, or is hardly ever off.
func knows(model, mean Verdict) bool {
	const twentieth = 0.05
	return model.Utilization <= (1-twentieth)*mean.Utilization || model.Utilization <= twentieth
}

// byFamily is how well architectures are predicted that were hidden. The error
// says why new ones are not predicted.
func (l *Learned) byFamily(samples []Sample, parts [][]int) (*Verdict, error) {
	for _, part := range parts {
		if len(samples)-len(part) < leastSamples {
			return nil, fmt.Errorf("%d of %d trainings are of one architecture, and without them there is too little to learn from", len(part), len(samples))
		}
	}
	model, mean, err := l.compare(samples, parts)
	if err != nil {
		return nil, err
	}
	if !knows(model, mean) {
		return nil, fmt.Errorf("architectures that were hidden are predicted no better than by the mean of the others (RMSLE %.3f against %.3f)", model.Utilization, mean.Utilization)
	}
	return &model, nil
}

// dealt are the families in at most as many parts as samples are hidden in: there
// may be hundreds, and a model is trained for each part.
func dealt(families [][]int) [][]int {
	parts := make([][]int, min(folds, len(families)))
	for at, family := range families {
		parts[at%len(parts)] = append(parts[at%len(parts)], family...)
	}
	return parts
}

// Knows reports whether trainings of the architecture were among those that it
// was learned from.
func (l *Learned) Knows(family string) bool {
	_, found := slices.BinarySearch(l.Families, family)
	return found
}

// Expect is what a training should use, and how far predictions like it were
// off: those of architectures that were never seen, where this one was not. The
// error says why it is not predicted.
func (l *Learned) Expect(f Features, family string) (Prediction, Verdict, error) {
	switch {
	case l.Knows(family):
		return l.Model.Predict(f), l.BySample, nil
	case l.ByFamily == nil:
		return Prediction{}, Verdict{}, fmt.Errorf("no training of its architecture was seen, and new ones are not predicted: %s", l.Unlike)
	}
	return l.Model.Predict(f), *l.ByFamily, nil
}
