package protocol

import "github.com/tandem-tune/tandem/study/space"

// Advice is what a study's results say about its space.
type Advice struct {
	Study  string        `json:"study"`
	Pieces []AdvicePiece `json:"pieces" doc:"what was found; nothing that chance would show as well"`
	Notes  []string      `json:"notes" doc:"what could not be looked at, and why"`
}

// AdvicePiece is one finding. Of the Inside trials with the values from Low to High,
// Hits are among the best, or failed; so are Misses of the Outside others. An interaction's
// values are those of the parameter With.
type AdvicePiece struct {
	Kind      string      `json:"kind" enum:"range,failures,interaction,idle,more"`
	Parameter string      `json:"parameter" doc:"empty: the study as a whole"`
	With      string      `json:"with,omitempty" doc:"the parameter that says which way the other is better (interaction)"`
	Found     string      `json:"found" doc:"what was found, a sentence"`
	Do        string      `json:"do" doc:"what to do about it"`
	Evidence  string      `json:"evidence" doc:"the counts it stands on, as text"`
	Low       space.Value `json:"low,omitzero" doc:"the lowest of the values concerned; idle: that of the best trial"`
	High      space.Value `json:"high,omitzero" doc:"the highest of the values concerned"`
	Rung      *int        `json:"rung,omitempty" doc:"the rung at which the trials were measured"`
	Trial     *int        `json:"trial,omitempty" doc:"the trial whose log is to be read (failures)"`
	Hits      int         `json:"hits" doc:"trials with these values that are among the best, or failed"`
	Inside    int         `json:"inside" doc:"trials with these values"`
	Misses    int         `json:"misses" doc:"other trials that are among the best, or failed"`
	Outside   int         `json:"outside" doc:"other trials"`
	Drawn     int         `json:"drawn" doc:"trials drawn without a model, which the chance stands on; more: trials of the later half"`
	Chance    float64     `json:"chance" doc:"how probable as much is if no parameter did anything, or the order of the trials"`
}
