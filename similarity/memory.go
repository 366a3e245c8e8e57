package similarity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

const (
	defaultLimit   = 2000
	defaultMinimum = 2
)

// Options say how a Memory compares. The zero value is what
// bench/similarity found best.
type Options struct {
	// Limit is the largest number of records; 2,000 when 0.
	Limit int
	// Minimum is how many other records there must be under the configuration
	// before anything can be similar to them; 2 when 0.
	Minimum int
	// Clusterer groups the records; Agglomerative when nil. KMeans{K: 2} is the
	// thesis's.
	Clusterer Clusterer
}

// Memory is the ground truth of one type of machine: the records, and models of
// the workloads among them (Rocha, section 6.3.4), one for each configuration,
// as a profile depends on the configuration too. Models are made when they are
// needed, and again when enough records have come or changed since.
//
// A Memory is not safe for concurrent use: Match and Clusters change it as well.
type Memory struct {
	options Options
	records map[string]Record
	models  map[string]*model // by configuration
}

// NewMemory returns an empty memory.
func NewMemory(options Options) *Memory {
	if options.Limit <= 0 {
		options.Limit = defaultLimit
	}
	if options.Minimum <= 0 {
		options.Minimum = defaultMinimum
	}
	if options.Clusterer == nil {
		options.Clusterer = Agglomerative{Cut: defaultCut}
	}
	return &Memory{options: options, records: map[string]Record{}, models: map[string]*model{}}
}

// Put adds the record, or replaces the one with its ID. Beyond the limit another
// record of the most crowded kind is dropped: of those with the same first
// configuration and in the same cluster the oldest that compares no configurations,
// else the oldest.
func (m *Memory) Put(r Record) {
	m.records[r.ID] = clone(r)
	for _, key := range keys(r) {
		if known := m.models[key]; known != nil {
			point := average(r, key)
			known.changed(r.ID, point)
		}
	}
	for len(m.records) > m.options.Limit {
		m.drop(m.mostCrowded(r.ID))
	}
}

// Len is the number of records.
func (m *Memory) Len() int { return len(m.records) }

// Records are all records, the oldest first. They are not to be changed.
func (m *Memory) Records() []Record { return m.inOrder(maps.Keys(m.records)) }

// Kin returns the records of the same study, and those of other studies with the
// same script, unless its files are known to differ, without the record itself; each the oldest first, at most limit of
// them: the newest that compare configurations, and with what is left of the limit
// the newest of the others. They are not to be changed.
func (m *Memory) Kin(of Record, limit int) (study, script []Record) {
	for id, r := range m.records {
		switch {
		case id == of.ID:
		case of.Study != "" && r.Study == of.Study:
			study = append(study, r)
		case of.Script != "" && r.Script == of.Script && (of.Code == "" || r.Code == "" || r.Code == of.Code):
			script = append(script, r)
		}
	}
	for _, list := range []*[]Record{&study, &script} {
		if len(*list) > limit {
			slices.SortFunc(*list, dispensable)
			*list = (*list)[len(*list)-limit:]
		}
		slices.SortFunc(*list, older)
	}
	return study, script
}

// Akin reports whether a profile under a configuration may be of the same workload
// as records which are thought to be: it is not much further from their mean than they
// are from each other. With fewer than [LeastKin] of them to compare with, it may.
func (m *Memory) Akin(configuration system.Configuration, features map[string]float64, records []Record) bool {
	return m.model(configuration.Key()).akin(features, records)
}

func (m *Memory) inOrder(ids func(func(string) bool)) []Record {
	var list []Record
	for id := range ids {
		if r, has := m.records[id]; has {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, older)
	return list
}

func older(a, b Record) int {
	return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID))
}

