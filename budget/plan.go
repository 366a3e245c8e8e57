package budget

import "math"

// Plan previews what a search over a ladder will do, before anything ran.
//
// All its counts are expectations: that no trial fails, and that the search is not
// ended early by a target or a time limit. Under synchronous promotion one trial in eta
// goes up from each rung, and the counts are exact as long as that holds. Under
// asynchronous promotion more go up: see [overshoot]. It tells no seconds and no joules:
// what an epoch takes is unknown before the first was measured.
type Plan struct {
	// Brackets has one entry for each starting rung that is used.
	Brackets []Bracket `json:"brackets"`
	// Stages has one entry for each rung, the cheapest first, with the trials
	// of all brackets.
	Stages []Stage `json:"stages"`
	// Trials is how many configurations are tried; 0 if nothing bounds them
	// beforehand, and then every other count is 0 too.
	Trials int `json:"trials"`
	// Trainings counts each trial once for each rung that it is trained at.
	Trainings int `json:"trainings"`
	// Epochs is how many epochs are trained in all.
	Epochs int `json:"epochs"`
	// DataPasses counts the passes over the whole training data in all: an
	// epoch over a tenth of the data is a tenth of a pass.
	DataPasses float64 `json:"data_passes"`
	// FewestPasses and MostPasses are between what four of five recorded studies made,
	// where it is not known beforehand how many trials go up: bench/search -compare plans.
	FewestPasses float64 `json:"fewest_data_passes,omitempty"`
	MostPasses   float64 `json:"most_data_passes,omitempty"`
	// Seconds and Joules are what is trained in all, where the budgets are in
	// them; a rung ends with an epoch, so that it takes a little more. Epochs and
	// data passes are 0 then: nobody knows how many fit.
	Seconds float64 `json:"seconds,omitempty"`
	Joules  float64 `json:"joules,omitempty"`
	// Costs is what all that takes, an estimate; nil as long as no pace is known.
	Costs *Costs `json:"costs,omitempty"`
	// FullEpochs and FullDataPasses are what the same number of trials takes if
	// each is trained with the top rung's budget: the cost a ladder saves from.
	FullEpochs     int     `json:"full_epochs"`
	FullDataPasses float64 `json:"full_data_passes"`
	// ScratchEpochs is what the same trainings take if none continues from a
	// checkpoint and each begins anew, as Hyperband's paper counts.
	ScratchEpochs int `json:"scratch_epochs"`
	// Repeats is how many trainings with the top rung's budget come last, to see
	// how lucky the best were. They are part of the counts above, but not of the
	// trials, the stages and what the same trials take in full.
	Repeats int `json:"repeats,omitempty"`
	// UpperBound says that trials may be stopped while they train: the counts
	// of epochs, data passes and trainings are then the most there can be, as
	// far as the expectations above hold.
	UpperBound bool `json:"upper_bound,omitempty"`
	// System says in sentences what of the system is tuned while trials run, what is not,
	// and why, and where its models will run. It is written by whoever knows the study.
	System []string `json:"system,omitempty"`
}

// Bracket is a starting rung and how many trials begin there, in all rounds of
// the brackets together.
type Bracket struct {
	Start  int `json:"start"`
	Trials int `json:"trials"`
	// Sizes is how many of its trials are trained at each rung from Start up,
	// where the brackets halve by themselves (synchronous promotion); without
	// the one that is trained to the top because no bracket got there.
	Sizes []int `json:"sizes,omitempty"`
}

// Stage is the work expected at one rung.
type Stage struct {
	Rung
	// Started is how many trials begin at this rung, Promoted how many come up
	// from the rung below.
	Started  int `json:"started"`
	Promoted int `json:"promoted"`
	// Epochs and DataPasses are what these trials train for this rung. One that
	// continues its checkpoint trains only what the rung adds.
	Epochs     int     `json:"epochs"`
	DataPasses float64 `json:"data_passes"`
	// Seconds and Joules are the same where the budgets are in them.
	Seconds float64 `json:"seconds,omitempty"`
	Joules  float64 `json:"joules,omitempty"`
}

