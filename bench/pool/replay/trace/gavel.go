package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Throughputs are Gavel's measured steps a second (Narayanan et al., OSDI 2020):
// by type of GPU, by job with its number of GPUs, alone and beside others.
type Throughputs map[string]map[string]map[string]json.RawMessage

// alone is the key of a job's throughput by itself.
const alone = "null"

// ReadThroughputs reads Gavel's simulation_throughputs.json.
func ReadThroughputs(file string, in io.Reader) (Throughputs, error) {
	var all Throughputs
	if err := json.NewDecoder(in).Decode(&all); err != nil {
		return nil, problem.New(problem.Invalid, "%s: it should have steps a second as {\"v100\": {\"('ResNet-18 (batch size 16)', 1)\": {\"null\": 69.6, ...}}}: %w", file, err)
	}
	for gpu, jobs := range all {
		for job, beside := range jobs {
			for other, raw := range beside {
				if _, err := steps(other, raw); err != nil {
					return nil, problem.New(problem.Invalid, "%s: %s, %s, %s: %w", file, gpu, job, other, err)
				}
			}
		}
	}
	return all, nil
}

// steps are what an entry says: one number alone, two beside another job.
func steps(other string, raw json.RawMessage) ([]float64, error) {
	var values []float64
	var err error
	want := 2
	if other == alone {
		want = 1
		values = make([]float64, 1)
		err = json.Unmarshal(raw, &values[0])
	} else {
		err = json.Unmarshal(raw, &values)
	}
	if err != nil || len(values) != want {
		return nil, fmt.Errorf("%.40q is not %d steps a second", raw, want)
	}
	for _, one := range values {
		if !(one >= 0) || math.IsInf(one, 0) {
			return nil, fmt.Errorf("%g steps a second: there cannot be fewer than 0", one)
		}
	}
	return values, nil
}

func gavelKey(job string, gpus int) string { return fmt.Sprintf("('%s', %d)", job, gpus) }

// of is a job's throughput by itself on a type of GPU. Where it was not measured
// with so many GPUs it is as many times that with one: an estimate.
func (t Throughputs) of(gpu, job string, gpus int) (perSecond float64, estimate, known bool) {
	for _, measured := range []int{gpus, 1} {
		if raw, has := t[gpu][gavelKey(job, measured)][alone]; has {
			values, err := steps(alone, raw)
			if err != nil || values[0] <= 0 {
				return 0, false, false // it does not run there
			}
			return values[0] * float64(gpus/measured), measured != gpus, true
		}
	}
	return 0, false, false
}

// beside is how fast a job goes on a GPU with another, relative to alone; false
// where the pair was not measured.
func (t Throughputs) beside(gpu, job, other string) (speed float64, known bool) {
	raw, has := t[gpu][gavelKey(job, 1)][gavelKey(other, 1)]
	if !has {
		return 0, false
	}
	values, err := steps(other, raw)
	single, _, runs := t.of(gpu, job, 1)
	if err != nil || !runs {
		return 0, false
	}
	return values[0] / single, true
}

// Slowdown is what was measured of pairs. Of three jobs on a GPU each is slowed
// down by the product of its pairs, jobs of several GPUs as those of one, and a
// pair that was not measured by half: estimates.
func (t Throughputs) Slowdown(machines Machines) replay.Slowdown {
	return func(machineType string, jobs []*replay.Job) []float64 {
		gpu := machines.types[machineType].As
		speeds := make([]float64, len(jobs))
		for i, one := range jobs {
			speeds[i] = 1
			for j, other := range jobs {
				if i == j {
					continue
				}
				speed, known := t.beside(gpu, kindOf(one), kindOf(other))
				if !known {
					speed = 0.5
				}
				speeds[i] *= min(1, speed)
			}
		}
		return speeds
	}
}

// kindOf is the job's type, without its number of GPUs.
func kindOf(job *replay.Job) string {
	kind, _, _ := strings.Cut(job.Profile.Name, gavelGPUs)
	return kind
}

// gavelGPUs stands between a type and its number of GPUs in a profile's name.
const gavelGPUs = " on "