// dispensable orders records by what is lost with them: the first ones compare no
// configurations, and of those alike the older one comes first.
func dispensable(a, b Record) int {
	compares := func(r Record) int {
		if r.Compares() {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(compares(a), compares(b)), older(a, b))
}

func (m *Memory) drop(id string) {
	delete(m.records, id)
	for _, known := range m.models {
		known.forget(id)
	}
}

// mostCrowded is the record to drop, another one than that which came last.
func (m *Memory) mostCrowded(last string) string {
	type kind struct {
		configuration string
		cluster       int
	}
	kinds := map[kind][]Record{}
	for id, r := range m.records {
		if id == last {
			continue
		}
		one := kind{cluster: unplaced}
		if all := keys(r); len(all) > 0 {
			one.configuration = all[0]
			if known := m.models[all[0]]; known != nil {
				one.cluster = known.cluster(r.ID)
			}
		}
		kinds[one] = append(kinds[one], r)
	}
	var crowd []Record
	for _, list := range kinds {
		list[0] = slices.MinFunc(list, dispensable)
		if len(list) > len(crowd) || len(list) == len(crowd) && older(list[0], crowd[0]) < 0 {
			crowd = list
		}
	}
	return crowd[0].ID
}

// model returns the model of the configuration, made anew when it is stale.
func (m *Memory) model(key string) *model {
	if known := m.models[key]; known != nil && !known.stale() {
		return known
	}
	var list []Record
	for _, r := range m.records {
		if slices.Contains(keys(r), key) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, older)
	m.models[key] = fit(list, key, m.options.Clusterer)
	return m.models[key]
}

func clone(r Record) Record {
	if r.Contrast != nil {
		r.Contrast = new(*r.Contrast)
	}
	r.Cells = slices.Clone(r.Cells)
	for i, cell := range r.Cells {
		r.Cells[i].Configuration = maps.Clone(cell.Configuration)
		r.Cells[i].Features = maps.Clone(cell.Features)
	}
	return r
}

// keys are the configurations of the cells with a profile, each once.
func keys(r Record) []string {
	var list []string
	for _, cell := range r.Cells {
		if key := cell.Configuration.Key(); cell.Profiles > 0 && !slices.Contains(list, key) {
			list = append(list, key)
		}
	}
	return list
}

// average is the mean of the record's features under a configuration, whatever
// its neighbours.
func average(r Record, key string) map[string]float64 {
	features := map[string]float64{}
	weights := map[string]float64{}
	for _, cell := range r.Cells {
		if cell.Profiles <= 0 || cell.Configuration.Key() != key {
			continue
		}
		for name, x := range cell.Features {
			if finite(x) {
				features[name] += x * float64(cell.Profiles)
				weights[name] += float64(cell.Profiles)
			}
		}
	}
	for name, weight := range weights {
		features[name] /= weight
	}
	return features
}

// Match is what is known of a profile.
type Match struct {
	// Similar says that the profile is one of a known workload.
	Similar bool `json:"similar"`
	// Workload is the name of the nearest cluster, similar or not; empty when
	// there are too few records. It stays as long as its oldest record does.
	Workload string `json:"workload,omitempty"`
	// Members are the cluster's other records when it is similar, the oldest
	// first. They are not to be changed.
	Members []Record `json:"-"`
	// Distance is that to the nearest centroid and Threshold the largest one
	// that is similar, both in units of what two runs of one workload are apart.
	Distance  float64 `json:"distance"`
	Threshold float64 `json:"threshold"`
	// Confidence is from 0 to 1: 0.5 on the threshold, and also where two
	// workloads are as near. It is an estimate.
	Confidence float64 `json:"confidence"`
}

// Match compares a profile with the records that ran under the configuration,
// without the record named by except, which is the profile's own.
func (m *Memory) Match(configuration system.Configuration, features map[string]float64, except string) Match {
	known := m.model(configuration.Key())
	found, cluster := known.match(features, except, m.options.Minimum)
	if found.Similar {
		found.Members = m.inOrder(func(yield func(string) bool) {
			for id, label := range known.labels {
				if label == cluster && id != except && !yield(id) {
					return
				}
			}
		})
		found.Similar = len(found.Members) > 0
	}
	return found
}

// Drifted says that an epoch's profile is not that of the run's earlier epochs
// under the same configuration any more, whose mean is given.
func (m *Memory) Drifted(mean Cell, features map[string]float64) bool {
	if mean.Profiles <= 0 {
		return false
	}
	return m.model(mean.Configuration.Key()).drifted(mean, features)
}
