package sharing

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/bench/pool/replay/trace"
	"github.com/tandem-tune/tandem/workers/placement"
)

// The set-up of Yeung and others, section 6: 100 jobs of 2 minutes to 2 hours,
// submitted at once, on 12 GPUs.
const (
	submitted         = 100
	many              = 300 // so that the last ones do not decide
	cluster           = 12
	shortest, longest = 120.0, 7200.0
	// off is how far predicted utilizations are off: the paper's RMSLE.
	off = 0.154
	// leastSum is how much more than one alone two together have to do. muchSum is
	// what was best of 1.05, 1.2, 1.35 and 1.5 for the measured pairs on V100, and so
	// flatters these lines there.
	leastSum = 1.05
	muchSum  = 1.35
)

// mix is kinds of jobs with what was measured of them on one type of GPU.
type mix struct {
	name, gpu string
	kinds     []kind
	slowdown  replay.Slowdown
	// measured is the work that two do together, of what one alone does.
	measured func(a, b string) float64
	// learned is what is known before a run from a part of the pairs: the share of
	// the GPU that a kind keeps busy, and the work of two; nil where nothing has to
	// be learned.
	learned func(seed uint64) (share map[string]float64, sum func(a, b string) float64, err error)
}

// kind is jobs that are alike.
type kind struct {
	profile     *replay.Profile
	utilization float64
}

func (k kind) second(gpu string) float64 { return k.profile.On[gpu].Seconds }

// colocate replays the paper's experiment with jobs of Gavel and of Muri: what is
// placed by a prediction runs as fast as was recorded.
func colocate(o Options) error {
	mixes, err := readMixes(o.Data)
	if err != nil {
		return err
	}
	mixes = slices.DeleteFunc(mixes, func(m mix) bool { return !strings.Contains(strings.ToLower(m.name), strings.ToLower(o.Trace)) })
	runs := o.Runs
	for _, m := range mixes {
		mean := 0.0
		for _, one := range m.kinds {
			mean += one.utilization / float64(len(m.kinds))
		}
		for _, jobs := range []int{submitted, many} {
			fmt.Printf("\n**%s**: %d jobs of %d kinds, which keep a GPU busy for %.0f%% of the time in the mean, on %d GPUs; %d runs\n\n", m.name, jobs, len(m.kinds), 100*mean, cluster, runs)
			fmt.Println("| | utilization | against slots | makespan, min | against slots | completion, min: mean | median | 95% | ran out of memory |\n|---|---|---|---|---|---|---|---|---|")
			if err := m.table(jobs, runs); err != nil {
				return err
			}
		}
		if err := m.passed(many, runs); err != nil {
			return err
		}
	}
	return nil
}

// table replays every way, each run with other jobs, and prints a line for each.
func (m mix) table(jobs, runs int) error {
	outcomes := map[string][]replay.Outcome{}
	var names []string
	for run := range runs {
		s, err := m.scene(jobs, uint64(run)) //nolint:gosec // a small number
		if err != nil {
			return err
		}
		for _, way := range s.ways() {
			o, err := s.play(way)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m.name, way.Name, err)
			}
			if run == 0 {
				names = append(names, way.Name)
			}
			outcomes[way.Name] = append(outcomes[way.Name], o)
		}
	}
	for _, name := range names {
		printOutcomes(name, outcomes[name], outcomes[names[0]])
	}
	return nil
}

func readMixes(data string) ([]mix, error) {
	all, err := readPairs(data)
	if err != nil {
		return nil, err
	}
	var list []mix
	for _, gpu := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[gpu].mix())
		for _, other := range slices.Sorted(maps.Keys(all)) {
			if other != gpu {
				left := all[gpu].mix()
				left.name, left.learned = fmt.Sprintf("Gavel, %s left out: learned on %s", gpu, other), all[other].mix().learned
				list = append(list, left)
			}
		}
	}
	muri, err := muriMix(data)
	if err != nil {
		return nil, err
	}
	// The paper gives each job a GPU of a machine with cores for all.
	roomy := muri
	roomy.name, roomy.slowdown = "Muri, with processors and network enough for all", replay.ByUtilization
	share := map[string]float64{}
	for _, one := range muri.kinds {
		share[one.profile.Name] = one.utilization
	}
	roomy.measured = func(a, b string) float64 { return 2 / max(1, share[a]+share[b]) }
	return append(append(list, muri, roomy), described()...), nil
}

