package policies

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Heats places by the score of HEATS (thesis, chapter 3), with placement's
// code. Every job has the given H, from 0 (fast) to 1 (little energy). Waiting
// jobs are placed as they come, and nothing moves.
func Heats(predictor placement.Predictor, energy float64) replay.Policy {
	return replay.Policy{Name: fmt.Sprintf("heats H=%g", energy), Chooser: heats{predictor, energy}}
}

// HeatsMoving is Heats that looks again at what runs, every so many seconds.
func HeatsMoving(predictor placement.Predictor, energy, every float64, settings placement.Settings) replay.Policy {
	policy := Heats(predictor, energy)
	policy.Name += ", moving"
	policy.Mover = mover{heats{predictor, energy}, settings, false}
	policy.Every = every
	return policy
}

// Recorded predicts what the trace says, without an error: the best that a
// model can do.
func Recorded(jobs []replay.Job) placement.Predictor {
	byName := make(recorded, len(jobs))
	for i := range jobs {
		byName[jobs[i].Name] = &jobs[i]
	}
	return byName
}

type recorded map[string]*replay.Job

func (r recorded) Predict(kind string, task placement.Task) (placement.Prediction, bool) {
	job, known := r[task.Name]
	if !known {
		return placement.Prediction{}, false
	}
	return job.Alone(kind)
}

type heats struct {
	predictor placement.Predictor
	energy    float64
}

// task is the job with the H that the policy gives it.
func (h heats) task(job *replay.Job) placement.Task {
	task := job.Task()
	task.Energy = h.energy
	return task
}

// Choose asks placement about the first machine of each group: those of a group
// have the same type and the same room, and placement takes the first of such.
func (h heats) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	rooms := state.Rooms(job)
	machines := make([]placement.Machine, len(rooms))
	for i, room := range rooms {
		machines[i] = placement.Machine{Name: state.Name(room.Machines[0]), Type: room.Type.Name, Free: room.Free}
	}
	placed := placement.Place([]placement.Task{h.task(job.Job)}, machines, h.predictor)[0]
	at, found := state.Place(placed)
	return replay.Spot{Machine: at}, found
}

// Learn teaches models that learn.
func (h heats) Learn(job *replay.Job, machineType string, took placement.Prediction) error {
	models, learns := h.predictor.(*placement.Models)
	if !learns {
		return nil
	}
	_, err := models.Observe(placement.Observation{Type: machineType, Features: job.Features, Took: took})
	return err
}

type mover struct {
	heats
	settings placement.Settings
	// exchanges says that jobs also change places.
	exchanges bool
}

// HeatsExchanging is HeatsMoving in which running jobs also change places.
func HeatsExchanging(predictor placement.Predictor, energy, every float64, settings placement.Settings) replay.Policy {
	policy := HeatsMoving(predictor, energy, every, settings)
	policy.Name += ", exchanging"
	policy.Mover = mover{heats{predictor, energy}, settings, true}
	return policy
}

func (m mover) Moves(state *replay.State) []replay.Move {
	var running []placement.Running
	byName := map[string]*replay.Running{}
	for _, one := range state.Running() {
		if !one.Working() {
			continue
		}
		byName[one.Name] = one
		running = append(running, placement.Running{Task: m.task(one.Job), Machine: state.Name(one.Machine), Owner: one.User, Remaining: state.Remaining(one), Move: state.MoveCost()})
	}
	var pending []placement.Task
	for _, one := range state.Waiting() {
		pending = append(pending, m.task(one.Job))
	}
	var machines []placement.Machine
	for at := range state.Machines() {
		if state.Awake(at) {
			machines = append(machines, placement.Machine{Name: state.Name(at), Type: state.Type(at).Name, Free: state.Free(at)})
		}
	}
	var moves []replay.Move
	known := possible{m.predictor, state, byName}
	goes := map[string]bool{}
	for _, one := range placement.Reschedule(running, pending, machines, known, m.settings) {
		goes[one.Task] = true
		to, _ := state.Place(one.To)
		moves = append(moves, replay.Move{Job: byName[one.Task], To: replay.Spot{Machine: to}})
	}
	if !m.exchanges {
		return moves
	}
	running = slices.DeleteFunc(running, func(one placement.Running) bool { return goes[one.Name] })
	for _, one := range placement.Exchanges(running, machines, known, m.settings) {
		to, _ := state.Place(one.First.To)
		moves = append(moves, replay.Move{Job: byName[one.First.Task], To: replay.Spot{Machine: to}, With: byName[one.Second.Task]})
	}
	return moves
}

// possible predicts only for types that a job runs on.
type possible struct {
	predictor placement.Predictor
	state     *replay.State
	jobs      map[string]*replay.Running
}

func (p possible) Predict(kind string, task placement.Task) (placement.Prediction, bool) {
	job, known := p.jobs[task.Name]
	if known && !job.RunsOn(p.state.TypeNamed(kind)) {
		return placement.Prediction{}, false
	}
	return p.predictor.Predict(kind, task)
}
