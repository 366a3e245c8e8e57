package pool

import "time"

// Exclusion is that a worker is given no trials of a study for a time: what it began
// of them failed for its own sake.
type Exclusion struct {
	// Study is the study's id, Worker the worker's; Name and Host are those of the
	// worker and its machine, which stay when it is started again.
	Study  string `json:"study"`
	Worker string `json:"worker"`
	Name   string `json:"name"`
	Host   string `json:"host"`
	// Error is the class of the error, Reason says all of it in words.
	Error  string    `json:"error"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Times counts the exclusions of that machine's worker from that study in a row.
	Times int `json:"times"`
}

// Exclude gives the worker no trials of the study until that time, also when it
// registers again under its id.
func (r *Registry) Exclude(one Exclusion) {
	if r.exclusions == nil {
		r.exclusions = make(map[[2]string]Exclusion)
	}
	r.exclusions[[2]string{one.Study, one.Worker}] = one
	r.noteExclusions(one.Worker, one.Since)
}

// Readmit forgets that the worker was excluded from the study.
func (r *Registry) Readmit(study, worker string) {
	one, known := r.exclusions[[2]string{study, worker}]
	delete(r.exclusions, [2]string{study, worker})
	if known {
		r.noteExclusions(worker, one.Since)
	}
}

// Exclusions are those from the study, or from all where it is empty, in no order:
// also those that are over, until somebody forgets them.
func (r *Registry) Exclusions(study string) (all []Exclusion) {
	for _, one := range r.exclusions {
		if study == "" || one.Study == study {
			all = append(all, one)
		}
	}
	return all
}

// EndExclusions has the workers back whose time is over, and reports whether there
// was one.
func (r *Registry) EndExclusions(now time.Time) (some bool) {
	for _, one := range r.exclusions {
		member, known := r.byID[one.Worker]
		if !known {
			continue
		}
		if held, excluded := member.Excluded[one.Study]; excluded && !now.Before(held.Until) {
			r.noteExclusions(one.Worker, now)
			some = true
		}
	}
	return some
}

// noteExclusions tells the member from what it is excluded now.
func (r *Registry) noteExclusions(worker string, now time.Time) {
	member, known := r.byID[worker]
	if !known {
		return
	}
	member.Excluded = nil
	for _, one := range r.exclusions {
		if one.Worker != worker || !now.Before(one.Until) {
			continue
		}
		if member.Excluded == nil {
			member.Excluded = make(map[string]Exclusion)
		}
		member.Excluded[one.Study] = one
	}
}
