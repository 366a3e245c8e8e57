package heats

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/trace"
	"github.com/tandem-tune/tandem/workers/placement"
)

// gpusPerMachine is how many a machine has.
const gpusPerMachine = 8

// arrival is a job of a trace: when it came, how many GPUs it had, and how long
// it took on V100s.
type arrival struct {
	at, seconds float64
	gpus        int
}

// arrivalsOf reads when jobs came from a trace of Gavel or Muri.
func arrivalsOf(data, name string) ([]arrival, error) {
	var v100 trace.Machines
	v100.AddType("v100", trace.MachineType{GPUs: gpusPerMachine})
	v100.Add("v100", 1)
	read, err := readTrace(data, name, v100)
	if err != nil {
		return nil, err
	}
	var list []arrival
	for i := range read.Jobs {
		took, _ := read.Jobs[i].Alone("v100")
		list = append(list, arrival{read.Jobs[i].Arrives, took.Seconds, read.Jobs[i].Needs.GPUs})
	}
	return list, nil
}

// readTrace reads a trace of Gavel or Muri, by its name.
func readTrace(data, name string, machines trace.Machines) (trace.Trace, error) {
	file, err := os.Open(filepath.Join(data, name)) //nolint:gosec // the folder is the user's
	if err != nil {
		return trace.Trace{}, fmt.Errorf("the trace is not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	if filepath.Dir(name) == "muri_traces" {
		return trace.Muri(name, file, machines)
	}
	known, err := throughputs(data)
	if err != nil {
		return trace.Trace{}, err
	}
	return trace.Gavel(name, file, known, machines)
}

func throughputs(data string) (trace.Throughputs, error) {
	const name = "gavel/simulation_throughputs.json"
	file, err := os.Open(filepath.Join(data, name)) //nolint:gosec // the folder is the user's
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return trace.ReadThroughputs(name, file)
}

// workload is a training of Zeus: what an epoch takes by power limit and GPU.
type workload struct {
	name, network string
	batch         float64
	on            map[string]measured // by "v100@250"
}

type measured struct{ seconds, watts float64 }

// workloads are the trainings that Zeus measured on both GPUs at all the limits.
func workloads(data string, limits []string) ([]workload, error) {
	byName := map[string]*workload{}
	for _, gpu := range []string{"v100", "p100"} {
		if err := readZeus(data, gpu, byName); err != nil {
			return nil, err
		}
	}
	var list []workload
	for _, one := range byName {
		whole := true
		for _, limit := range limits {
			_, has := one.on[limit]
			whole = whole && has
		}
		if whole {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b workload) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

func readZeus(data, gpu string, into map[string]*workload) error {
	name := "zeus/summary_power_" + gpu + ".csv"
	file, err := os.Open(filepath.Join(data, name)) //nolint:gosec // the folder is the user's
	if err != nil {
		return fmt.Errorf("the profiles are not there (-data, TANDEM_DATA): %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	reader := csv.NewReader(file)
	heading, err := reader.Read()
	if err != nil {
		return err
	}
	at := func(record []string, column string) string { return record[slices.Index(heading, column)] }
	for {
		record, err := reader.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var numbers [3]float64
		for i, column := range []string{"batch_size", "time_per_epoch", "average_power"} {
			if numbers[i], err = strconv.ParseFloat(at(record, column), 64); err != nil {
				return fmt.Errorf("%s, %s: %w", name, column, err)
			}
		}
		network := at(record, "dataset") + " " + at(record, "network") + " " + at(record, "optimizer")
		key := network + " " + at(record, "batch_size")
		if into[key] == nil {
			into[key] = &workload{name: key, network: network, batch: numbers[0], on: map[string]measured{}}
		}
		into[key].on[gpu+"@"+at(record, "power_limit")] = measured{numbers[1], numbers[2]}
	}
}

// site is a cluster with the jobs of a trace on it.
type site struct {
	cluster replay.Cluster
	jobs    []replay.Job
	// probes are what models may learn from before the first job.
	probes []placement.Observation
}

// power is what is assumed of machines, in watts.
type power struct{ idleGPU, host float64 }

// zeusSite has two machines of eight GPUs for each limit, and jobs that are
// trainings of Zeus drawn by the seed, as long as the trace's on a V100.
func zeusSite(arrivals []arrival, known []workload, limits []string, assumed power, seed uint64) site {
	var s site
	for i, limit := range limits {
		s.cluster.Types = append(s.cluster.Types, replay.Type{Name: limit, Capacity: placement.Resources{GPUs: gpusPerMachine}, IdleWatts: gpusPerMachine*assumed.idleGPU + assumed.host})
		for j := range 2 {
			s.cluster.Machines = append(s.cluster.Machines, replay.Machine{Name: fmt.Sprintf("%s-%d", limits[(i+j*2)%len(limits)], j), Type: limits[(i+j*2)%len(limits)]})
		}
	}
	var networks []string
	for _, one := range known {
		if !slices.Contains(networks, one.network) {
			networks = append(networks, one.network)
		}
	}
	features := func(one workload, epochs float64, gpus int) []float64 {
		list := []float64{math.Log(one.batch), math.Log(epochs), math.Log(float64(gpus))}
		for _, network := range networks {
			is := 0.0
			if network == one.network {
				is = 1
			}
			list = append(list, is)
		}
		return list
	}
	random := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // what is drawn has to repeat
	profiles := map[string]*replay.Profile{}
	for i, one := range arrivals {
		drawn := known[random.IntN(len(known))]
		key := fmt.Sprint(drawn.name, one.gpus)
		if profiles[key] == nil {
			profiles[key] = &replay.Profile{Name: key, On: map[string]placement.Prediction{}}
			for _, limit := range limits {
				m := drawn.on[limit]
				profiles[key].On[limit] = placement.Prediction{Seconds: m.seconds, Joules: m.seconds * max(1, m.watts-assumed.idleGPU) * float64(one.gpus)}
			}
		}
		work := one.seconds / drawn.on[limits[0]].seconds
		s.jobs = append(s.jobs, replay.Job{
			Name: strconv.Itoa(i), User: "all", Profile: profiles[key], Work: work, Arrives: one.at, Needs: placement.Resources{GPUs: one.gpus},
			Features: features(drawn, work, one.gpus),
		})
	}
	for _, network := range networks {
		s.probes = append(s.probes, probesOf(network, known, limits, func(one workload) []float64 { return features(one, 1, 1) }, assumed)...)
	}
	return s
}

// probesOf are an epoch on one GPU of the smallest, a middle and the largest
// batch of a network on each type.
func probesOf(network string, known []workload, limits []string, features func(workload) []float64, assumed power) []placement.Observation {
	var list []workload
	for _, one := range known {
		if one.network == network {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b workload) int { return cmp.Compare(a.batch, b.batch) })
	var probes []placement.Observation
	for _, place := range slices.Compact([]int{0, len(list) / 2, len(list) - 1}) {
		for _, limit := range limits {
			m := list[place].on[limit]
			took := placement.Prediction{Seconds: m.seconds, Joules: m.seconds * max(1, m.watts-assumed.idleGPU)}
			probes = append(probes, placement.Observation{Type: limit, Features: features(list[place]), Took: took, Probe: true})
		}
	}
	return probes
}

// boards are the powers that NVIDIA's product briefs give the boards that Gavel
// measured: K80 BD-07317-001 (300 W for two GPUs), P100 PCIe PB-08248-001 and
// V100 PCIe PB-08744-001 (250 W each). What a training draws of that is not
// recorded: an estimate.
var boards = []struct {
	gpu   string
	watts float64
}{{"v100", 250}, {"p100", 250}, {"k80", 150}}

// gavelSite has two machines of eight GPUs of each type, and Gavel's own jobs.
func gavelSite(data, name string, assumed power) (site, error) {
	var machines trace.Machines
	for _, one := range boards {
		machines.AddType(one.gpu, trace.MachineType{GPUs: gpusPerMachine, IdleWatts: gpusPerMachine*assumed.idleGPU + assumed.host, GPUWatts: one.watts - assumed.idleGPU})
	}
	for range 2 {
		for _, one := range boards {
			machines.Add(one.gpu, 1)
		}
	}
	read, err := readTrace(data, name, machines)
	return site{cluster: machines.Cluster, jobs: read.Jobs}, err
}

// loaded stretches the arrivals until the jobs, as long as they take on the mean
// of their types, keep such a share of the GPUs busy while they arrive.
func (s site) loaded(load float64) site {
	gpus := 0
	for range s.cluster.Machines {
		gpus += gpusPerMachine
	}
	work, last := 0.0, 0.0
	for i := range s.jobs {
		mean := 0.0
		for kind := range s.jobs[i].Profile.On {
			took, _ := s.jobs[i].Alone(kind)
			mean += took.Seconds / float64(len(s.jobs[i].Profile.On))
		}
		work += mean * float64(s.jobs[i].Needs.GPUs)
		last = max(last, s.jobs[i].Arrives)
	}
	stretch := work / (load * float64(gpus) * last)
	s.jobs = slices.Clone(s.jobs)
	for i := range s.jobs {
		s.jobs[i].Arrives *= stretch
	}
	return s
}
