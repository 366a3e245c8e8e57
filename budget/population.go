package budget

// NewPopulationPlan returns the plan of population based training of so many
// trials on the ladder, with at most maxTrials configurations in all (0: no
// bound). A fifth of the population is expected to be replaced at each rung, by
// children that continue a checkpoint; when the trials are used up, the rest
// goes up by itself. FullEpochs is what the configurations would take if each
// were trained alone.
func NewPopulationPlan(s Settings, population, maxTrials int) Plan {
	s = s.WithDefaults()
	rungs := s.Ladder()
	if maxTrials > 0 {
		population = min(population, maxTrials)
	}
	plan := Plan{Trials: population, Stages: make([]Stage, len(rungs)), Brackets: []Bracket{{Start: 0, Trials: population}}}
	before := 0
	for i, rung := range rungs {
		stage := Stage{Rung: rung, Started: population}
		if i > 0 {
			stage.Started = population / 5
			if maxTrials > 0 {
				stage.Started = min(stage.Started, maxTrials-plan.Trials)
			}
			plan.Trials += stage.Started
			stage.Promoted = population - stage.Started
		}
		stage.Epochs = population * (rung.Budget.Epochs - before)
		stage.DataPasses = float64(stage.Epochs) * rung.Budget.DataFraction
		before = rung.Budget.Epochs
		plan.Stages[i] = stage
		plan.Trainings += population
		plan.ScratchEpochs += population * rung.Budget.Epochs
		plan.Epochs += stage.Epochs
		plan.DataPasses += stage.DataPasses
	}
	top := rungs[len(rungs)-1].Budget
	plan.FullEpochs = plan.Trials * top.Epochs
	plan.FullDataPasses = float64(plan.FullEpochs) * top.DataFraction
	return plan
}
