package protocol

import (
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// EdgeOverview is how the models of a study's trials do on its devices: what the
// trade-off between what they are worth and what they cost is chosen from.
type EdgeOverview struct {
	Study     string               `json:"study"`
	Metric    string               `json:"metric" doc:"metric of the values: the first objective that is not about inference, else the first"`
	Direction definition.Direction `json:"direction"`
	// Devices are the study's, in its order.
	Devices []string `json:"devices"`
	// Recommended is the trial that the study recommends; absent before.
	Recommended *int `json:"recommended,omitempty" doc:"number of the trial that the study recommends"`
	// Architectures is how many different ones the measured trials have.
	Architectures int `json:"architectures"`
	// Trials has the best trial of each architecture, the best first, and the
	// recommended one.
	Trials []EdgeTrial `json:"trials"`
	Notes  []string    `json:"notes"`
}

// EdgeTrial is a trial with the deployments of its model.
type EdgeTrial struct {
	Number int `json:"number"`
	Rank   int `json:"rank"`
	Rung   int `json:"rung"`
	// Value is of the overview's metric.
	Value trial.Float `json:"value"`
	// Architecture is the key of the graph without weights, Sharing how many
	// measured trials have it: their models take the same time.
	Architecture string `json:"architecture"`
	Sharing      int    `json:"sharing" doc:"measured trials with this architecture"`
	// Deployments has one for each device, with the configurations worth choosing
	// from as its front.
	Deployments []deployment.Deployment `json:"deployments"`
}
