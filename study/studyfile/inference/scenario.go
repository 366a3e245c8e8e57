package inference

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

const (
	// collected is the largest batch of a scenario that puts samples together, if
	// batch_size does not say.
	collected = 32
	maxRate   = 1e6
	maxP99MS  = 1e6
)

// readScenario reads how requests come: single is what is without it, and batch is
// throughput.
func readScenario(s tree.Section, result *definition.Inference) {
	n, at := s.Get("scenario")
	if n == nil {
		return
	}
	const wanted = "single, batch, {server: {rate: 200/s, p99_ms: 50}} or {multi-stream: {streams: 8}}"
	if n.Kind != tree.Mapping {
		switch n.Raw {
		case "single":
		case "batch":
			result.Objective.Metric, result.BatchSize.High = tuning.Throughput, collected
		default:
			s.Wrong(at, n, wanted)
		}
		return
	}
	known, ok := s.Open(at, n, "server", "multi-stream")
	if ok && len(n.Entries) != 1 {
		s.Fault(at, n, "must be one of %s", wanted)
		return
	}
	result.Scenario, result.BatchSize.High = &definition.Scenario{}, collected
	if server, ok := known.Part("server", "rate", "p99_ms"); ok {
		load := &definition.ServerScenario{}
		readRate(server, &load.Rate)
		if _, at := server.Need("p99_ms", "what the 99th percentile of waiting and inference may be in milliseconds, such as 50"); at != "" {
			server.Number("p99_ms", 0.001, maxP99MS, &load.P99MS)
		}
		result.Scenario.Server = load
	}
	if streams, ok := known.Part("multi-stream", "streams"); ok {
		load := &definition.MultiStreamScenario{}
		streams.Need("streams", "how many samples a request has, such as 8")
		streams.Whole("streams", 1, deployment.MaxStreams, &load.Streams)
		result.Scenario.MultiStream = load
	}
}

// readRate reads requests a second, as 200 or as 200/s.
func readRate(s tree.Section, target *float64) {
	const wanted = "requests a second, such as 200/s"
	n, at := s.Need("rate", wanted)
	if n == nil {
		return
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(n.Raw, "/s")), 64)
	if n.Kind != tree.Number && n.Kind != tree.Text || err != nil || !(rate > 0 && rate <= maxRate) {
		s.Fault(at, n, "must be %s, above 0 and at most %g", wanted, maxRate)
		return
	}
	*target = rate
}

// Check checks what the scenario and the rest of the file say together.
func Check(root tree.Section, def definition.Definition) {
	n, at := root.Get("inference")
	if n == nil || n.Kind != tree.Mapping {
		return
	}
	s := tree.Section{Decoder: root.Decoder, Path: at, Node: n}
	scenario, at := s.Get("scenario")
	metric := def.Inference.Objective.Metric
	switch objective, place := s.Get("objective"); {
	case def.Inference.Scenario != nil && metric == tuning.Throughput:
		s.Fault(place, objective, "must be latency or energy: how many samples a second there are, the scenario says")
	case scenario != nil && scenario.Raw == "batch" && metric == tuning.Latency:
		s.Fault(at, scenario, "needs objective: throughput or energy: a batch of one has the lowest latency")
	case def.Inference.Scenario == nil && slices.Contains(def.Names(), definition.EdgeP99):
		s.Need("scenario", definition.EdgeP99+" is of a load, such as {server: {rate: 200/s, p99_ms: 50}}")
	}
	checkNames(root, "objective", definition.Definition{Objectives: def.Objectives})
	checkNames(root, "constraints", definition.Definition{Constraints: def.Constraints})
}

// checkNames finds numbers of a deployment that no deployment has, before a trial is trained for them.
func checkNames(root tree.Section, field string, part definition.Definition) {
	n, at := root.Get(field)
	for _, name := range part.Names() {
		if known := definition.EdgeNames(); strings.HasPrefix(name, "edge.") && !slices.Contains(known, name) {
			root.Fault(at, n, "needs %s, which is no number of a deployment: write one of %s", name, strings.Join(known, ", "))
		}
	}
}
