package main

import "strings"

// tool is who searches.
type tool string

const (
	byTandem tool = "tandem"
	byOptuna tool = "optuna"
	byRay    tool = "ray"
)

// truth is what Tandem knows of the machine's workloads when a study begins.
type truth string

const (
	nothing truth = "nothing"
	// others: what was measured on other workloads and other data sets.
	others truth = "others"
	// everything: the same workload was tuned before, too, with another seed.
	everything truth = "everything"
)

// arm is one way to tune.
type arm struct {
	name, about string
	tool        tool
	// slots is how many trials a worker of Tandem runs at once: a number, or
	// "auto" for as many as the cores allow. "cores": one for each core.
	slots string
	// asParameters puts the system parameters into the space, and the training
	// time into the objective.
	asParameters bool
	// tuned lets Tandem choose the system parameters while trials train.
	tuned bool
	truth truth
	// threads is the thread variable of a peer's processes: "" for untouched, "1",
	// "cores" for one thread for each core. processes is how many a peer runs:
	// "1" or "cores".
	threads, processes string
	// quick arms are in the quick set.
	quick bool
}

func arms() []arm {
	return []arm{
		{name: "v1", about: "Tandem, hyperparameters only; one trial at once, a thread for each core", tool: byTandem, slots: "1", quick: true},
		{name: "v2", about: "Tandem, threads as a hyperparameter, accuracy per second as the objective; one trial at once", tool: byTandem, slots: "1", asParameters: true, quick: true},
		{name: "slots", about: "Tandem, hyperparameters only; a trial with one thread for each core, chosen by hand", tool: byTandem, slots: "cores", quick: true},
		{name: "cold", about: "Tandem, system parameters tuned while training, nothing known", tool: byTandem, slots: "auto", tuned: true, truth: nothing, quick: true},
		{name: "warm", about: "the same, with a ground truth from other workloads and other data sets", tool: byTandem, slots: "auto", tuned: true, truth: others, quick: true},
		{name: "seen", about: "the same, with this workload in the ground truth, too, from trainings with another seed", tool: byTandem, slots: "auto", tuned: true, truth: everything, quick: true},
		{name: "optuna", about: "Optuna, TPE and Hyperband, one process, threads as PyTorch takes them by itself", tool: byOptuna, processes: "1"},
		{name: "optuna-threads", about: "the same with a thread for each core", tool: byOptuna, processes: "1", threads: "cores"},
		{name: "optuna-processes", about: "Optuna, a process of one thread for each core on one storage", tool: byOptuna, processes: "cores", threads: "1", quick: true},
		{name: "ray-bohb", about: "Ray Tune, BOHB, a trial with one thread for each core, as it does by itself", tool: byRay},
	}
}

// fielded are the arms of a command line that can run here.
func (o options) fielded() ([]arm, error) {
	wanted := strings.FieldsFunc(o.arms, func(r rune) bool { return r == ',' })
	named := len(wanted) > 0
	if !named {
		for _, one := range arms() {
			if one.quick || o.set == "full" {
				wanted = append(wanted, one.name)
			}
		}
	}
	list, err := pick(arms(), wanted, func(a arm) string { return a.name })
	if err != nil {
		return nil, err
	}
	var able []arm
	for _, one := range list {
		if one.tool == byTandem || o.interpreter(one.tool) != "" {
			able = append(able, one)
		}
	}
	return able, nil
}

// interpreter is the Python of a tool.
func (o options) interpreter(t tool) string {
	switch t {
	case byOptuna:
		return o.optuna
	case byRay:
		return o.ray
	default:
		return o.python
	}
}
