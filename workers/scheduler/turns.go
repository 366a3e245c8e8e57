package scheduler

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/workers/pool"
)

// Turns say which study is next, as [pool.Order] would after each trial that one gets:
// sorting all of them again for each takes most of a plan where there are many. Studies
// of one owner and priority are ordered among each other, as what the owner has counts
// for all of them; and the first of each such group among those of the others.
type Turns struct {
	groups  []*group // in order
	ofOwner map[string][]*group
}

// group is the studies of one owner with one priority that have something ready.
type group struct {
	share   float64
	studies []*pool.Candidate // in order
}

// NewTurns are those of the candidates.
func NewTurns(candidates []pool.Candidate) *Turns {
	type whose struct {
		owner    string
		priority int
	}
	t, known := &Turns{ofOwner: map[string][]*group{}}, map[whose]*group{}
	for _, one := range candidates {
		key := whose{one.Owner, one.Priority}
		g := known[key]
		if g == nil {
			g = &group{share: one.Share}
			known[key] = g
			t.groups, t.ofOwner[one.Owner] = append(t.groups, g), append(t.ofOwner[one.Owner], g)
		}
		one.Share = 0 // all of the group have its share
		g.studies = append(g.studies, &one)
	}
	for _, g := range t.groups {
		slices.SortFunc(g.studies, Compare)
	}
	slices.SortFunc(t.groups, compareGroups)
	return t
}

// Next is the study that comes next; false when there is none any more.
func (t *Turns) Next() (pool.Candidate, bool) {
	if len(t.groups) == 0 {
		return pool.Candidate{}, false
	}
	return t.groups[0].first(), true
}

// Served notes that the next one has got a trial.
func (t *Turns) Served() {
	g := t.groups[0]
	one := g.studies[0]
	g.studies = slices.Delete(g.studies, 0, 1)
	one.Running++
	insert(&g.studies, one, Compare)
	t.reorder(g)
}

// Done takes the next one out.
func (t *Turns) Done() {
	g := t.groups[0]
	if g.studies = slices.Delete(g.studies, 0, 1); len(g.studies) == 0 {
		t.groups = slices.Delete(t.groups, 0, 1)
		return
	}
	t.reorder(g)
}

// Reckon notes the owner's new share of the pool.
func (t *Turns) Reckon(owner string, share float64) {
	for _, g := range t.ofOwner[owner] {
		g.share = share
		t.reorder(g)
	}
}

// reorder puts the group where it belongs now, unless it is out.
func (t *Turns) reorder(g *group) {
	if at := slices.Index(t.groups, g); at >= 0 {
		t.groups = slices.Delete(t.groups, at, at+1)
		insert(&t.groups, g, compareGroups)
	}
}

func insert[T any](list *[]T, one T, compare func(a, b T) int) {
	at, _ := slices.BinarySearchFunc(*list, one, compare)
	*list = slices.Insert(*list, at, one)
}

// Compare is the pool's order; of those that it does not tell apart the one with
// the lower id is first.
func Compare(a, b *pool.Candidate) int {
	return cmp.Or(pool.Compare(a, b), cmp.Compare(a.Study, b.Study))
}

func (g *group) first() pool.Candidate {
	one := *g.studies[0]
	one.Share = g.share
	return one
}

func compareGroups(a, b *group) int {
	first, second := a.first(), b.first()
	return Compare(&first, &second)
}
