package protocol

import "github.com/tandem-tune/tandem/study/space"

// EnqueueRequest asks a study to try configurations before anything its search
// proposes. Parameters that one lacks are drawn; those that do not exist in it
// are left out.
type EnqueueRequest struct {
	Configurations []space.Configuration `json:"configurations" minItems:"1" maxItems:"1000" doc:"in the order in which to try them; missing parameters are drawn"`
}

// EnqueueReply says what waits now.
type EnqueueReply struct {
	Study string `json:"study" doc:"the study's name"`
	// Enqueued is how many the call added, Waiting how many wait in all.
	Enqueued int `json:"enqueued" doc:"configurations this call added"`
	Waiting  int `json:"waiting" doc:"configurations that wait to be started, with earlier ones"`
}