// mix has utilizations that are fitted to the pairs: Gavel did not record any.
func (g *gavel) mix() mix {
	m := mix{name: "Gavel, " + g.gpu, gpu: g.gpu, slowdown: g.slowdown}
	truth := g.shares(g.pairs())
	for _, name := range g.kinds {
		seconds := 1 / g.alone[name]
		m.kinds = append(m.kinds, kind{&replay.Profile{Name: name, On: map[string]placement.Prediction{g.gpu: {Seconds: seconds, Joules: seconds}}}, truth[name]})
	}
	m.measured = func(a, b string) float64 {
		first, second := g.speed[[2]string{a, b}], g.speed[[2]string{b, a}]
		if first <= 0 || second <= 0 {
			return 0
		}
		return first + second
	}
	m.learned = func(seed uint64) (map[string]float64, func(a, b string) float64, error) {
		list := g.shuffled(seed)
		k, err := g.learn(list[:len(list)/2], seed)
		if err != nil {
			return nil, nil, err
		}
		return k.share, func(a, b string) float64 {
			if k.impossible[[2]string{a, b}] {
				return 0
			}
			said := k.say("factors", [2]string{a, b}, nil)
			return said[0] + said[1]
		}, nil
	}
	return m
}

// slowdown is as measured; of three each is slowed down by the product of its
// pairs, an estimate.
func (g *gavel) slowdown(_ string, jobs []*replay.Job) []float64 {
	speeds := make([]float64, len(jobs))
	for i, one := range jobs {
		speeds[i] = 1
		for j, other := range jobs {
			if i != j {
				speed, measured := g.speed[[2]string{one.Profile.Name, other.Profile.Name}]
				if !measured {
					speed = 0.5
				}
				speeds[i] *= speed
			}
		}
	}
	return speeds
}