// Gavel reads a trace of Gavel: lines of seven or ten fields with tabs between.
// What a job takes on a type of machine follows from the throughputs of what the
// machines' file says the trace calls it (as: v100).
func Gavel(file string, in io.Reader, throughputs Throughputs, machines Machines) (Trace, error) {
	trace := Trace{Slowdown: throughputs.Slowdown(machines), Guessed: true}
	profiles := map[string]*replay.Profile{}
	estimated := map[string]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for line := 1; lines.Scan(); line++ {
		fields := strings.Split(lines.Text(), "\t")
		job, err := gavelJob(file, line, fields)
		if err != nil {
			return Trace{}, err
		}
		name := fmt.Sprintf("%s%s%d", fields[0], gavelGPUs, job.Needs.GPUs)
		if profiles[name] == nil {
			profile, estimate, err := gavelProfile(name, fields[0], job.Needs.GPUs, throughputs, machines)
			if err != nil {
				return Trace{}, fault(file, line, "1 (type)", fields[0], err.Error())
			}
			profiles[name], estimated[name] = profile, estimate
		}
		job.Profile = profiles[name]
		if estimated[name] {
			estimated[job.Name] = true
		}
		trace.Jobs = append(trace.Jobs, job)
	}
	if err := lines.Err(); err != nil {
		return Trace{}, problem.New(problem.Invalid, "%s: %w", file, err)
	}
	trace.leaveOut(machines)
	count := 0
	for _, one := range trace.Jobs {
		if estimated[one.Name] {
			count++
		}
	}
	if count > 0 {
		trace.note("%d of %d jobs have a number of GPUs that was not measured: their speed is that with one GPU times as many, an estimate.", count, len(trace.Jobs))
	}
	trace.note("Joules follow from the watts of the machines' file: estimates.")
	return trace, nil
}

// gavelColumns are where a line of so many fields has steps, arrival and GPUs.
var gavelColumns = map[int][3]int{7: {4, 5, 6}, 10: {5, 9, 6}}

func gavelJob(file string, line int, fields []string) (replay.Job, error) {
	places, known := gavelColumns[len(fields)]
	if !known {
		return replay.Job{}, problem.New(problem.Invalid, "%s, line %d: it has %d fields with tabs between, and a trace of Gavel has 7 or 10", file, line, len(fields))
	}
	var values [3]float64
	for i, name := range []string{"steps", "arrival", "GPUs"} {
		value, err := strconv.ParseFloat(fields[places[i]], 64)
		least := []float64{1, 0, 1}[i]
		if err != nil || !(value >= least) || value > 1e15 || i == 2 && (value != math.Trunc(value) || value > 1024) {
			return replay.Job{}, fault(file, line, fmt.Sprintf("%d (%s)", places[i]+1, name), fields[places[i]], fmt.Sprintf("is not a number of at least %g", least))
		}
		values[i] = value
	}
	return replay.Job{
		Name: fmt.Sprintf("%d", line), User: "all", Work: values[0], Arrives: values[1], Needs: placement.Resources{GPUs: int(values[2])}, Utilization: 1,
	}, nil
}

func gavelProfile(name, job string, gpus int, throughputs Throughputs, machines Machines) (*replay.Profile, bool, error) {
	profile := &replay.Profile{Name: name, On: map[string]placement.Prediction{}}
	estimated, known := false, false
	for _, kind := range machines.order {
		described := machines.types[kind]
		_, measured := throughputs[described.As][gavelKey(job, 1)]
		known = known || measured
		perSecond, estimate, runs := throughputs.of(described.As, job, gpus)
		if !runs || described.GPUs < gpus {
			continue
		}
		estimated = estimated || estimate
		seconds := 1 / perSecond
		profile.On[kind] = placement.Prediction{Seconds: seconds, Joules: described.joules(seconds, placement.Resources{GPUs: gpus}, 1)}
	}
	if !known {
		return nil, false, fmt.Errorf("has no throughput on any type of the machines' file: call the types k80, p100 or v100, or say so (as: v100)")
	}
	return profile, estimated, nil
}
