package definition

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// maxInitial bounds the configurations a study file can start with.
const maxInitial = 1_000

// initial reads the configurations to try first. They are checked against the
// space once that is known to be sound.
func (d *decoder) initial(s section) []space.Configuration {
	n, at := s.get("initial")
	if n == nil {
		return nil
	}
	if n.kind != list {
		d.wrong(at, n, "a list of configurations, such as [{learning_rate: 0.01}]")
		return nil
	}
	if len(n.items) > maxInitial {
		d.fault(at, n, "has %d configurations: at most %d", len(n.items), maxInitial)
		return nil
	}
	d.places.put("search.initial", at, n.line)
	var configurations []space.Configuration
	for i, item := range n.items {
		configurations = append(configurations, d.configuration(index(at, i), item))
	}
	return configurations
}

// configuration reads a mapping of names and values.
func (d *decoder) configuration(at string, n *node) space.Configuration {
	d.places.put(at, at, n.line)
	if n.kind != mapping {
		d.wrong(at, n, "a mapping of parameters and their values, such as {learning_rate: 0.01}")
		return nil
	}
	configuration := make(space.Configuration, len(n.entries))
	for _, e := range n.entries {
		d.places.put(join(at, e.key), join(at, e.key), e.value.line)
		if v, ok := d.value(join(at, e.key), e.value); ok {
			configuration[e.key] = v
		}
	}
	return configuration
}

// checkInitial returns what is wrong with the configurations to try first. The
// space must be valid.
func checkInitial(def Definition) []problem.Field {
	const path = "search.initial"
	initial := def.Search.Initial
	var faults []problem.Field
	if bound := def.Stop.Trials; bound > 0 && len(initial) > bound {
		faults = append(faults, problem.Field{Path: path, Value: len(initial),
			Message: fmt.Sprintf("has more configurations than stop.trials, which is %d: raise it, or take some away", bound)})
	}
	cube := def.Space.Cube()
	for i, configuration := range initial {
		// Any generator shows whether the rest can be drawn.
		_, err := cube.Complete(configuration, rand.New(rand.NewPCG(1, uint64(i))))
		var told *problem.Error
		if !errors.As(err, &told) {
			continue
		}
		for _, fault := range told.Fields {
			fault.Path = index(path, i) + strings.TrimPrefix(fault.Path, "params")
			faults = append(faults, fault)
		}
	}
	return faults
}
