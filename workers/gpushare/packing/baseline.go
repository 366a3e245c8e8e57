package packing

// Reactive places by what was seen, the paper's second baseline. A job that was
// never seen gets an idle GPU to itself, in the order in which they wait, and
// nothing joins it until it was observed for a minute ([ObservedSeconds]); then
// the caller gives it again, with Seen and what it used. Those that were seen go
// first and beside others wherever they fit, since idle GPUs are what those that
// were not seen wait for. One that fits nowhere stays where it is.
func Reactive(waiting []Job, gpus []GPU, settings Settings) []Placement {
	s := newSite(gpus, settings)
	var seen, unseen []Job
	for _, job := range waiting {
		if job.Seen {
			seen = append(seen, job)
		} else {
			unseen = append(unseen, job)
		}
	}
	placed := s.pack(falling(seen), true)
	for _, job := range unseen {
		if at := s.first(&job, s.alone); at >= 0 {
			placed = append(placed, s.take(at, job, true))
		}
	}
	return placed
}

// ObservedSeconds is how long a reactive scheduler watches a job alone before it
// shares a GPU (section 6).
const ObservedSeconds = 60.0
