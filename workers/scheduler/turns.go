package scheduler

import (
	"cmp"
	"container/heap"

	"github.com/tandem-tune/tandem/workers/pool"
)

// Turns say which study is next, as [pool.Order] would after each trial that one gets:
// sorting all of them again for each takes most of a plan where there are many. Studies
// of one owner and priority are ordered among each other, as what the owner has counts
// for all of them; and the first of each such group among those of the others.
type Turns struct {
	groups  []*group
	ofOwner map[string][]*group
}

// group is the studies of one owner with one priority that have something ready.
type group struct {
	share   float64
	studies []*pool.Candidate
	at      int // in the turns; -1 when it is out
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
			g = &group{share: one.Share, at: len(t.groups)}
			known[key] = g
			t.groups, t.ofOwner[one.Owner] = append(t.groups, g), append(t.ofOwner[one.Owner], g)
		}
		g.studies = append(g.studies, &one)
	}
	for _, g := range t.groups {
		heap.Init(g)
	}
	heap.Init(t)
	return t
}

// Next is the study that comes next; false when there is none any more.
func (t *Turns) Next() (pool.Candidate, bool) {
	if len(t.groups) == 0 {
		return pool.Candidate{}, false
	}
	one := *t.groups[0].studies[0]
	one.Share = t.groups[0].share
	return one, true
}

// Served notes that the next one has got a trial.
func (t *Turns) Served() {
	g := t.groups[0]
	g.studies[0].Running++
	heap.Fix(g, 0)
	if len(t.groups) > 1 {
		heap.Fix(t, 0)
	}
}

// Done takes the next one out.
func (t *Turns) Done() {
	g := t.groups[0]
	if heap.Pop(g); len(g.studies) == 0 {
		heap.Pop(t)
		return
	}
	heap.Fix(t, 0)
}

// Reckon notes the owner's new share of the pool.
func (t *Turns) Reckon(owner string, share float64) {
	for _, g := range t.ofOwner[owner] {
		if g.share = share; g.at >= 0 {
			heap.Fix(t, g.at)
		}
	}
}

// Compare is the pool's order; of those that it does not tell apart the one with
// the lower id is first.
func Compare(a, b *pool.Candidate) int {
	return cmp.Or(pool.Compare(a, b), cmp.Compare(a.Study, b.Study))
}

// Len, Less, Swap, Push and Pop are those of [heap.Interface].
func (g *group) Len() int { return len(g.studies) }
func (g *group) Less(i, j int) bool {
	a, b := g.studies[i], g.studies[j]
	a.Share, b.Share = g.share, g.share
	return Compare(a, b) < 0
}
func (g *group) Swap(i, j int) { g.studies[i], g.studies[j] = g.studies[j], g.studies[i] }
func (g *group) Push(one any)  { g.studies = append(g.studies, one.(*pool.Candidate)) }
func (g *group) Pop() any {
	last := len(g.studies) - 1
	one := g.studies[last]
	g.studies = g.studies[:last]
	return one
}

// Len, Less, Swap, Push and Pop are those of [heap.Interface].
func (t *Turns) Len() int { return len(t.groups) }
func (t *Turns) Less(i, j int) bool {
	a, b := t.groups[i], t.groups[j]
	a.studies[0].Share, b.studies[0].Share = a.share, b.share
	return Compare(a.studies[0], b.studies[0]) < 0
}
func (t *Turns) Swap(i, j int) {
	t.groups[i], t.groups[j] = t.groups[j], t.groups[i]
	t.groups[i].at, t.groups[j].at = i, j
}
func (t *Turns) Push(one any) { t.groups = append(t.groups, one.(*group)) }
func (t *Turns) Pop() any {
	last := len(t.groups) - 1
	one := t.groups[last]
	one.at = -1
	t.groups = t.groups[:last]
	return one
}
