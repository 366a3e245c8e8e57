package studyfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxInitial bounds the configurations a study file can start with.
const maxInitial = 1_000

// readInitial reads the configurations to try first. They are checked against the
// space once that is known to be sound.
func readInitial(s tree.Section) []space.Configuration {
	n, at := s.Get("initial")
	if n == nil {
		return nil
	}
	if n.Kind != tree.List {
		s.Wrong(at, n, "a list of configurations, such as [{learning_rate: 0.01}]")
		return nil
	}
	if len(n.Items) > maxInitial {
		s.Fault(at, n, "has %d configurations: at most %d", len(n.Items), maxInitial)
		return nil
	}
	s.Places.Put("search.initial", at, n.Line)
	var configurations []space.Configuration
	for i, item := range n.Items {
		configurations = append(configurations, readConfiguration(s.Decoder, tree.Index(at, i), item))
	}
	return configurations
}

// readConfiguration reads a mapping of names and values.
func readConfiguration(d *tree.Decoder, at string, n *tree.Node) space.Configuration {
	d.Places.Put(at, at, n.Line)
	if n.Kind != tree.Mapping {
		d.Wrong(at, n, "a mapping of parameters and their values, such as {learning_rate: 0.01}")
		return nil
	}
	configuration := make(space.Configuration, len(n.Entries))
	for _, e := range n.Entries {
		d.Places.Put(tree.Join(at, e.Key), tree.Join(at, e.Key), e.Value.Line)
		if v, ok := readValue(d, tree.Join(at, e.Key), e.Value); ok {
			configuration[e.Key] = v
		}
	}
	return configuration
}

// checkInitial returns what is wrong with the configurations to try first. The
// space must be valid.
func checkInitial(def definition.Definition) []problem.Field {
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
			fault.Path = tree.Index(path, i) + strings.TrimPrefix(fault.Path, "params")
			faults = append(faults, fault)
		}
	}
	return faults
}
