package study

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/system"
	"github.com/tandem-tune/tandem/trial"
)

// used adds up under which system configurations the trials' epochs ran, those
// with the most epochs first, and in which phases. Both are nil where nothing
// was tuned.
func used(trials []trial.Trial) ([]trial.SystemUse, map[trial.Phase]int) {
	type place struct {
		configuration string
		phase         trial.Phase
	}
	places := map[place]int{}
	var list []trial.SystemUse
	var keys []string
	var phases map[trial.Phase]int
	for _, t := range trials {
		for _, use := range t.SystemUse {
			if phases == nil {
				phases = make(map[trial.Phase]int)
			}
			if use.Phase != "" {
				phases[use.Phase] += use.Epochs
			}
			where := place{system.Configuration(use.Configuration).Key(), use.Phase}
			at, known := places[where]
			if !known {
				places[where] = len(list)
				list, keys = append(list, use), append(keys, where.configuration)
				continue
			}
			list[at] = list[at].Plus(use)
		}
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(list[b].Epochs, list[a].Epochs), cmp.Compare(keys[a], keys[b]), cmp.Compare(list[a].Phase, list[b].Phase))
	})
	var sorted []trial.SystemUse
	for _, i := range order {
		sorted = append(sorted, list[i])
	}
	return sorted, phases
}