// NewPlan returns the plan of a search of maxTrials configurations (0: no
// bound) with the promotion, whose trials start at the lowest rungs, as many of
// them as brackets says (0: all). Hyperband's table says how many start at which. learns
// says that the search proposes better configurations as it goes on.
func NewPlan(s Settings, promotion Promotion, maxTrials, brackets int, learns bool) Plan {
	s = s.WithDefaults()
	rungs := s.Ladder()
	plan := Plan{Trials: max(maxTrials, 0), Stages: make([]Stage, len(rungs))}
	for i, rung := range rungs {
		plan.Stages[i].Rung = rung
	}
	switch promotion.OrDefault() {
	case Synchronous:
		plan.synchronous(bracketSizes(len(rungs), s.Eta, brackets), s.Eta)
	case NoPromotion:
		last := len(rungs) - 1
		plan.Brackets = []Bracket{{Start: last, Trials: plan.Trials}}
		plan.Stages[last].Started = plan.Trials
	default:
		plan.asynchronous(bracketSizes(len(rungs), s.Eta, brackets), s.Eta, learns)
	}
	for i := range plan.Stages {
		plan.work(i)
	}
	if promotion.OrDefault() == Asynchronous && len(rungs) > 1 {
		fewest, most := within(learns)
		plan.FewestPasses, plan.MostPasses = fewest*plan.DataPasses, most*plan.DataPasses
	}
	top := rungs[len(rungs)-1].Budget
	if top.Measured() {
		return plan
	}
	plan.FullEpochs = plan.Trials * top.Epochs
	plan.FullDataPasses = float64(plan.FullEpochs) * top.DataFraction
	return plan
}

// Repeating is the plan with trainings of the best trials at the top rung until
// each has as many results there as times says, each from scratch. There are
// fewer of them where fewer trials get to the top.
func (p Plan) Repeating(trials, times int) Plan {
	if p.Trials == 0 {
		return p
	}
	top := p.Stages[len(p.Stages)-1]
	p.Repeats = min(trials, top.Started+top.Promoted) * max(0, times-1)
	epochs := p.Repeats * top.Budget.Epochs
	p.Trainings += p.Repeats
	p.Epochs += epochs
	p.ScratchEpochs += epochs
	passes := float64(epochs) * top.Budget.DataFraction
	p.DataPasses += passes
	if p.MostPasses > 0 {
		p.FewestPasses += passes
		p.MostPasses += passes
	}
	p.Seconds += float64(p.Repeats) * top.Budget.Seconds
	p.Joules += float64(p.Repeats) * top.Budget.Joules
	return p
}

// within is what four of five recorded studies stayed between, as multiples of the passes
// that their plans expected.
func within(learns bool) (fewest, most float64) {
	if learns {
		return 0.7, 1.5
	}
	return 0.85, 1.4
}

// overshoot is how many trials go up from a rung for each that would if all outcomes were
// known. Asynchronous promotion sends up who is among the best so far, and keeps to it
// when better ones come (Li et al. 2020, section 3.2); a search that learns brings better
// ones all the time, once there are enough outcomes to learn from. The numbers bring the
// median of the recorded studies close to the plan: bench/search -compare plans.
func overshoot(trials int, learns bool) float64 {
	if learns && trials > 12 {
		return 1.3
	}
	return 1.1
}

// asynchronous fills in how many start at each rung and go up, where the
// brackets share the rungs.
func (p *Plan) asynchronous(sizes []float64, eta int, learns bool) {
	highest := 0
	for start, trials := range share(p.Trials, sizes) {
		p.Brackets = append(p.Brackets, Bracket{Start: start, Trials: trials})
		p.Stages[start].Started = trials
		if trials > 0 {
			highest = start
		}
	}
	for i := range p.Stages[1:] {
		below := p.Stages[i].Started + p.Stages[i].Promoted
		up := below / eta
		if up > 0 {
			up = int(math.Round(float64(below) / float64(eta) * overshoot(below, learns)))
		}
		if i+1 > highest && below > 0 {
			// However few they are, the best trial is trained to the top.
			up = max(1, up)
		}
		p.Stages[i+1].Promoted = up
	}
}

