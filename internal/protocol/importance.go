package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/space"
)

// The methods that importance is measured with.
const (
	// PEDANOVA asks what the best trials have in common; it is the default.
	PEDANOVA = "ped-anova"
	// FANOVA asks what the values vary with, over the whole space.
	FANOVA = "fanova"
)

// ImportanceQuery says what importance is asked for.
type ImportanceQuery struct {
	// Method is PEDANOVA or FANOVA; empty is PEDANOVA.
	Method string
	// Objective is the index of the objective, from 0.
	Objective int
	// Rung restricts the answer to one rung; nil is all of them.
	Rung *int
}

// Importance says which parameters made the good trials good, for each rung by
// itself: values of different rungs do not compare.
type Importance struct {
	Study string `json:"study"`
	// Method names how it was measured, with its paper.
	Method string `json:"method"`
	// Metric is the objective's.
	Metric string `json:"metric,omitempty" doc:"the objective"`
	// Rungs has the rungs with enough measurements, the highest first.
	Rungs []RungImportance `json:"rungs"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// RungImportance is the answer for the trials measured at one rung.
type RungImportance struct {
	Rung   int           `json:"rung"`
	Budget budget.Budget `json:"budget"`
	Trials int           `json:"trials" doc:"trials measured at the rung"`
	Best   int           `json:"best,omitempty" doc:"how many of them count as good (ped-anova)"`
	// Surrogate is the model that the variance was computed from.
	Surrogate *Surrogate `json:"surrogate,omitempty" doc:"the model that the shares come from (fanova)"`
	// Parameters has the most important first.
	Parameters []ParameterImportance `json:"parameters"`
	// Interactions are between the parameters that the surrogate uses most, the
	// largest first.
	Interactions []Interaction `json:"interactions,omitempty" doc:"what pairs do together (fanova)"`
}

// ParameterImportance is one parameter's part: in what makes the good trials
// good (ped-anova), or in the variance of the surrogate's predictions (fanova).
type ParameterImportance struct {
	Name   string     `json:"name"`
	Kind   space.Kind `json:"kind"`
	Share  float64    `json:"share" doc:"its part; of ped-anova the shares sum to 1, of fanova interactions are the rest"`
	Chance *float64   `json:"chance,omitempty" doc:"probability of as much if the parameter did nothing; above 0.05 the share means nothing (ped-anova)"`
	Spread float64    `json:"spread,omitempty" doc:"standard deviation of the share between the trees (fanova)"`
}

// Interaction is the part of the variance that a pair of parameters has beyond
// what each of them does alone.
type Interaction struct {
	First  string  `json:"first"`
	Second string  `json:"second"`
	Share  float64 `json:"share"`
	Spread float64 `json:"spread"`
}

// Surrogate says what a model of the trials at one rung is worth.
type Surrogate struct {
	Trials    int     `json:"trials" doc:"trials measured at the rung"`
	Used      int     `json:"used" doc:"how many of them, drawn evenly, the model was made from"`
	Explained float64 `json:"explained" doc:"share of the variance it predicts for trials it has not seen (out-of-bag R²); at 0 and below it predicts nothing"`
}