// muriMix is the models of Muri on one GPU, whose shares of processor, GPU and
// network were measured; how fast two are together follows from these.
func muriMix(data string) (mix, error) {
	m := mix{name: "Muri", gpu: "v100"}
	machines, err := trace.ReadMachines("machines", []byte("types: {v100: {gpus: 1}}\nmachines: [{type: v100, count: 12}]\n"))
	if err != nil {
		return m, err
	}
	const name = "muri_traces/trace3.csv"
	file, err := os.Open(filepath.Join(data, name)) //nolint:gosec // the user's folder
	if err != nil {
		return m, fmt.Errorf("the traces of Muri are not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	read, err := trace.Muri(name, file, machines)
	if err != nil {
		return m, err
	}
	known := map[string]*replay.Job{}
	for i, one := range read.Jobs {
		model, _, _ := strings.Cut(one.Profile.Name, ",")
		if one.Needs.GPUs == 1 && known[model] == nil {
			known[model] = &read.Jobs[i]
			one.Profile.Name = model
			m.kinds = append(m.kinds, kind{one.Profile, one.Utilization})
		}
	}
	if len(m.kinds) == 0 {
		return m, fmt.Errorf("%s has no jobs of one GPU", name)
	}
	m.slowdown = read.Slowdown
	m.measured = func(a, b string) float64 {
		both := read.Slowdown(m.gpu, []*replay.Job{known[a], known[b]})
		return both[0] + both[1]
	}
	return m, nil
}

// scene is one run of the experiment.
type scene struct {
	mix
	jobs []replay.Job
	sum  func(a, b string) float64 // as learned; nil where nothing is
}

// scene draws the jobs, and what is predicted of them.
func (m mix) scene(jobs int, seed uint64) (*scene, error) {
	random := rand.New(rand.NewPCG(seed, 31)) //nolint:gosec // what is drawn has to repeat
	s := &scene{mix: m}
	share := map[string]float64{}
	for _, one := range m.kinds {
		share[one.profile.Name] = one.utilization
	}
	if m.learned != nil {
		var err error
		if share, s.sum, err = m.learned(seed); err != nil {
			return nil, err
		}
	}
	for i := range jobs {
		one := m.kinds[random.IntN(len(m.kinds))]
		seconds := shortest * math.Pow(longest/shortest, random.Float64())
		said := min(1, share[one.profile.Name]*math.Exp(off*random.NormFloat64()))
		s.jobs = append(s.jobs, replay.Job{
			Name: fmt.Sprintf("%d %s", i, one.profile.Name), User: "all", Profile: one.profile, Work: seconds / one.second(m.gpu),
			Needs: placement.Resources{GPUs: 1}, Utilization: one.utilization, Told: &replay.Claim{Utilization: said},
		})
	}
	return s, nil
}

// sharingWay is a policy, and how many jobs may share a GPU.
type sharingWay struct {
	replay.Policy
	jobs int
}

func (s *scene) play(w sharingWay) (replay.Outcome, error) {
	c := replay.Cluster{Types: []replay.Type{{Name: s.gpu, Capacity: placement.Resources{GPUs: 1}}}}
	for i := range cluster {
		c.Machines = append(c.Machines, replay.Machine{Name: fmt.Sprint(i), Type: s.gpu})
	}
	return replay.Play(c, s.jobs, w.Policy, replay.Settings{JobsPerGPU: w.jobs, Slowdown: s.slowdown})
}

// ways are the paper's, slots first, and ours.
func (s *scene) ways() []sharingWay {
	var list []sharingWay
	add := func(name string, jobs int, policy replay.Policy) {
		policy.Name = name
		list = append(list, sharingWay{policy, jobs})
	}
	refusing := func(sum func(a, b string) float64, least float64) func(string, string) bool {
		return func(a, b string) bool { return sum(kindOf(a), kindOf(b)) < least }
	}
	preferring := func(sum func(a, b string) float64) func(string, string) float64 {
		return func(a, b string) float64 { return sum(kindOf(a), kindOf(b)) }
	}
	// As in the paper, any number of jobs may pass one that waits.
	pack := func(settings packed.Settings) replay.Policy {
		settings.MostPassed = -1
		return policies.Packed(settings)
	}
	add("slots", 1, policies.FirstFit())
	add("reactive", 3, policies.Watched(packed.Settings{}))
	add("proactive", 3, pack(packed.Settings{}))
	pairs := func(name string, sum func(a, b string) float64) {
		add("two at most, "+name+" pairs alone decide", 2, pack(packed.Settings{MostUtilization: 2, Refuses: refusing(sum, leastSum)}))
		add("the same, best companion by "+name+" pairs", 2, pack(packed.Settings{MostUtilization: 2, Refuses: refusing(sum, leastSum), Prefers: preferring(sum)}))
		add("the same, only "+name+" pairs that gain much", 2, pack(packed.Settings{MostUtilization: 2, Refuses: refusing(sum, muchSum), Prefers: preferring(sum)}))
	}
	if s.sum != nil {
		refuses := refusing(s.sum, leastSum)
		add("proactive, pairs refused that lose", 3, pack(packed.Settings{Refuses: refuses}))
		add("the same, utilizations up to 1.5", 3, pack(packed.Settings{MostUtilization: 1.5, Refuses: refuses}))
		pairs("predicted", s.sum)
	}
	pairs("true", s.measured)
	for _, one := range list {
		if one.Name != "reactive" { // its order is by what was seen
			list = append(list, sharingWay{policies.LongestFirst(one.Policy), one.jobs})
		}
	}
	return list
}

// kindOf is the kind in a job's name.
func kindOf(name string) string {
	_, kind, _ := strings.Cut(name, " ")
	return kind
}

func printOutcomes(name string, list, slots []replay.Outcome) {
	column := func(digits int, of func(replay.Outcome) float64) string {
		var values []float64
		for _, one := range list {
			values = append(values, of(one))
		}
		return spread(values, digits)
	}
	against := func(of func(replay.Outcome) float64) string {
		var values []float64
		for i, one := range list {
			values = append(values, 100*(of(one)/of(slots[i])-1))
		}
		return spread(values, 1)
	}
	busy, whole := func(o replay.Outcome) float64 { return 100 * o.Utilization }, func(o replay.Outcome) float64 { return o.Makespan / 60 }
	fmt.Printf("| %s | %s%% | %s%% | %s | %s%% | %s | %s | %s | %s |\n", name, column(1, busy), against(busy), column(0, whole), against(whole),
		column(0, func(o replay.Outcome) float64 { return o.Completion.Mean / 60 }),
		column(0, func(o replay.Outcome) float64 { return o.Completion.Median / 60 }),
		column(0, func(o replay.Outcome) float64 { return o.Completion.P95 / 60 }),
		column(0, func(o replay.Outcome) float64 { return float64(o.OutOfMemory) }))
}