// synchronous fills in the same, where brackets run one after the other and
// halve by themselves, and the last one gets the trials that are left.
func (p *Plan) synchronous(sizes []float64, eta int) {
	for start := range sizes {
		p.Brackets = append(p.Brackets, Bracket{Start: start, Sizes: make([]int, len(p.Stages)-start)})
	}
	round := 0.0
	for _, size := range sizes {
		round += size
	}
	rounds := int(float64(p.Trials) / round)
	left := p.Trials
	for start, size := range sizes {
		if rounds > 0 {
			p.halve(start, int(size), rounds, eta)
			left -= rounds * int(size)
		}
	}
	for start, size := range sizes {
		n := int(min(size, float64(left)))
		p.halve(start, n, 1, eta)
		left -= n
	}
	for i := range p.Stages[1:] {
		below := p.Stages[i].Started + p.Stages[i].Promoted
		if top := p.Stages[len(p.Stages)-1]; top.Started+top.Promoted == 0 && below > 0 && p.Stages[i+1].Promoted == 0 {
			// Too few for one whole bracket: the best trial is trained to the top.
			p.Stages[i+1].Promoted = 1
		}
	}
}

// halve adds a bracket of n trials that is run a number of times: floor(n ·
// eta^-i) of its trials are trained i rungs above its start.
func (p *Plan) halve(start, n, times, eta int) {
	bracket := &p.Brackets[start]
	bracket.Trials += n * times
	for i := range bracket.Sizes {
		bracket.Sizes[i] += n * times
		if stage := &p.Stages[start+i]; i == 0 {
			stage.Started += n * times
		} else {
			stage.Promoted += n * times
		}
		n /= eta
	}
}

// work fills in what the stage trains and adds it to the plan.
func (p *Plan) work(i int) {
	stage := &p.Stages[i]
	p.Trainings += stage.Started + stage.Promoted
	if stage.Budget.Measured() {
		var below Budget
		if i > 0 {
			below = p.Stages[i-1].Budget
		}
		stage.Seconds = float64(stage.Started)*stage.Budget.Seconds + float64(stage.Promoted)*(stage.Budget.Seconds-below.Seconds)
		stage.Joules = float64(stage.Started)*stage.Budget.Joules + float64(stage.Promoted)*(stage.Budget.Joules-below.Joules)
		p.Seconds += stage.Seconds
		p.Joules += stage.Joules
		return
	}
	continued := 0
	if i > 0 && !stage.FromScratch {
		continued = p.Stages[i-1].Budget.Epochs
	}
	stage.Epochs = stage.Started*stage.Budget.Epochs + stage.Promoted*(stage.Budget.Epochs-continued)
	stage.DataPasses = float64(stage.Epochs) * stage.Budget.DataFraction
	p.ScratchEpochs += (stage.Started + stage.Promoted) * stage.Budget.Epochs
	p.Epochs += stage.Epochs
	p.DataPasses += stage.DataPasses
}

// bracketSizes returns how many configurations one round of Hyperband starts
// at rung 0, 1 and so on, for as many starting rungs as brackets allows (0:
// all): ⌈rungs × eta^h / (h+1)⌉, with h the number of rungs above the start (Li
// et al., Hyperband, 2018, algorithm 1). With 4 rungs and eta 3 that is 27, 12,
// 6 and 4.
func bracketSizes(rungs, eta, brackets int) []float64 {
	if brackets <= 0 || brackets > rungs {
		brackets = rungs
	}
	sizes := make([]float64, brackets)
	for start := range sizes {
		above := float64(rungs - 1 - start)
		sizes[start] = math.Ceil(float64(rungs) * math.Pow(float64(eta), above) / (above + 1))
	}
	return sizes
}

// share divides the trials in proportion to the sizes, the largest remainders
// rounded up.
func share(trials int, sizes []float64) []int {
	total := 0.0
	for _, size := range sizes {
		total += size
	}
	counts, given := make([]int, len(sizes)), 0
	remainders := make([]float64, len(sizes))
	for i, size := range sizes {
		exact := float64(trials) * (size / total)
		counts[i] = int(exact)
		remainders[i] = exact - float64(counts[i])
		given += counts[i]
	}
	for ; given < trials; given++ {
		best := 0
		for i, r := range remainders {
			if r > remainders[best] {
				best = i
			}
		}
		counts[best]++
		remainders[best] = -1
	}
	return counts
}
